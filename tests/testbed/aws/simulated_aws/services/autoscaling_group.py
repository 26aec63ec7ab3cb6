"""Owns a group and its members: bringing the number of instances to the desired capacity.

It must not read requests; limits and templates were verified by the back end before. How long a member
takes for a step is the member's affair.
"""

import itertools
import math
from datetime import datetime, timedelta

from moto.autoscaling.models import FakeAutoScalingGroup

from .. import clock
from . import scaling_activity as because
from . import termination_policy
from .capacity import CapacityRefusal
from .instance_launch import first_override, launch, places
from .launch_check import LaunchRefusal
from .launch_source import LaunchSource
from .member import Member

METRICS = (
    "GroupMinSize",
    "GroupMaxSize",
    "GroupDesiredCapacity",
    "GroupInServiceInstances",
    "GroupPendingInstances",
    "GroupStandbyInstances",
    "GroupTerminatingInstances",
    "GroupTotalInstances",
    "GroupInServiceCapacity",
    "GroupPendingCapacity",
    "GroupStandbyCapacity",
    "GroupTerminatingCapacity",
    "GroupTotalCapacity",
    "WarmPoolDesiredCapacity",
    "WarmPoolWarmedCapacity",
    "WarmPoolPendingCapacity",
    "WarmPoolTerminatingCapacity",
    "WarmPoolTotalCapacity",
    "GroupAndWarmPoolDesiredCapacity",
    "GroupAndWarmPoolTotalCapacity",
)


