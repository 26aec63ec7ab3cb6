"""Owns launch templates and their versions as EC2 stores them.

It must not check whether instances could be launched: EC2 does not when a template is written.
"""

import copy
import itertools
import re

from moto.ec2.exceptions import (
    EC2ClientError,
    InvalidLaunchTemplateIdNotFound,
    InvalidLaunchTemplateNameAlreadyExistsError,
    InvalidLaunchTemplateNameNotFoundError,
    InvalidLaunchTemplateNameNotFoundWithNameError,
    InvalidLaunchTemplateVersionNotFound,
)
from moto.ec2.models import launch_templates as moto_templates
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateVersion
from moto.ec2.utils import parse_user_data

_NAME = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
_ID = re.compile(r"lt-[0-9a-f]{8,17}")
_USER_DATA_BYTES = 16384


class SimulatedTemplate(LaunchTemplate):
    """A template whose versions can be deleted: moto takes a version's number for its position."""

    _serials = itertools.count(1)

    def __init__(self, *positional: object, **named: object) -> None:
        self.serial = next(self._serials)
        self.last_number = 0
        super().__init__(*positional, **named)

    @property
    def tags(self) -> list[dict[str, str]]:
        return [{"Key": tag["key"], "Value": tag["value"]} for tag in self.get_tags()]

    @tags.setter
    def tags(self, _: object) -> None:
        """moto keeps the tags of the creation; they are read afresh instead."""

    def create_version(self, data: dict, description: str | None) -> LaunchTemplateVersion:
        # The numbers of deleted versions are never given again.
        self.last_number += 1
        version = LaunchTemplateVersion(self, self.last_number, data, description)
        self.versions.append(version)
        return version

    def get_version(self, num: object) -> LaunchTemplateVersion:
        wanted = str(num)
        if wanted.lower() == "$latest":
            return self.latest_version()
        if wanted.lower() == "$default":
            return self.default_version()
        for version in self.versions:
            if str(version.number) == wanted:
                return version
        raise InvalidLaunchTemplateVersionNotFound(version=wanted, template_id=self.id)

    def default_version(self) -> LaunchTemplateVersion:
        return next(version for version in self.versions if version.number == self.default_version_number)

    def latest_version(self) -> LaunchTemplateVersion:
        return self.versions[-1]

    def get_filter_value(self, filter_name: str, method_name: str | None = None) -> object:
        if filter_name == "create-time":
            return self.create_time
        return super().get_filter_value(filter_name, method_name)


class TemplateStore:
    """The part of the EC2 back end that finds, adds and removes templates."""

    def create_launch_template(
        self, name: str, description: str | None, template_data: dict, tag_spec: dict
    ) -> SimulatedTemplate:
        if not _NAME.fullmatch(name or ""):
            raise EC2ClientError(
                "InvalidLaunchTemplateName.MalformedException",
                "The launch template name must be between 3 and 128 characters, and may contain letters, "
                "numbers, and the following characters: - ( ) . / _",
            )
        if name in self.launch_template_name_to_ids:
            raise InvalidLaunchTemplateNameAlreadyExistsError()
        template = SimulatedTemplate(self, name, template_data, description, tag_spec)
        self.launch_templates[template.id] = template
        self.launch_template_name_to_ids[name] = template.id
        return template

    def find_template(self, template_id: str | None, name: str | None) -> SimulatedTemplate:
        if template_id and name:
            raise EC2ClientError(
                "InvalidParameterCombination",
                "The parameters launchTemplateId and launchTemplateName cannot be used together.",
            )
        if template_id:
            if not _ID.fullmatch(template_id):
                raise EC2ClientError(
                    "InvalidLaunchTemplateId.Malformed",
                    f"The launch template ID '{template_id}' is malformed.",
                )
            return self.get_launch_template(template_id)
        if name:
            return self.get_launch_template_by_name(name)
        raise EC2ClientError(
            "MissingParameter", "Either a launch template ID or a launch template name must be specified."
        )

    def get_launch_template(self, template_id: str) -> SimulatedTemplate:
        if template_id not in self.launch_templates:
            raise InvalidLaunchTemplateIdNotFound(template_id)
        return self.launch_templates[template_id]

    def get_launch_template_by_name(self, name: str) -> SimulatedTemplate:
        if name not in self.launch_template_name_to_ids:
            raise InvalidLaunchTemplateNameNotFoundWithNameError(name)
        return self.launch_templates[self.launch_template_name_to_ids[name]]

    def describe_launch_templates(
        self,
        template_names: list[str] | None = None,
        template_ids: list[str] | None = None,
        filters: dict | None = None,
    ) -> list[SimulatedTemplate]:
        if template_names:
            if any(name not in self.launch_template_name_to_ids for name in template_names):
                raise InvalidLaunchTemplateNameNotFoundError()
            templates = [self.get_launch_template_by_name(name) for name in dict.fromkeys(template_names)]
        elif template_ids:
            templates = [self.find_template(template_id, None) for template_id in dict.fromkeys(template_ids)]
        else:
            templates = list(self.launch_templates.values())
        return moto_templates.generic_filter(filters or {}, templates)

    def remove_template(self, template: SimulatedTemplate) -> None:
        """Groups that launch from the template keep their reference to it, as on AWS."""
        self.launch_templates.pop(template.id)
        self.launch_template_name_to_ids.pop(template.name)


def complete_data(data: dict, source: LaunchTemplateVersion | None) -> dict:
    """The content of a new version: the source's, overridden member by member by what was given."""
    content = copy.deepcopy(source.data) if source else {}
    content.update(data)
    user_data = content.pop("UserData", None)
    if user_data is not None:
        encoded = parse_user_data(str(user_data))
        if len(str(encoded)) * 3 // 4 - str(encoded)[-2:].count("=") > _USER_DATA_BYTES:
            raise EC2ClientError("InvalidParameterValue", "User data is limited to 16384 bytes")
        content["UserData"] = encoded
    return content
