"""Owns the groups of one region: creating, changing, deleting them, and their lost instances.

It must not read requests' protocol nor shape answers.
"""

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend
from moto.core.exceptions import ServiceException

from .. import clock
from . import group_limits, launch_check, launch_source
from . import scaling_activity as because
from .autoscaling_group import METRICS, SimulatedGroup
from .conditions import Conditions
from .launch_source import LaunchSource
from .member import Member
from .scaling_activity import ActivityHistory, ScalingActivity

PROCESSES = (
    "Launch",
    "Terminate",
    "AddToLoadBalancer",
    "AlarmNotification",
    "AZRebalance",
    "HealthCheck",
    "InstanceRefresh",
    "ReplaceUnhealthy",
    "ScheduledActions",
)


class SimulatedAutoScaling(AutoScalingBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.activities = ActivityHistory()
        self.conditions = Conditions()
        # Groups in which time alone will change something.
        self._moving: set[SimulatedGroup] = set()

    def follow(self, group: SimulatedGroup) -> None:
        """Look at it again whenever time may have passed."""
        if group.is_moving:
            self._moving.add(group)

    def advance(self) -> None:
        """Let everything happen that is due by the clock; called before each request."""
        for group in list(self._moving):
            group.advance()
            if not group.is_moving:
                self._moving.discard(group)
            if group.is_pending_delete and not group.instance_states:
                self._forget(group)

    def find(self, name: str, reason: str | None = None) -> SimulatedGroup:
        if name not in self.autoscaling_groups:
            raise ValidationError(
                f"AutoScalingGroup name not found - {reason or f'AutoScalingGroup {name!r} not found'}"
            )
        return self.autoscaling_groups[name]

    def create_group(self, parameters: dict) -> SimulatedGroup:
        name = parameters["AutoScalingGroupName"]
        if name in self.autoscaling_groups:
            raise AutoscalingClientError(
                "AlreadyExists",
                f"AutoScalingGroup by this name already exists - A group with the name {name} already exists",
            )
        least, most = parameters["MinSize"], parameters["MaxSize"]
        group_limits.check_new(least, most, parameters.get("DesiredCapacity"))
        source = launch_source.from_parameters(parameters, self.ec2_backend, None)
        vpc_id = self._check_places(parameters)
        self._check_source(source, vpc_id)
        group = SimulatedGroup(self, parameters, source)
        self.autoscaling_groups[name] = group
        for hook in parameters.get("LifecycleHookSpecificationList") or []:
            self.create_lifecycle_hook(
                hook["LifecycleHookName"],
                name,
                hook["LifecycleTransition"],
                hook.get("HeartbeatTimeout"),
                hook.get("DefaultResult"),
            )
        group.reconcile(because.because_created(group.desired_capacity))
        return group

    def update_group(self, parameters: dict) -> None:
        group = self.find(parameters["AutoScalingGroupName"], "null")
        if group.is_pending_delete:
            raise ValidationError("The AutoScaling group may not be modified while it is pending delete")
        least = parameters.get("MinSize", group.min_size)
        most = parameters.get("MaxSize", group.max_size)
        before = group.desired_capacity
        desired = group_limits.desired_after_update(least, most, before, parameters.get("DesiredCapacity"))
        source = launch_source.from_parameters(parameters, self.ec2_backend, group.source)
        vpc_id = self._check_places(parameters) or group.vpc_id
        if source is not None:
            self._check_source(source, vpc_id)
        # Only now, when nothing can be refused any more: an update is all or nothing.
        group.take_places(parameters)
        group.take_settings(parameters)
        group.source = source or group.source
        group.min_size, group.max_size = least, most
        group.set_desired_capacity(desired, because.because_updated(least, most, before, desired))

    def _check_places(self, parameters: dict) -> str | None:
        """All subnets must exist, in one VPC. Answers the VPC."""
        given = parameters.get("VPCZoneIdentifier")
        if not given:
            return None
        try:
            subnets = self.ec2_backend.describe_subnets([name.strip() for name in given.split(",")])
        except ServiceException as unknown:
            raise ValidationError(unknown.message) from None
        vpcs = {subnet.vpc_id for subnet in subnets}
        if len(vpcs) > 1:
            raise ValidationError("The subnets you specified do not belong to the same VPC")
        return vpcs.pop()

    def _check_source(self, source: LaunchSource, vpc_id: str | None) -> None:
        if source.configuration_name:
            if source.configuration_name not in self.launch_configurations:
                raise ValidationError(
                    f"Launch configuration name not found - Launch configuration "
                    f"{source.configuration_name} not found"
                )
            return
        try:
            version = source.version(self.ec2_backend)
            for override in source.overrides or [{}]:
                launch_check.plan(self.ec2_backend, version.data, override.get("InstanceType"), vpc_id)
        except launch_check.LaunchRefusal as refusal:
            raise launch_source.not_fully_formed(refusal.reason) from None
        except ServiceException as unknown:
            raise launch_source.not_fully_formed(unknown.message) from None

    def delete_group(self, name: str, force: bool) -> None:
        group = self.find(name)
        if group.instance_states and not force:
            raise AutoscalingClientError(
                "ResourceInUse",
                "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance "
                "request(s) still in the group.",
            )
        cause = because.because_updated(0, group.max_size, group.desired_capacity, 0)
        before = len(group.active_instances())
        group.status = "Delete in progress"
        group.min_size = group.desired_capacity = 0
        for member in [member for member in group.instance_states if not member.is_leaving]:
            selected = because.because_selected(member.instance_id, before, 0)
            # Lifecycle actions that are still open end with the group.
            group.terminate_member(member, cause + selected, heeds_holds=False)
        if not group.instance_states:
            self._forget(group)

    def _forget(self, group: SimulatedGroup) -> None:
        if self.autoscaling_groups.get(group.name) is not group:
            return
        self.autoscaling_groups.pop(group.name)
        self._moving.discard(group)
        for hook in self.describe_lifecycle_hooks(group.name):
            self.delete_lifecycle_hook(group.name, hook.name)
        self.activities.close_group(group)

    def set_capacity(self, name: str, desired: int) -> None:
        group = self.find(name)
        group_limits.check_set(group, desired)
        before = group.desired_capacity
        cause = because.because_capacity_set(before, desired) if desired != before else ""
        group.set_desired_capacity(desired, cause)

    def find_member(self, instance_id: str) -> tuple[SimulatedGroup, Member]:
        for group in self.autoscaling_groups.values():
            for member in group.instance_states:
                if member.instance_id == instance_id:
                    return group, member
        raise ValidationError(
            f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
        )

    def terminate_instance(self, instance_id: str, should_decrement: bool) -> ScalingActivity:
        group, member = self.find_member(instance_id)
        if member.is_leaving and member.activity is not None:
            # Accepted: the request is fulfilled by what is under way, and changes no capacity a second time.
            return member.activity
        change = None
        if should_decrement:
            group_limits.check_decrement(group)
            change = (group.desired_capacity, group.desired_capacity - 1)
            group.desired_capacity -= 1
        activity = group.terminate_member(member, because.because_asked(instance_id, change))
        group.reconcile()
        return activity

    def enter_standby_instances(
        self, group_name: str, instance_ids: list[str], should_decrement: bool
    ) -> list[ScalingActivity]:
        group = self.find(group_name)
        members = self._members_in(group, instance_ids, "InService")
        if should_decrement:
            group_limits.check_standby(group, -len(members))
        return [self._move(group, member, -1 if should_decrement else 0) for member in members]

    def exit_standby_instances(self, group_name: str, instance_ids: list[str]) -> list[ScalingActivity]:
        group = self.find(group_name)
        members = self._members_in(group, instance_ids, "Standby")
        group_limits.check_standby(group, len(members))
        return [self._move(group, member, 1) for member in members]

    def _members_in(self, group: SimulatedGroup, instance_ids: list[str], state: str) -> list[Member]:
        """All are moved or none."""
        known = {member.instance_id: member for member in group.instance_states}
        for instance_id in instance_ids:
            if instance_id not in known:
                raise ValidationError(
                    f"The instance {instance_id} is not part of Auto Scaling group {group.name}."
                )
            if known[instance_id].lifecycle_state != state:
                raise ValidationError(f"The instance {instance_id} is not in {state}.")
        return [known[instance_id] for instance_id in instance_ids]

    def _move(self, group: SimulatedGroup, member: Member, change: int) -> ScalingActivity:
        """Into standby, or with an increase of the capacity out of it."""
        before, leaves = group.desired_capacity, change > 0
        after = before + change
        reason = because.because_returned if leaves else because.because_stands_by
        activity = self.activities.begin(
            group,
            f"Moving EC2 instance {'out of' if leaves else 'to'} Standby: {member.instance_id}",
            reason(member.instance_id, before, after),
        )
        activity.place(member.availability_zone, member.instance.subnet_id)
        member.stand_by(not leaves)
        group.desired_capacity = after
        activity.succeed()
        group.reconcile()
        return activity

    def complete_lifecycle_action(self, instance_id: str | None, result: str) -> None:
        group, member = self.find_member(instance_id or "")
        if not member.waits:
            raise ValidationError(f"No active Lifecycle Action found with instance ID {instance_id}")
        starting = not member.is_leaving
        member.proceed()
        if starting and result == "ABANDON":
            group.terminate_member(member, because.because_abandoned(instance_id))
            group.reconcile()
        group.advance()

    def set_instance_health(self, instance_id: str, health_status: str, respect_grace: bool = True) -> None:
        group, member = self.find_member(instance_id)
        age = (clock.naive_now() - member.instance.launch_time).total_seconds()
        if respect_grace and age < (group.health_check_grace_period or 0):
            return
        member.health_status = health_status
        group.replace_unhealthy("a user health-check")

    def notify_terminate_instances(self, instance_ids: list[str]) -> None:
        """Instances that somebody terminated in EC2: the health check finds out and replaces them."""
        for group in list(self.autoscaling_groups.values()):
            if any(member.instance_id in instance_ids for member in group.instance_states):
                group.check_health()

    def suspend_processes(self, group_name: str, scaling_processes: list[str]) -> None:
        group = self.find(group_name)
        names = [process["ProcessName"] for process in group.suspended_processes]
        group.suspended_processes = names + _known_processes(scaling_processes)

    def resume_processes(self, group_name: str, scaling_processes: list[str]) -> None:
        group = self.find(group_name)
        resumed = _known_processes(scaling_processes)
        group.suspended_processes = [
            process["ProcessName"]
            for process in group.suspended_processes
            if process["ProcessName"] not in resumed
        ]
        group.check_health()
        group.reconcile()

    def enable_metrics_collection(self, group_name: str, metrics: list[str]) -> None:
        group = self.find(group_name)
        # No list means every metric.
        enabled = set(group.metrics) | set(metrics or METRICS)
        group.metrics = [metric for metric in METRICS if metric in enabled]

    def disable_metrics_collection(self, group_name: str, metrics: list[str]) -> None:
        group = self.find(group_name)
        group.metrics = [metric for metric in group.metrics if metrics and metric not in metrics]


def _known_processes(given: list[str]) -> list[str]:
    unknown = [name for name in given if name not in PROCESSES]
    if unknown:
        raise ValidationError(f"Invalid process name(s): {', '.join(unknown)}")
    return list(given or PROCESSES)
