"""Owns SSM's public parameters under /aws: seeding them, and how they are read.

It must not change parameters that belong to an account.
"""

from datetime import datetime

from moto.ssm.models import Parameter, SimpleSystemManagerBackend

from .. import clock


class SimulatedParameter(Parameter):
    def response_object(self, decrypt: bool = False, region: str | None = None) -> dict:
        shown = super().response_object(decrypt, region)
        if region and self.name.startswith("/aws/"):
            # Public parameters belong to no account.
            shown["ARN"] = f"arn:aws:ssm:{region}::parameter{self.name}"
        return shown


class SimulatedSsm(SimpleSystemManagerBackend):
    def get_parameters(self, names: list[str]) -> dict[str, Parameter]:
        found = super().get_parameters(names)
        return {name: found[name] for name in dict.fromkeys(names) if name in found}

    def seed(self, name: str, value: str, last_modified: datetime | None) -> int:
        """Publish a value, past the rule that nobody may write under /aws. Answers its version."""
        versions = self._parameters[name]
        number = versions[-1].version + 1 if versions else 1
        versions.append(
            SimulatedParameter(
                account_id=self.account_id,
                name=name,
                value=value,
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=last_modified or clock.naive_now(),
                version=number,
                data_type="text",
                tier="Standard",
            )
        )
        return number

    def withdraw(self, name: str) -> bool:
        return self._parameters.pop(self._parameters.normalize_name(name), None) is not None
