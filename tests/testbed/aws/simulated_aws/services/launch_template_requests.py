"""Owns the EC2 actions on launch templates: reading the parameters and shaping the answers.

It must not keep state; that is the template store's.
"""

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, InvalidLaunchTemplateVersionNotFound
from moto.ec2.responses._base_response import EC2BaseResponse
from moto.ec2.utils import convert_tag_spec

from .. import paging
from .ec2_filters import matches
from .launch_template import LaunchTemplateVersion, SimulatedTemplate, complete_data

_MOST_RESULTS = 200
_ALIASES = ("$Latest", "$Default")


class LaunchTemplateRequests(EC2BaseResponse):
    def create_launch_template(self) -> ActionResult:
        self.error_on_dryrun()
        return ActionResult(
            self.ec2_backend.tokens.once("CreateLaunchTemplate", self.params, self._create_template)
        )

    def _create_template(self) -> dict:
        data = self._get_param("LaunchTemplateData")
        if not data:
            raise EC2ClientError(
                "MissingParameter", "The request must contain the parameter LaunchTemplateData"
            )
        # Tags of the template itself stay out of its data, where moto puts them too.
        tags = convert_tag_spec(self._get_param("TagSpecifications", []))
        template = self.ec2_backend.create_launch_template(
            self._get_param("LaunchTemplateName"),
            self._get_param("VersionDescription"),
            complete_data(data, None),
            tags,
        )
        return {"LaunchTemplate": self._template(template)}

    def create_launch_template_version(self) -> ActionResult:
        self.error_on_dryrun()
        return ActionResult(
            self.ec2_backend.tokens.once("CreateLaunchTemplateVersion", self.params, self._create_version)
        )

    def _create_version(self) -> dict:
        template = self._named_template()
        source = self._get_param("SourceVersion")
        data = complete_data(
            self._get_param("LaunchTemplateData", {}), template.get_version(source) if source else None
        )
        version = template.create_version(data, self._get_param("VersionDescription"))
        return {"LaunchTemplateVersion": self._version(version)}

    def delete_launch_template(self) -> ActionResult:
        self.error_on_dryrun()
        template = self._named_template()
        answer = {"LaunchTemplate": self._template(template)}
        self.ec2_backend.remove_template(template)
        return ActionResult(answer)

    def delete_launch_template_versions(self) -> ActionResult:
        self.error_on_dryrun()
        template = self._named_template()
        deleted, kept = [], []
        for number in self._get_param("Versions", []):
            item = {
                "LaunchTemplateId": template.id,
                "LaunchTemplateName": template.name,
                "VersionNumber": int(number) if number.isdigit() else 0,
            }
            refusal = _refusal_to_delete(template, number)
            if refusal:
                kept.append({**item, "ResponseError": {"Code": refusal[0], "Message": refusal[1]}})
            else:
                template.versions.remove(template.get_version(number))
                deleted.append(item)
        return ActionResult(
            {
                "SuccessfullyDeletedLaunchTemplateVersions": deleted,
                "UnsuccessfullyDeletedLaunchTemplateVersions": kept,
            }
        )

    def modify_launch_template(self) -> ActionResult:
        self.error_on_dryrun()
        return ActionResult(
            self.ec2_backend.tokens.once("ModifyLaunchTemplate", self.params, self._modify_template)
        )

    def _modify_template(self) -> dict:
        template = self._named_template()
        number = str(self._get_param("DefaultVersion"))
        template.default_version_number = template.get_version(number).number
        return {"LaunchTemplate": self._template(template)}

    def describe_launch_templates(self) -> ActionResult:
        self.error_on_dryrun()
        templates = self.ec2_backend.describe_launch_templates(
            template_names=self._get_param("LaunchTemplateNames", []),
            template_ids=self._get_param("LaunchTemplateIds", []),
            filters=self._filters_from_querystring(),
        )
        shown, token = self._page(templates, lambda template: template.serial)
        return ActionResult(
            {"LaunchTemplates": [self._template(template) for template in shown], "NextToken": token}
        )

    def describe_launch_template_versions(self) -> ActionResult:
        self.error_on_dryrun()
        filters = self._filters_from_querystring()
        versions = [version for version in self._wanted_versions() if _version_matches(version, filters)]
        # Newest first within a template.
        shown, token = self._page(versions, lambda version: (version.template.serial, -version.number))
        return ActionResult(
            {"LaunchTemplateVersions": [self._version(version) for version in shown], "NextToken": token}
        )

    def _wanted_versions(self) -> list[LaunchTemplateVersion]:
        wanted = self._get_param("Versions", [])
        name, template_id = self._get_param("LaunchTemplateName"), self._get_param("LaunchTemplateId")
        if not name and not template_id:
            # Without a template the aliases, and only they, speak of all templates of the account.
            if not wanted or any(alias not in _ALIASES for alias in wanted):
                raise EC2ClientError(
                    "MissingParameter" if not wanted else "InvalidParameterValue",
                    "To describe the launch template data for all your launch templates, for '--versions' "
                    "specify '$Latest', '$Default', or both, and omit '--launch-template-id', "
                    "'--launch-template-name', and version numbers.",
                )
            found = [
                template.get_version(alias)
                for template in self.ec2_backend.launch_templates.values()
                for alias in wanted
            ]
            return list(dict.fromkeys(found))
        template = self._named_template()
        if wanted:
            return list(dict.fromkeys(template.get_version(number) for number in wanted))
        least = self._get_int_param("MinVersion", 1)
        most = self._get_int_param("MaxVersion", template.last_number)
        return [version for version in template.versions if least <= version.number <= most]

    def _named_template(self) -> SimulatedTemplate:
        return self.ec2_backend.find_template(
            self._get_param("LaunchTemplateId"), self._get_param("LaunchTemplateName")
        )

    def _page(self, items: list, key: object) -> tuple[list, str | None]:
        size = self._get_int_param("MaxResults", _MOST_RESULTS)
        if not 1 <= size <= _MOST_RESULTS:
            raise EC2ClientError(
                "InvalidParameterValue",
                f"Value ( {size} ) for parameter maxResults is invalid. Parameter must be between 1 and 200",
            )
        try:
            return paging.page(items, key, size, self._get_param("NextToken"))
        except paging.InvalidToken:
            raise EC2ClientError("InvalidNextToken", "The token is invalid.") from None

    def _template(self, template: SimulatedTemplate) -> dict:
        return {
            "CreateTime": template.create_time,
            "CreatedBy": self._creator(),
            "DefaultVersionNumber": template.default_version_number,
            "LatestVersionNumber": template.latest_version_number,
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Tags": template.tags,
        }

    def _version(self, version: LaunchTemplateVersion) -> dict:
        return {
            "CreateTime": version.create_time,
            "CreatedBy": self._creator(),
            "DefaultVersion": version.template.is_default(version),
            "LaunchTemplateData": version.data,
            "LaunchTemplateId": version.template.id,
            "LaunchTemplateName": version.template.name,
            "VersionDescription": version.description,
            "VersionNumber": version.number,
        }

    def _creator(self) -> str:
        return f"arn:{self.partition}:iam::{self.current_account}:root"


