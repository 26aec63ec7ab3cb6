"""Owns the life of one instance in a group: booting, waiting, serving, standing by, going.

It must not decide that an instance comes or goes; the group does. Time is the simulation's clock: a
member has a moment at which its next step is due, and `advance` takes all steps that are.
"""

import itertools
from datetime import datetime, timedelta

from moto.autoscaling.models import InstanceState
from moto.core.exceptions import ServiceException

from .. import clock

_EC2_STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}
# They make up the capacity of a group.
ACTIVE_STATES = ("Pending", "Pending:Wait", "InService")


class Member(InstanceState):
    """An instance in a group. It keeps what it was launched from for all its life."""

    _serials = itertools.count(1)

    def __init__(self, *positional: object, template: dict | None = None, **named: object) -> None:
        self.serial = next(self._serials)
        self._template = template
        super().__init__(*positional, **named)
        # The address is given back when the machine ends.
        self.private_dns_name = self.instance.private_dns_name
        # The scaling activity under way.
        self.activity: object | None = None
        self.running_since: datetime | None = None
        self.interrupted_at: datetime | None = None
        self._due: datetime | None = None
        self._released: set[str] = set()
        self._termination_time = timedelta(0)

    @property
    def launch_template(self) -> dict | None:
        return self._template

    @property
    def launch_configuration_name(self) -> str | None:
        return None if self._template else self.auto_scaling_group.source.configuration_name

    @property
    def is_active(self) -> bool:
        return self.lifecycle_state in ACTIVE_STATES

    @property
    def is_leaving(self) -> bool:
        return self.lifecycle_state.startswith("Terminat")

    @property
    def is_gone(self) -> bool:
        return self.lifecycle_state == "Terminated"

    @property
    def has_lost_its_machine(self) -> bool:
        return self.instance.state in ("shutting-down", "terminated")

    @property
    def is_moving(self) -> bool:
        """Whether time or a release will change it."""
        return self.lifecycle_state not in ("InService", "Standby") or self.interrupted_at is not None

    def begin_life(self, activity: object, boot_seconds: float) -> None:
        self.activity = activity
        self.lifecycle_state = "Pending"
        self._due = clock.naive_now() + timedelta(seconds=boot_seconds)
        self._set_machine("pending")
        activity.await_service()
        self.advance()

    def begin_end(self, activity: object, termination_seconds: float, heeds_holds: bool) -> None:
        if self.activity is not None:
            self.activity.cancel()
        self.activity = activity
        self._termination_time = timedelta(seconds=termination_seconds)
        self.interrupted_at = None
        if heeds_holds and not self.has_lost_its_machine and self._is_held("terminating"):
            self.lifecycle_state, self._due = "Terminating:Wait", None
        else:
            self._shut_down()
        self.advance()

    def stand_by(self, stands_by: bool) -> None:
        self.lifecycle_state = "Standby" if stands_by else "InService"

    def interrupt(self, notice_seconds: float) -> None:
        """EC2 will take the machine back, and says so as the reason of its end."""
        self.interrupted_at = clock.naive_now() + timedelta(seconds=notice_seconds)
        code = "Server.SpotInstanceTermination"
        self.instance.state_reason.code = code
        self.instance.state_reason.message = f"{code}: Spot instance termination"

    @property
    def waits(self) -> bool:
        return self.lifecycle_state.endswith(":Wait")

    def proceed(self) -> None:
        """Let go of a wait, before or while it happens."""
        self._released.add("terminating" if self.is_leaving else "launching")
        self.advance()

    def advance(self) -> None:
        """Take every step that is due."""
        now = clock.naive_now()
        if self.interrupted_at is not None and self.interrupted_at <= now:
            self.interrupted_at = None
            self._set_machine("shutting-down")
        if self.lifecycle_state == "Pending" and self._due <= now and not self.has_lost_its_machine:
            self._set_machine("running")
            self.running_since, self._due = self._due, None
            self.lifecycle_state = "Pending:Wait"
        if self.lifecycle_state == "Pending:Wait" and not self._is_held("launching"):
            self.lifecycle_state = "InService"
            self.activity.succeed()
            self.activity = None
        if self.lifecycle_state == "Terminating:Wait" and (
            self.has_lost_its_machine or not self._is_held("terminating")
        ):
            self._shut_down()
        if self.lifecycle_state == "Terminating" and self._due <= now:
            self._end()

    def _shut_down(self) -> None:
        self.lifecycle_state = "Terminating"
        self._due = clock.naive_now() + self._termination_time
        if self.instance.state != "terminated":
            self._set_machine("shutting-down")

    def _end(self) -> None:
        self.lifecycle_state = "Terminated"
        if self.instance.state != "terminated":
            reason = self.instance.state_reason
            try:
                self.instance.ec2_backend.terminate_instances([self.instance_id])
            except ServiceException as refused:
                self.activity.status_message = refused.message
            if reason.code:
                self.instance.state_reason = reason
        self.activity.succeed()
        self.activity = None

    def _is_held(self, transition: str) -> bool:
        conditions = self.auto_scaling_group.autoscaling_backend.conditions
        return transition not in self._released and conditions.holds(self.auto_scaling_group_name, transition)

    def _set_machine(self, state: str) -> None:
        self.instance._state.name, self.instance._state.code = state, _EC2_STATES[state]
