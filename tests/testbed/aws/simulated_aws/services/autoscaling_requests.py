"""Owns the Auto Scaling actions: reading the parameters and shaping the answers.

It must not keep state.
"""

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import ActionResult, EmptyResult

from .. import paging

# These have their own answer to a name that no group has.
_OWN_ANSWER = ("CreateAutoScalingGroup", "UpdateAutoScalingGroup", "DescribeScalingActivities")
_MOST_RECORDS = 100


class AutoScalingRequests(AutoScalingResponse):
    def call_action(self) -> TYPE_RESPONSE:
        refusal = self._unknown_group()
        if refusal is not None:
            status, headers, body = self.serialized(ActionResult(refusal))
            return status, headers, body
        return super().call_action()

    def _unknown_group(self) -> ValidationError | None:
        """moto fails with a KeyError on the name of an unknown group in most actions."""
        action = self._get_action()
        names = [self.params.get("AutoScalingGroupName")] if action not in _OWN_ANSWER else []
        if action in ("CreateOrUpdateTags", "DeleteTags"):
            names = [tag.get("ResourceId") for tag in self.params.get("Tags", [])]
        for name in names:
            if name and name not in self.autoscaling_backend.autoscaling_groups:
                if action in ("CreateOrUpdateTags", "DeleteTags"):
                    return ValidationError(f"No AutoScalingGroup was found with the name {name}")
                try:
                    self.autoscaling_backend.find(name)
                except ValidationError as refusal:
                    return refusal
        return None

    def create_auto_scaling_group(self) -> ActionResult:
        self.autoscaling_backend.create_group(self._get_params())
        return EmptyResult()

    def update_auto_scaling_group(self) -> ActionResult:
        self.autoscaling_backend.update_group(self._get_params())
        return EmptyResult()

    def delete_auto_scaling_group(self) -> ActionResult:
        self.autoscaling_backend.delete_group(
            self._get_param("AutoScalingGroupName"), self._get_bool_param("ForceDelete", False)
        )
        return EmptyResult()

    def describe_auto_scaling_groups(self) -> ActionResult:
        filters = self._get_param("Filters", [])
        for given in filters:
            if given["Name"] not in ("tag-key", "tag-value") and not given["Name"].startswith("tag:"):
                raise ValidationError(
                    f"Filter type {given['Name']} is not correct. Allowed Filter types are: "
                    "[tag-key, tag-value, tag:<key>]"
                )
        groups = self.autoscaling_backend.describe_auto_scaling_groups(
            self._get_param("AutoScalingGroupNames", []), filters=filters
        )
        shown, token = self._page(groups, lambda group: group.serial, default=50)
        return ActionResult({"AutoScalingGroups": shown, "NextToken": token})

    def describe_auto_scaling_instances(self) -> ActionResult:
        members = self.autoscaling_backend.describe_auto_scaling_instances(self._get_param("InstanceIds", []))
        shown, token = self._page(members, lambda member: member.serial, default=50, most=50)
        return ActionResult({"AutoScalingInstances": shown, "NextToken": token})

    def describe_scaling_activities(self) -> ActionResult:
        name = self._get_param("AutoScalingGroupName")
        include_deleted = self._get_bool_param("IncludeDeletedGroups", False)
        if name and not include_deleted:
            self.autoscaling_backend.find(name, f"no such group: {name}")
        activities = self.autoscaling_backend.activities.of(name, include_deleted)
        wanted = self._get_param("ActivityIds", [])
        if wanted:
            activities = [activity for activity in activities if activity.activity_id in wanted]
        # Newest first.
        shown, token = self._page(activities, lambda activity: -activity.serial, default=_MOST_RECORDS)
        return ActionResult({"Activities": shown, "NextToken": token})

    def describe_tags(self) -> ActionResult:
        tags = self.autoscaling_backend.describe_tags(filters=self._get_param("Filters", []))
        shown, token = self._page(tags, lambda tag: (tag["ResourceId"], tag["Key"]), default=50)
        return ActionResult({"Tags": shown, "NextToken": token})

    def set_desired_capacity(self) -> ActionResult:
        self.autoscaling_backend.set_capacity(
            self._get_param("AutoScalingGroupName"), self._get_int_param("DesiredCapacity")
        )
        return EmptyResult()

    def set_instance_health(self) -> ActionResult:
        status = self._get_param("HealthStatus")
        if status not in ("Healthy", "Unhealthy"):
            raise ValidationError("Valid instance health states are: [Healthy, Unhealthy].")
        self.autoscaling_backend.set_instance_health(
            self._get_param("InstanceId"), status, self._get_bool_param("ShouldRespectGracePeriod", True)
        )
        return EmptyResult()

    def complete_lifecycle_action(self) -> ActionResult:
        result = self._get_param("LifecycleActionResult")
        if result not in ("CONTINUE", "ABANDON"):
            raise ValidationError("Lifecycle Action Result must be CONTINUE or ABANDON")
        self.autoscaling_backend.complete_lifecycle_action(self._get_param("InstanceId"), result)
        return EmptyResult()

    def disable_metrics_collection(self) -> ActionResult:
        self.autoscaling_backend.disable_metrics_collection(
            self._get_param("AutoScalingGroupName"), self._get_param("Metrics", [])
        )
        return EmptyResult()

    def _page(
        self, items: list, key: object, default: int, most: int = _MOST_RECORDS
    ) -> tuple[list, str | None]:
        size = self._get_int_param("MaxRecords", default)
        if not 1 <= size <= most:
            bound = f"less than or equal to {most}" if size > most else "greater than or equal to 1"
            raise ValidationError(
                f"1 validation error detected: Value '{size}' at 'maxRecords' failed to satisfy constraint: "
                f"Member must have value {bound}"
            )
        try:
            return paging.page(items, key, size, self._get_param("NextToken"))
        except paging.InvalidToken:
            raise AutoscalingClientError("InvalidNextToken", "The token is invalid.") from None