class SimulatedGroup(FakeAutoScalingGroup):
    _serials = itertools.count(1)

    def __init__(self, backend: object, parameters: dict, source: LaunchSource) -> None:
        self.serial = next(self._serials)
        self.source = source
        # moto's constructor asks for the desired capacity before the group is complete.
        self._complete = False
        super().__init__(
            name=parameters["AutoScalingGroupName"],
            availability_zones=parameters.get("AvailabilityZones") or [],
            desired_capacity=parameters.get("DesiredCapacity"),
            max_size=parameters["MaxSize"],
            min_size=parameters["MinSize"],
            launch_config_name="",
            launch_template={},
            vpc_zone_identifier=parameters.get("VPCZoneIdentifier"),
            default_cooldown=None,
            health_check_period=0,
            health_check_type=None,
            load_balancers=parameters.get("LoadBalancerNames") or [],
            target_group_arns=parameters.get("TargetGroupARNs") or [],
            placement_group=None,
            termination_policies=[],
            autoscaling_backend=backend,
            ec2_backend=backend.ec2_backend,
            tags=parameters.get("Tags") or [],
            mixed_instances_policy=None,
            capacity_rebalance=False,
        )
        self.created_time = clock.naive_now()
        self.status: str | None = None
        self.default_instance_warmup: int | None = None
        self.max_instance_lifetime: int | None = None
        self.desired_capacity_type: str | None = None
        self.instance_maintenance_policy: dict | None = None
        self.context: str | None = None
        # Its latest launch found no capacity.
        self.is_short = False
        self._retry_at: datetime | None = None
        self.take_settings(parameters)
        self._complete = True

    def take_settings(self, parameters: dict) -> None:
        """The plain settings that create and update share; moto's update forgets most of them."""
        for parameter, attribute in (
            ("DefaultCooldown", "default_cooldown"),
            ("HealthCheckGracePeriod", "health_check_grace_period"),
            ("HealthCheckType", "health_check_type"),
            ("PlacementGroup", "placement_group"),
            ("TerminationPolicies", "termination_policies"),
            ("NewInstancesProtectedFromScaleIn", "new_instances_protected_from_scale_in"),
            ("ServiceLinkedRoleARN", "service_linked_role_arn"),
            ("CapacityRebalance", "capacity_rebalance"),
            ("DefaultInstanceWarmup", "default_instance_warmup"),
            ("MaxInstanceLifetime", "max_instance_lifetime"),
            ("DesiredCapacityType", "desired_capacity_type"),
            ("InstanceMaintenancePolicy", "instance_maintenance_policy"),
            ("Context", "context"),
        ):
            if parameters.get(parameter) is not None:
                setattr(self, attribute, parameters[parameter])

    def take_places(self, parameters: dict) -> None:
        zones, subnets = parameters.get("AvailabilityZones") or [], parameters.get("VPCZoneIdentifier")
        if zones or subnets:
            self._set_azs_and_vpcs(zones, subnets, update=True)

    def _set_launch_configuration(self, *_: object, **__: object) -> None:
        """The source replaces moto's attributes."""

    @property
    def launch_template(self) -> dict | None:
        return self.source.shown_template

    @property
    def launch_configuration_name(self) -> str | None:
        return self.source.configuration_name

    @property
    def mixed_instances_policy(self) -> dict | None:
        return self.source.mixed_policy

    @mixed_instances_policy.setter
    def mixed_instances_policy(self, _: object) -> None:
        """Part of the source."""

    @property
    def suspended_processes(self) -> list[dict[str, str]]:
        return [
            {"ProcessName": name, "SuspensionReason": f"User suspended at {clock.whole_seconds(at)}"}
            for name, at in sorted(self._suspended.items())
        ]

    @suspended_processes.setter
    def suspended_processes(self, names: list[str]) -> None:
        known = getattr(self, "_suspended", {})
        self._suspended = {name: known.get(name, clock.naive_now()) for name in names}

    def is_suspended(self, process: str) -> bool:
        return process in self._suspended

    @property
    def vpc_id(self) -> str | None:
        subnet_id = self.subnet_in(self.availability_zones[0])
        return self.ec2_backend.get_subnet(subnet_id).vpc_id if subnet_id else None

    def subnet_in(self, zone: str) -> str | None:
        if self.vpc_zone_identifier:
            for subnet_id in self.vpc_zone_identifier.split(","):
                if self.ec2_backend.get_subnet(subnet_id.strip()).availability_zone == zone:
                    return subnet_id.strip()
        subnet = self.ec2_backend.get_default_subnets().get(zone)
        return subnet.id if subnet else None

    def set_desired_capacity(self, new_capacity: int | None, cause: str = "") -> None:
        self.desired_capacity = self.min_size if new_capacity is None else new_capacity
        self.reconcile(cause)

    def active_instances(self) -> list[Member]:
        return [member for member in self.instance_states if member.is_active]

    @property
    def is_pending_delete(self) -> bool:
        return self.status is not None

    @property
    def is_moving(self) -> bool:
        """Whether time alone will change it."""
        return self._retry_at is not None or any(member.is_moving for member in self.instance_states)

    def advance(self) -> None:
        """Let everything happen that is due by the clock."""
        for member in self.instance_states:
            member.advance()
        self._bury()
        self.check_health()
        if self._retry_at is not None and self._retry_at <= clock.naive_now():
            self.reconcile()

    def reconcile(self, cause: str = "") -> None:
        """Launch or terminate what separates the group from its desired capacity."""
        if not self._complete or self.is_pending_delete:
            return
        self.is_short, self._retry_at = False, None
        difference = self._wanted_instances() - len(self.active_instances())
        if difference > 0 and not self.is_suspended("Launch"):
            self._scale_out(difference, cause)
        elif difference < 0 and not self.is_suspended("Terminate"):
            self._scale_in(-difference, cause)
        if difference and self.name in self.autoscaling_backend.autoscaling_groups:
            self.autoscaling_backend.update_attached_elbs(self.name)
            self.autoscaling_backend.update_attached_target_groups(self.name)
        self.autoscaling_backend.follow(self)

    def check_health(self) -> None:
        """Notice instances that EC2 has lost, and replace them unless that is suspended."""
        if self.is_suspended("HealthCheck"):
            return
        for member in self.instance_states:
            if member.is_active and member.has_lost_its_machine:
                member.health_status = "Unhealthy"
        self.replace_unhealthy("an EC2 health check indicating it has been terminated or stopped")

    def replace_unhealthy(self, check: str) -> None:
        if self.is_suspended("ReplaceUnhealthy") or self.is_suspended("Terminate"):
            return
        unhealthy = [member for member in self.active_instances() if member.health_status == "Unhealthy"]
        for member in unhealthy:
            self.terminate_member(member, because.because_unhealthy(check))
        if unhealthy:
            self.reconcile()

    def rebalance(self) -> int:
        """Even out the zones, launching before terminating. Answers how many instances moved."""
        if any(self.is_suspended(process) for process in ("AZRebalance", "Launch", "Terminate")):
            return 0
        moved = 0
        for _ in self.active_instances():
            fullest = termination_policy.overfull_zone(self.active_instances(), self.availability_zones)
            before = len(self.active_instances())
            if fullest is None:
                break
            self._launch_one(because.because_unbalanced(), before, before + 1)
            there = [member for member in self.active_instances() if member.availability_zone == fullest]
            chosen = termination_policy.select(there, 1, self.termination_policies)
            if not chosen or len(self.active_instances()) == before:
                break
            self.terminate_member(chosen[0], because.because_unbalanced())
            moved += 1
        return moved

    def _wanted_instances(self) -> int:
        weight = int(first_override(self.source).get("WeightedCapacity") or 1)
        return math.ceil((self.desired_capacity or 0) / weight)

    def _scale_out(self, count: int, cause: str) -> None:
        before = len(self.active_instances())
        for _ in range(count):
            self._launch_one(cause, before, before + count)

    def _launch_one(self, cause: str, before: int, after: int) -> None:
        """One instance, in the next zone where the first has no capacity. Each try is an activity."""
        spot = self._next_is_spot()
        for zone, subnet_id in places(self):
            activity = self.autoscaling_backend.activities.begin(
                self, "Launching a new EC2 instance", cause + because.because_launched(before, after)
            )
            activity.place(zone, subnet_id)
            try:
                instance, template = launch(self, zone, subnet_id, spot)
            except LaunchRefusal as refusal:
                activity.fail(refusal.reason)
                self._note_failure(refusal)
                if isinstance(refusal, CapacityRefusal):
                    continue
                return
            instance.autoscaling_group = self
            member = Member(
                instance,
                protected_from_scale_in=self.new_instances_protected_from_scale_in,
                template=template,
            )
            self.instance_states.append(member)
            activity.description += f": {instance.id}"
            member.begin_life(activity, self._timing().boot_seconds)
            return

    def _note_failure(self, refusal: LaunchRefusal) -> None:
        self.is_short = self.is_short or isinstance(refusal, CapacityRefusal)
        if patience := self._timing().retry_seconds:
            self._retry_at = clock.naive_now() + timedelta(seconds=patience)

    def _timing(self) -> object:
        return self.autoscaling_backend.conditions.timing(self.name)

    def _next_is_spot(self) -> bool:
        """On-demand up to the base, then the given share of what exceeds it."""
        if not self.source.mixed_policy:
            return False
        distribution = self.source.mixed_policy["InstancesDistribution"]
        base = int(distribution["OnDemandBaseCapacity"])
        share = int(distribution["OnDemandPercentageAboveBaseCapacity"]) / 100
        active = self.active_instances()
        on_demand = sum(member.instance.lifecycle != "spot" for member in active)
        return on_demand >= base + math.ceil(max(0, len(active) + 1 - base) * share)

    def _scale_in(self, count: int, cause: str) -> None:
        before = len(self.active_instances())
        for member in termination_policy.select(self.active_instances(), count, self.termination_policies):
            self.terminate_member(
                member, cause + because.because_selected(member.instance_id, before, before - count)
            )

    def terminate_member(self, member: Member, cause: str, heeds_holds: bool = True) -> object:
        activity = self.autoscaling_backend.activities.begin(
            self, f"Terminating EC2 instance: {member.instance_id}", cause
        )
        activity.place(member.availability_zone, member.instance.subnet_id)
        member.begin_end(activity, self._timing().termination_seconds, heeds_holds)
        self._bury()
        self.autoscaling_backend.follow(self)
        return activity

    def _bury(self) -> None:
        self.instance_states = [member for member in self.instance_states if not member.is_gone]
