"""Owns what tests and the node simulator read of the world without calling AWS.

It must not change anything.
"""

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
    profile_arn = (instance.iam_instance_profile or {}).get("Arn")
    return {
        "instanceId": member.instance_id,
        "zone": member.availability_zone,
        "groupName": member.auto_scaling_group_name,
        "lifecycleState": member.lifecycle_state,
        "healthStatus": member.health_status,
        "launchTemplateId": template.get("LaunchTemplateId"),
        "launchTemplateVersion": template.get("Version"),
        "imageId": instance.image_id,
        "instanceType": instance.instance_type,
        "privateDnsName": instance.private_dns_name,
        "instanceProfileArn": profile_arn,
        "roleArn": _role(iam, profile_arn),
        "launchedAt": clock.rfc3339(instance.launch_time),
    }


def _role(iam: object, profile_arn: str | None) -> str | None:
    """The role that the profile names now: replacing it changes what running instances are."""
    if not profile_arn:
        return None
    try:
        roles = iam.get_instance_profile_by_arn(profile_arn).roles
    except NotFoundException:
        return None
    return roles[0].arn if roles else None
