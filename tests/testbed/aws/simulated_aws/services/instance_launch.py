"""Owns the launch of one instance for a group: where, from which version, with which tags.

It must not decide how many instances a group has, nor write the history.
"""

from collections import Counter

from moto.autoscaling.models import ASG_NAME_TAG
from moto.ec2.exceptions import EC2ClientError

from . import launch_check
from .launch_check import LaunchRefusal


def choose_place(group: object) -> tuple[str, str | None]:
    """The zone with the fewest members, in the order in which the zones were given, and its subnet.

    moto puts every instance into the first subnet; AWS balances the zones.
    """
    members = Counter(member.availability_zone for member in group.active_instances())
    zone = min(group.availability_zones, key=lambda name: members[name])
    return zone, group.subnet_in(zone)


def launch(group: object, zone: str, subnet_id: str | None, spot: bool) -> tuple[object, dict | None]:
    """Start an instance. Answers it together with the template version that it came from."""
    source = group.source
    if source.configuration_name:
        return _launch_from_configuration(group, subnet_id), None
    try:
        version = source.version(group.ec2_backend)
    except EC2ClientError as gone:
        raise LaunchRefusal(gone.message) from None
    plan = launch_check.plan(
        group.ec2_backend, version.data, first_override(source).get("InstanceType"), group.vpc_id
    )
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


def first_override(source: object) -> dict:
    """The prioritized strategy takes the first type that has capacity, which here is the first."""
    return source.overrides[0] if source.overrides else {}


def _run(group: object, plan: object, subnet_id: str | None, tags: dict, spot: bool) -> object:
    data = plan.data
    extra = {}
    if plan.profile is not None:
        extra["iam_instance_profile"] = {"Arn": plan.profile.arn, "Id": plan.profile.id}
    if spot or (data.get("InstanceMarketOptions") or {}).get("MarketType") == "spot":
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


def _launch_from_configuration(group: object, subnet_id: str | None) -> object:
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
    return _run(group, plan, subnet_id, {**group.get_propagated_tags(), ASG_NAME_TAG: group.name}, spot=False)
