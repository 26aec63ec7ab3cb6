"""Owns the launch of one instance for a group: where, from which version, with which tags.

It must not decide how many instances a group has, nor write the history.
"""

from collections import Counter

from moto.autoscaling.models import ASG_NAME_TAG
from moto.ec2.exceptions import EC2ClientError

from . import capacity, launch_check
from .capacity import CapacityRefusal
from .conditions import Launch
from .launch_check import LaunchRefusal


def places(group: object) -> list[tuple[str, str | None]]:
    """Zones and their subnets: the one with the fewest members first, else in the order as given.

    moto puts every instance into the first subnet; AWS balances the zones.
    """
    members = Counter(member.availability_zone for member in group.active_instances())
    zones = sorted(group.availability_zones, key=lambda name: members[name])
    return [(zone, group.subnet_in(zone)) for zone in zones]


def launch(group: object, zone: str, subnet_id: str | None, spot: bool) -> tuple[object, dict | None]:
    """Start an instance. Answers it together with the template version that it came from."""
    source = group.source
    if source.configuration_name:
        return _launch_from_configuration(group, zone, subnet_id), None
    try:
        version = source.version(group.ec2_backend)
    except EC2ClientError as gone:
        raise LaunchRefusal(gone.message) from None
    spot = spot or (version.data.get("InstanceMarketOptions") or {}).get("MarketType") == "spot"
    plan = _plan_with_capacity(group, zone, version.data, spot)
    tags = {
        **version.instance_tags,
        **group.get_propagated_tags(),
        ASG_NAME_TAG: group.name,
        "aws:ec2launchtemplate:id": version.template.id,
        "aws:ec2launchtemplate:version": str(version.number),
    }
    instance = _run(group, plan, subnet_id, tags, spot)
    template = {
        "LaunchTemplateId": version.template.id,
        "LaunchTemplateName": version.template.name,
        # Always the number: what $Latest and $Default meant is settled at the launch.
        "Version": str(version.number),
    }
    return instance, template


def _plan_with_capacity(group: object, zone: str, data: dict, spot: bool) -> object:
    """The prioritized strategy takes the first type that has capacity."""
    refusal = None
    for override in group.source.overrides or [{}]:
        plan = launch_check.plan(group.ec2_backend, data, override.get("InstanceType"), group.vpc_id)
        try:
            _check_capacity(group, zone, plan, spot)
        except CapacityRefusal as short:
            refusal = refusal or short
            continue
        return plan
    raise refusal


def _check_capacity(group: object, zone: str, plan: object, spot: bool) -> None:
    zones = sorted(known.name for known in group.ec2_backend.describe_availability_zones())
    wanted = Launch(group.name, zone, plan.image_id, plan.instance_type, spot)
    capacity.check(group.autoscaling_backend.conditions, wanted, zones)


def first_override(source: object) -> dict:
    """The one whose weight counts."""
    return source.overrides[0] if source.overrides else {}


def _run(group: object, plan: object, subnet_id: str | None, tags: dict, spot: bool) -> object:
    data = plan.data
    extra = {}
    if plan.profile is not None:
        extra["iam_instance_profile"] = {"Arn": plan.profile.arn, "Id": plan.profile.id}
    if spot:
        extra["instance_market_options"] = {"MarketType": "spot"}
    try:
        reservation = group.ec2_backend.run_instances(
            plan.image_id,
            1,
            data.get("UserData"),
            [],
            security_group_ids=list(plan.security_group_ids),
            instance_type=plan.instance_type,
            # Verified above; moto would search all offerings of the region once more.
            is_instance_type_default=True,
            region_name=group.region,
            subnet_id=subnet_id,
            tags={"instance": tags},
            key_name=data.get("KeyName"),
            ebs_optimized=data.get("EbsOptimized", False),
            monitoring_state="enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled",
            metadata_options=data.get("MetadataOptions") or {},
            block_device_mappings=_volumes(data),
            **extra,
        )
    except EC2ClientError as refused:
        raise LaunchRefusal(refused.message) from None
    return reservation.instances[0]


def _volumes(data: dict) -> list[dict]:
    return [
        {**mapping, "Ebs": {"VolumeSize": 20, **mapping["Ebs"]}}
        for mapping in data.get("BlockDeviceMappings") or []
        if mapping.get("Ebs") and mapping.get("DeviceName")
    ]


def _launch_from_configuration(group: object, zone: str, subnet_id: str | None) -> object:
    configuration = group.autoscaling_backend.launch_configurations[group.source.configuration_name]
    data = {
        "ImageId": configuration.image_id,
        "InstanceType": configuration.instance_type,
        "SecurityGroupIds": configuration.security_groups,
        "KeyName": configuration.key_name,
        "UserData": configuration.user_data,
    }
    if configuration.iam_instance_profile:
        member = "Arn" if configuration.iam_instance_profile.startswith("arn:") else "Name"
        data["IamInstanceProfile"] = {member: configuration.iam_instance_profile}
    plan = launch_check.plan(group.ec2_backend, data, None, group.vpc_id)
    _check_capacity(group, zone, plan, spot=False)
    return _run(group, plan, subnet_id, {**group.get_propagated_tags(), ASG_NAME_TAG: group.name}, spot=False)
