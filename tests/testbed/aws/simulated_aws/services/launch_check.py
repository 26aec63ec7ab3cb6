"""Owns the question whether EC2 would launch an instance from a template's content.

Autoscaling asks it when a group is written and again at each launch. It must not change anything.
"""

from dataclasses import dataclass

from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends


class LaunchRefusal(Exception):
    """EC2's reason not to launch."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class LaunchPlan:
    """Everything that one launch uses, verified."""

    image_id: str
    instance_type: str
    security_group_ids: list[str]
    profile: object | None
    data: dict


def plan(ec2: object, data: dict, instance_type: str | None, vpc_id: str | None) -> LaunchPlan:
    kind = instance_type or data.get("InstanceType")
    image = _image(ec2, data.get("ImageId"))
    if not kind:
        raise LaunchRefusal("The request must contain the parameter InstanceType")
    _check_type(kind, image)
    groups = security_groups(data)
    for group_id in groups:
        _check_group(ec2, group_id, vpc_id)
    key = data.get("KeyName")
    if key and key not in ec2.key_pairs:
        raise LaunchRefusal(f"The key pair '{key}' does not exist")
    return LaunchPlan(image.id, kind, groups, _profile(ec2, data.get("IamInstanceProfile")), data)


def security_groups(data: dict) -> list[str]:
    groups = list(data.get("SecurityGroupIds") or [])
    for interface in data.get("NetworkInterfaces") or []:
        groups += interface.get("Groups") or []
    return list(dict.fromkeys(groups))


def _image(ec2: object, image_id: str | None) -> object:
    if not image_id:
        raise LaunchRefusal("The request must contain the parameter ImageId")
    image = ec2.amis.get(image_id)
    if image is None or image.state != "available":
        raise LaunchRefusal(f"The image id '[{image_id}]' does not exist")
    return image


def _check_type(kind: str, image: object) -> None:
    if kind not in INSTANCE_TYPES:
        raise LaunchRefusal(f"Invalid value '{kind}' for InstanceType.")
    supported = INSTANCE_TYPES[kind].get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    if supported and image.architecture not in supported:
        raise LaunchRefusal(
            f"The architecture '{','.join(supported)}' of the specified instance type does not match the "
            f"architecture '{image.architecture}' of the specified AMI. Specify an instance type and an AMI "
            "that have matching architectures, and try again. You can use 'describe-instance-types' or "
            "'describe-images' to discover the architecture of the instance type or AMI."
        )


def _check_group(ec2: object, group_id: str, vpc_id: str | None) -> None:
    group = ec2.get_security_group_from_id(group_id)
    if group is None or (vpc_id and group.vpc_id != vpc_id):
        where = f" in VPC '{vpc_id}'" if vpc_id else ""
        raise LaunchRefusal(f"The security group '{group_id}' does not exist{where}")


def _profile(ec2: object, given: dict | None) -> object | None:
    if not given:
        return None
    iam = iam_backends[ec2.account_id]["aws"]
    name, arn = given.get("Name"), given.get("Arn")
    try:
        return iam.get_instance_profile(name) if name else iam.get_instance_profile_by_arn(arn)
    except NotFoundException:
        if name:
            reason = (
                f"Value ({name}) for parameter iamInstanceProfile.name is invalid. "
                "Invalid IAM Instance Profile name"
            )
        else:
            reason = (
                f"Value ({arn}) for parameter iamInstanceProfile.arn is invalid. "
                "Invalid IAM Instance Profile ARN"
            )
        raise LaunchRefusal(reason) from None
