"""Owns the history of scaling activities and the prose that AWS writes into them.

It must not cause any scaling.
"""

import itertools
import json
import uuid

from .. import clock


class ScalingActivity:
    """Attribute names are those under which the answers' serializer looks for them."""

    def __init__(self, serial: int, group: object, description: str, cause: str, details: dict) -> None:
        self.serial = serial
        self.group = group
        self.activity_id = str(uuid.uuid4())
        self.auto_scaling_group_name = group.name
        self.auto_scaling_group_arn = group.arn
        self.auto_scaling_group_state: str | None = None
        self.description = description
        self.cause = cause
        self.details = json.dumps(details, separators=(",", ":"))
        self.start_time = clock.naive_now()
        self.end_time = None
        self.status_code = "InProgress"
        self.status_message: str | None = None
        self.progress = 0

    def place(self, zone: str, subnet_id: str | None) -> None:
        self.details = json.dumps(
            {"Subnet ID": subnet_id, "Availability Zone": zone} if subnet_id else {"Availability Zone": zone},
            separators=(",", ":"),
        )

    def await_service(self) -> None:
        """The instance has started and is not in service yet."""
        self.status_code, self.progress = "PreInService", 30

    def cancel(self) -> None:
        self._end("Cancelled")

    def succeed(self) -> None:
        self._end("Successful")

    def fail(self, reason: str) -> None:
        self.status_message = f"{reason.rstrip('.')}. Launching EC2 instance failed."
        self.description = f"{self.description}.  Status Reason: {self.status_message}"
        self._end("Failed")

    def _end(self, status: str) -> None:
        self.status_code = status
        self.progress = 100
        self.end_time = clock.naive_now()


class ActivityHistory:
    def __init__(self) -> None:
        self._serials = itertools.count(1)
        self._activities: list[ScalingActivity] = []

    def begin(self, group: object, description: str, cause: str) -> ScalingActivity:
        activity = ScalingActivity(next(self._serials), group, description, cause, {})
        self._activities.append(activity)
        return activity

    def of(self, group_name: str | None, include_deleted: bool) -> list[ScalingActivity]:
        return [
            activity
            for activity in self._activities
            if group_name in (None, activity.auto_scaling_group_name)
            and (include_deleted or activity.auto_scaling_group_state is None)
        ]

    def close_group(self, group: object) -> None:
        for activity in self._activities:
            if activity.group is group:
                activity.auto_scaling_group_state = "Deleted"


def because_created(capacity: int) -> str:
    return (
        f"At {_now()} a user request created an AutoScalingGroup changing the desired capacity "
        f"from 0 to {capacity}.  "
    )


def because_updated(least: int, most: int, before: int, after: int) -> str:
    change = f" changing the desired capacity from {before} to {after}" if before != after else ""
    return (
        f"At {_now()} a user request update of AutoScalingGroup constraints to min: {least}, max: {most}, "
        f"desired: {after}{change}.  "
    )


def because_capacity_set(before: int, after: int) -> str:
    return (
        f"At {_now()} a user request explicitly set group desired capacity changing the desired capacity "
        f"from {before} to {after}.  "
    )


def because_launched(before: int, after: int) -> str:
    return (
        f"At {_now()} an instance was started in response to a difference between desired and actual "
        f"capacity, increasing the capacity from {before} to {after}."
    )


def because_selected(instance_id: str, before: int, after: int) -> str:
    return (
        f"At {_now()} an instance was taken out of service in response to a difference between desired and "
        f"actual capacity, shrinking the capacity from {before} to {after}.  At {_now()} instance "
        f"{instance_id} was selected for termination."
    )


def because_asked(instance_id: str, capacity_change: tuple[int, int] | None) -> str:
    shrink = ""
    if capacity_change:
        shrink = f", shrinking the capacity from {capacity_change[0]} to {capacity_change[1]}"
    return (
        f"At {_now()} instance {instance_id} was taken out of service in response to a user request{shrink}."
    )


def because_unhealthy(check: str) -> str:
    return f"At {_now()} an instance was taken out of service in response to {check}."


def because_abandoned(instance_id: str) -> str:
    return (
        f"At {_now()} instance {instance_id} was taken out of service in response to an abandoned lifecycle "
        "action."
    )


def because_unbalanced() -> str:
    return (
        f"At {_now()} an instance was launched or terminated to even out the group's Availability Zones, "
        "which were unbalanced.  "
    )


def because_stands_by(instance_id: str, before: int, after: int) -> str:
    change = f", shrinking the capacity from {before} to {after}" if before != after else ""
    return f"At {_now()} instance {instance_id} was moved to standby in response to a user request{change}."


def because_returned(instance_id: str, before: int, after: int) -> str:
    return (
        f"At {_now()} instance {instance_id} was moved out of standby in response to a user request, "
        f"increasing the capacity from {before} to {after}."
    )


def _now() -> str:
    return clock.whole_seconds(clock.naive_now())
