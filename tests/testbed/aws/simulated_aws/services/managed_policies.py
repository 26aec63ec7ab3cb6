"""Owns the AWS managed policies of IAM: read once, shared by every reset of the simulation.

Reading the thousand documents anew takes a fifth of a second, which every test would pay.
It must not change a policy.
"""

from typing import ClassVar

from moto.iam.models import IAMBackend, ManagedPolicy


class SimulatedIam(IAMBackend):
    _shared_policies: ClassVar[list[ManagedPolicy]] = []

    def _init_aws_policies(self) -> list[ManagedPolicy]:
        if not self._shared_policies:
            self._shared_policies.extend(super()._init_aws_policies())
        for policy in self._shared_policies:
            # The only member that attaching a policy changes.
            policy.attachment_count = 0
        return list(self._shared_policies)
