"""Owns the look-ups of EC2 resources that moto answers wrongly: subnets, groups, offerings.

It must not hold launch templates' versions nor the launching of instances.
"""

import itertools
from fnmatch import fnmatchcase

from moto.ec2.exceptions import (
    InvalidInstanceTypeError,
    InvalidSecurityGroupNotFoundError,
    InvalidSubnetIdError,
)
from moto.ec2.models import EC2Backend
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, generic_filter, get_prefix

from .client_token import TokenMemory
from .launch_template import TemplateStore


class SimulatedEc2(TemplateStore, EC2Backend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.tokens = TokenMemory()

    def describe_tags(self, filters: dict | None = None) -> list[dict[str, str]]:
        """moto walks over all tags of the region whenever one resource is shown."""
        if (
            not filters
            or list(filters) != ["resource-id"]
            or any("*" in name for name in filters["resource-id"])
        ):
            return super().describe_tags(filters)
        return [
            {
                "resource_id": resource_id,
                "key": key,
                "value": value,
                "resource_type": EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource_id), ""),
            }
            for resource_id in filters["resource-id"]
            for key, value in self.tags.get(resource_id, {}).items()
        ]

    def describe_subnets(self, subnet_ids: list[str] | None = None, filters: dict | None = None) -> list:
        subnets = list(itertools.chain.from_iterable(zone.values() for zone in self.subnets.values()))
        if subnet_ids:
            known = {subnet.id for subnet in subnets}
            for subnet_id in subnet_ids:
                if subnet_id not in known:
                    raise InvalidSubnetIdError(subnet_id)
            subnets = [subnet for subnet in subnets if subnet.id in subnet_ids]
        return generic_filter(filters or {}, subnets)

    def describe_security_groups(
        self,
        group_ids: list[str] | None = None,
        groupnames: list[str] | None = None,
        filters: dict | None = None,
    ) -> list:
        groups = list(itertools.chain.from_iterable(vpc.values() for vpc in self.groups.values()))
        for wanted, attribute in ((group_ids, "id"), (groupnames, "name")):
            if wanted:
                known = {getattr(group, attribute) for group in groups}
                for name in wanted:
                    if name not in known:
                        raise InvalidSecurityGroupNotFoundError(name)
                groups = [group for group in groups if getattr(group, attribute) in wanted]
        if filters:
            groups = [group for group in groups if group.matches_filters(filters)]
        return groups

    def describe_instance_types(
        self, instance_types: list[str] | None = None, filters: object = None
    ) -> list:
        kinds = self.instance_types
        if instance_types:
            known = {kind["InstanceType"] for kind in kinds}
            unknown = [name for name in instance_types if name not in known]
            if unknown:
                raise InvalidInstanceTypeError(unknown, error_type="InvalidInstanceType")
            kinds = [kind for kind in kinds if kind["InstanceType"] in instance_types]
        return generic_filter(filters or {}, kinds)

    def matches_filters(self, offering: dict, filters: dict, location_type: str) -> bool:
        """Names of types may hold wildcards on AWS (m5.*), which moto compares literally."""
        values = {"location": offering.get("Location"), "instance-type": offering.get("InstanceType")}
        return all(
            any(fnmatchcase(values.get(name) or "", pattern) for pattern in patterns)
            for name, patterns in filters.items()
        )

    def offered_zones(self, instance_type: str) -> set[str]:
        offerings = self.describe_instance_type_offerings(
            "availability-zone", {"instance-type": [instance_type]}
        )
        return {offering["Location"] for offering in offerings}