def _refusal_to_delete(template: SimulatedTemplate, number: str) -> tuple[str, str] | None:
    try:
        version = template.get_version(number)
    except InvalidLaunchTemplateVersionNotFound:
        return (
            "launchTemplateVersionDoesNotExist",
            f"The launch template version {number} is not found for the launch template {template.id}.",
        )
    if template.is_default(version):
        return "unexpectedError", f"Cannot delete the default version {number} of a launch template."
    return None


class _FilteredVersion:
    """Shows a version to the filter, whose names are those of DescribeLaunchTemplateVersions."""

    def __init__(self, version: LaunchTemplateVersion) -> None:
        self._version = version

    def get_filter_value(self, name: str) -> object:
        version, data = self._version, self._version.data
        values = {
            "create-time": version.create_time,
            "is-default-version": version.template.is_default(version),
            "image-id": data.get("ImageId"),
            "instance-type": data.get("InstanceType"),
            "ebs-optimized": data.get("EbsOptimized"),
            "iam-instance-profile": (data.get("IamInstanceProfile") or {}).get("Arn"),
        }
        if name not in values:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        return values[name]


def _version_matches(version: LaunchTemplateVersion, filters: dict) -> bool:
    return all(matches(_FilteredVersion(version), name, values) for name, values in filters.items())
