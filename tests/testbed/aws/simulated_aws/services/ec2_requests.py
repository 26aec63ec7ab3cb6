"""Owns the EC2 actions that need more than moto's handlers: images, and what terminates instances.

It must not keep state.
"""

from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.responses import EC2Response

from . import images
from .launch_template_requests import LaunchTemplateRequests


class Ec2Requests(LaunchTemplateRequests, EC2Response):
    def __init__(self) -> None:
        EC2Response.__init__(self)

    def describe_images(self) -> ActionResult:
        self.error_on_dryrun()
        found = images.describe(
            self.ec2_backend,
            self._get_param("ImageIds", []),
            self._filters_from_querystring(),
            self._get_param("Owners", []),
            self._get_bool_param("IncludeDeprecated", False),
        )
        return ActionResult({"Images": found})

    def terminate_instances(self) -> ActionResult:
        # One unknown identifier fails the call as a whole on AWS.
        known = {instance.id for instance in self.ec2_backend.all_instances()}
        unknown = [name for name in self._get_param("InstanceIds", []) if name not in known]
        if unknown:
            raise InvalidInstanceIdError(unknown)
        return super().terminate_instances()
