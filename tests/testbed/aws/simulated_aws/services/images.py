"""Owns machine images: their dates, their deprecation, and what DescribeImages tells of them.

It must not decide whether an instance may be launched from one.
"""

from datetime import datetime

from moto.ec2.exceptions import InvalidAMIIdError, MalformedAMIIdError
from moto.ec2.models.amis import Ami
from moto.ec2.utils import generic_filter

from .. import clock

# The account that publishes the EKS-optimised images in most regions.
EKS_OWNER = "602401143452"


class Image(Ami):
    def __init__(
        self, *positional: object, deprecation_time: datetime | None = None, **named: object
    ) -> None:
        super().__init__(*positional, **named)
        self.deprecates_at = deprecation_time
        self.ena_support = True
        self.platform_details = "Linux/UNIX"
        self.usage_operation = "RunInstances"

    @property
    def deprecation_time(self) -> str | None:
        return clock.rfc3339(self.deprecates_at) if self.deprecates_at else None

    @property
    def deprecated(self) -> bool:
        return self.deprecates_at is not None and self.deprecates_at <= clock.naive_now()

    def get_filter_value(self, filter_name: str, method_name: str | None = None) -> object:
        if filter_name == "creation-date":
            return clock.rfc3339(self.creation_date)
        return super().get_filter_value(filter_name, method_name)


def register(
    ec2: object,
    *,
    name: str,
    architecture: str,
    creation_date: datetime | None,
    image_id: str | None,
    deprecation_time: datetime | None,
) -> Image:
    """Add an image owned by Amazon, as the EKS-optimised ones are."""
    from moto.ec2.utils import random_ami_id

    image = Image(
        ec2,
        image_id or random_ami_id(),
        name=name,
        description=name,
        owner_id=EKS_OWNER,
        owner_alias="amazon",
        public=True,
        virtualization_type="hvm",
        architecture=architecture,
        creation_date=creation_date or clock.naive_now(),
        image_location=f"amazon/{name}",
        hypervisor="xen",
        root_device_type="ebs",
        root_device_name="/dev/xvda",
        region_name=f"{ec2.region_name}a",
        deprecation_time=deprecation_time,
    )
    ec2.amis[image.id] = image
    if image.id in ec2.deleted_amis:
        ec2.deleted_amis.remove(image.id)
    return image


def describe(
    ec2: object,
    ids: list[str],
    filters: dict[str, list[str]],
    owners: list[str],
    include_deprecated: bool,
) -> list[Image]:
    images = list(ec2.amis.values())
    if ids:
        malformed = [image_id for image_id in ids if not image_id.startswith("ami-")]
        if malformed:
            raise MalformedAMIIdError(malformed)
        # One unknown identifier fails the call. A deregistered image is passed over in silence as
        # long as an instance still refers to it, and is unknown afterwards.
        unknown = [image_id for image_id in ids if image_id not in ec2.amis and not _referred(ec2, image_id)]
        if unknown:
            raise InvalidAMIIdError(unknown)
        images = [image for image in images if image.id in ids]
    elif not include_deprecated:
        # Deprecated images are listed to their owner only.
        images = [image for image in images if not image.deprecated or image.owner_id == ec2.account_id]
    if owners:
        wanted = {ec2.account_id if owner == "self" else owner for owner in owners}
        images = [image for image in images if image.owner_id in wanted or image.owner_alias in wanted]
    return generic_filter(filters, images)


def _referred(ec2: object, image_id: str) -> bool:
    return image_id in ec2.deleted_amis and any(
        instance.image_id == image_id and instance.state != "terminated" for instance in ec2.all_instances()
    )
