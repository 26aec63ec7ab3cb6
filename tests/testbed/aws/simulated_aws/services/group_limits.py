"""Owns the rules that bind the minimum, maximum and desired capacity of a group.

It must not change a group.
"""

from moto.autoscaling.exceptions import ValidationError


def check_new(least: int, most: int, desired: int | None) -> None:
    _check_bounds(least, most)
    if desired is not None:
        _check_desired(least, most, desired)


def desired_after_update(least: int, most: int, before: int, given: int | None) -> int:
    """A desired capacity that was not given follows the new bounds; one that was must fit them."""
    _check_bounds(least, most)
    if given is None:
        return min(max(before, least), most)
    _check_desired(least, most, given)
    return given


def check_set(group: object, desired: int) -> None:
    if desired > group.max_size:
        raise ValidationError(
            f"New SetDesiredCapacity value {desired} is above max value {group.max_size} "
            "for the AutoScalingGroup."
        )
    if desired < group.min_size:
        raise ValidationError(
            f"New SetDesiredCapacity value {desired} is below min value {group.min_size} "
            "for the AutoScalingGroup."
        )


def check_decrement(group: object) -> None:
    if group.desired_capacity - 1 < group.min_size:
        raise ValidationError(
            f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without "
            "replacement will violate group's min size constraint. Either set "
            "shouldDecrementDesiredCapacity flag to false or lower group's min size."
        )


def check_standby(group: object, change: int) -> None:
    """Into standby with a negative change of the desired capacity, out of it with a positive one."""
    if group.min_size <= group.desired_capacity + change <= group.max_size:
        return
    count = abs(change)
    instances = f"{count} instance{'s' if count > 1 else ''}"
    aim = f"place into standby {instances}" if change < 0 else f"take {instances} out of standby"
    raise ValidationError(
        f"AutoScalingGroup {group.name} has min-size={group.min_size}, max-size={group.max_size}, and "
        f"desired-size={group.desired_capacity}. To {aim}, please update the AutoScalingGroup sizes "
        "appropriately."
    )


def _check_bounds(least: int, most: int) -> None:
    if least < 0 or most < 0:
        raise ValidationError("Group sizes must not be negative")
    if least > most:
        raise ValidationError(f"Max bound, {most}, must be greater than or equal to min bound, {least}")


def _check_desired(least: int, most: int, desired: int) -> None:
    if not least <= desired <= most:
        raise ValidationError(
            f"Desired capacity:{desired} must be between the specified min size:{least} and max size:{most}"
        )
