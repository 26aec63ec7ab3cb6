"""Owns what tests and the node simulator read of the world without calling AWS.

It must not change anything.
"""

from datetime import timedelta

from moto.iam.exceptions import NotFoundException

from .. import clock


def instances(request: object) -> dict:
    """The members of all groups of all regions."""
    iam = request.simulation.iam()
    return {
        "instances": [
            _shown(member, iam)
            for backend in request.simulation.all_autoscaling()
            for group in backend.autoscaling_groups.values()
            for member in group.instance_states
        ]
    }


def _shown(member: object, iam: object) -> dict:
    instance, template = member.instance, member.launch_template or {}
    fate = _fate(member)
    profile_arn = (instance.iam_instance_profile or {}).get("Arn")
    return {
        "instanceId": member.instance_id,
        "zone": member.availability_zone,
        "groupName": member.auto_scaling_group_name,
        "lifecycleState": member.lifecycle_state,
        "instanceState": instance.state,
        "healthStatus": member.health_status,
        "launchTemplateId": template.get("LaunchTemplateId"),
        "launchTemplateVersion": template.get("Version"),
        "imageId": instance.image_id,
        "instanceType": instance.instance_type,
        "privateDnsName": member.private_dns_name,
        "nodeJoins": fate.joins,
        "nodeJoinDue": _join_is_due(member, fate),
        "instanceProfileArn": profile_arn,
        "roleArn": _role(iam, profile_arn),
        "launchedAt": clock.rfc3339(instance.launch_time),
    }


def _fate(member: object) -> object:
    conditions = member.auto_scaling_group.autoscaling_backend.conditions
    return conditions.fate(member.auto_scaling_group_name, member.instance.image_id)


def _join_is_due(member: object, fate: object) -> bool:
    """The machine has run long enough for its Node to register."""
    since = member.running_since
    return since is not None and clock.naive_now() >= since + timedelta(seconds=fate.join_seconds)


def _role(iam: object, profile_arn: str | None) -> str | None:
    """The role that the profile names now: replacing it changes what running instances are."""
    if not profile_arn:
        return None
    try:
        roles = iam.get_instance_profile_by_arn(profile_arn).roles
    except NotFoundException:
        return None
    return roles[0].arn if roles else None
