"""Owns a group and its members: bringing the number of instances to the desired capacity.

It must not read requests; limits and templates were verified by the back end before. Everything
happens at once: `reconcile` is the one place from which lifecycle delays would be added.
"""

import itertools
import math

from moto.autoscaling.models import FakeAutoScalingGroup, InstanceState
from moto.core.exceptions import ServiceException

from .. import clock
from . import scaling_activity as because
from . import termination_policy
from .instance_launch import choose_place, first_override, launch
from .launch_check import LaunchRefusal
from .launch_source import LaunchSource

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


class Member(InstanceState):
    """An instance in a group. It keeps what it was launched from for all its life."""

    _serials = itertools.count(1)

    def __init__(self, *positional: object, template: dict | None = None, **named: object) -> None:
        self.serial = next(self._serials)
        self._template = template
        super().__init__(*positional, **named)

    @property
    def launch_template(self) -> dict | None:
        return self._template

    @property
    def launch_configuration_name(self) -> str | None:
        return None if self._template else self.auto_scaling_group.source.configuration_name


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

    def reconcile(self, cause: str = "") -> None:
        """Launch or terminate what separates the group from its desired capacity."""
        if not self._complete:
            return
        difference = self._wanted_instances() - len(self.active_instances())
        if difference > 0 and not self.is_suspended("Launch"):
            self._scale_out(difference, cause)
        elif difference < 0 and not self.is_suspended("Terminate"):
            self._scale_in(-difference, cause)
        if difference and self.name in self.autoscaling_backend.autoscaling_groups:
            self.autoscaling_backend.update_attached_elbs(self.name)
            self.autoscaling_backend.update_attached_target_groups(self.name)

    def _wanted_instances(self) -> int:
        weight = int(first_override(self.source).get("WeightedCapacity") or 1)
        return math.ceil((self.desired_capacity or 0) / weight)

    def _scale_out(self, count: int, cause: str) -> None:
        before = len(self.active_instances())
        for _ in range(count):
            activity = self.autoscaling_backend.activities.begin(
                self, "Launching a new EC2 instance", cause + because.because_launched(before, before + count)
            )
            zone, subnet_id = choose_place(self)
            activity.place(zone, subnet_id)
            try:
                instance, template = launch(self, zone, subnet_id, self._next_is_spot())
            except LaunchRefusal as refusal:
                activity.fail(refusal.reason)
                continue
            instance.autoscaling_group = self
            self.instance_states.append(
                Member(
                    instance,
                    protected_from_scale_in=self.new_instances_protected_from_scale_in,
                    template=template,
                )
            )
            activity.description += f": {instance.id}"
            activity.succeed()

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

    def terminate_member(self, member: Member, cause: str) -> object:
        activity = self.autoscaling_backend.activities.begin(
            self, f"Terminating EC2 instance: {member.instance_id}", cause
        )
        activity.place(member.availability_zone, member.instance.subnet_id)
        self.instance_states = [other for other in self.instance_states if other is not member]
        if member.instance.state != "terminated":
            try:
                self.ec2_backend.terminate_instances([member.instance_id])
            except ServiceException as refused:
                activity.status_message = refused.message
        activity.succeed()
        return activity
