"""Owns the question whether EC2 has room for a launch, and how it words that it has none.

It must not launch.
"""

from .conditions import Conditions, Launch
from .launch_check import LaunchRefusal


class CapacityRefusal(LaunchRefusal):
    """There is no room now; elsewhere or later there may be."""


def check(conditions: Conditions, launch: Launch, zones: list[str]) -> None:
    shortage = conditions.shortage(launch)
    if shortage is None:
        return
    if shortage.message:
        raise CapacityRefusal(shortage.message)
    if launch.spot:
        raise CapacityRefusal(
            "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity "
            "available that matches your request"
        )
    elsewhere = [
        zone
        for zone in zones
        if conditions.shortage(Launch(launch.group, zone, launch.image_id, launch.instance_type, launch.spot))
        is None
    ]
    kind = launch.instance_type
    advice = f" or choosing {', '.join(elsewhere)}" if elsewhere else ""
    raise CapacityRefusal(
        f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested "
        f"({launch.zone}). Our system will be working on provisioning additional capacity. You can "
        f"currently get {kind} capacity by not specifying an Availability Zone in your request{advice}"
    )
