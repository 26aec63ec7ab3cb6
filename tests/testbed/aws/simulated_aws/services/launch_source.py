"""Owns what a group launches from: a template with the version as given, a mixed policy, or a
launch configuration.

It must not launch; it resolves $Latest and $Default each time that it is asked.
"""

import copy
from dataclasses import dataclass

from moto.autoscaling.exceptions import ValidationError
from moto.ec2.exceptions import EC2ClientError

_DISTRIBUTION = {
    "OnDemandAllocationStrategy": "prioritized",
    "OnDemandBaseCapacity": 0,
    "OnDemandPercentageAboveBaseCapacity": 100,
    "SpotAllocationStrategy": "lowest-price",
    "SpotInstancePools": 2,
}


@dataclass
class LaunchSource:
    template_id: str | None = None
    template_name: str | None = None
    # As given: a number, $Latest, $Default, or nothing, which means $Default and is not shown.
    given_version: str | None = None
    mixed_policy: dict | None = None
    configuration_name: str | None = None

    @property
    def shown_template(self) -> dict | None:
        if self.mixed_policy or not self.template_id:
            return None
        return self._specification()

    @property
    def overrides(self) -> list[dict]:
        return self.mixed_policy["LaunchTemplate"]["Overrides"] if self.mixed_policy else []

    def version(self, ec2: object) -> object:
        """The version to launch from now. An EC2 error tells that it is gone."""
        template = ec2.get_launch_template(self.template_id)
        return template.get_version(self.given_version or "$Default")

    def _specification(self) -> dict:
        shown = {"LaunchTemplateId": self.template_id, "LaunchTemplateName": self.template_name}
        return {**shown, "Version": self.given_version} if self.given_version else shown


def from_parameters(parameters: dict, ec2: object, before: LaunchSource | None) -> LaunchSource | None:
    """Read the source from a create or update request; nothing if an update leaves it alone."""
    given = [
        name
        for name in ("LaunchTemplate", "LaunchConfigurationName", "MixedInstancesPolicy")
        if parameters.get(name)
    ]
    if len(given) > 1 or (not given and before is None):
        raise ValidationError(
            "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or "
            "MixedInstancesPolicy parameter."
        )
    if not given:
        return None
    if given == ["LaunchConfigurationName"]:
        return LaunchSource(configuration_name=parameters["LaunchConfigurationName"])
    if given == ["LaunchTemplate"]:
        return _from_specification(parameters["LaunchTemplate"], ec2)
    return _from_policy(parameters["MixedInstancesPolicy"], ec2, before)


def _from_specification(specification: dict, ec2: object) -> LaunchSource:
    template_id, name = specification.get("LaunchTemplateId"), specification.get("LaunchTemplateName")
    if bool(template_id) == bool(name):
        raise ValidationError("Valid requests must contain either launchTemplateId or LaunchTemplateName")
    try:
        template = ec2.find_template(template_id, name)
    except EC2ClientError as problem:
        raise not_fully_formed(problem.message) from None
    return LaunchSource(
        template_id=template.id,
        template_name=template.name,
        given_version=specification.get("Version") or None,
    )


def _from_policy(policy: dict, ec2: object, before: LaunchSource | None) -> LaunchSource:
    # An update may name a part of the policy only; the rest stays.
    former = before.mixed_policy if before and before.mixed_policy else {}
    template = policy.get("LaunchTemplate") or former.get("LaunchTemplate") or {}
    specification = template.get("LaunchTemplateSpecification")
    if not specification:
        raise ValidationError("Valid requests must contain either launchTemplateId or LaunchTemplateName")
    if "LaunchTemplateId" in specification and "LaunchTemplateName" in specification:
        specification = {name: value for name, value in specification.items() if name != "LaunchTemplateName"}
    source = _from_specification(specification, ec2)
    source.mixed_policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": source._specification(),
            "Overrides": copy.deepcopy(template.get("Overrides") or []),
        },
        "InstancesDistribution": {
            **_DISTRIBUTION,
            **former.get("InstancesDistribution", {}),
            **(policy.get("InstancesDistribution") or {}),
        },
    }
    return source


def not_fully_formed(reason: str) -> ValidationError:
    return ValidationError(f"You must use a valid fully-formed launch template. {reason}")
