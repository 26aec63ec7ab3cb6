"""Owns how tests make the groups behave: times, holds, shortages, interruptions, how nodes fare.

It must not make what a test could make through AWS.
"""

from .. import clock
from ..services.conditions import Timing
from .content import NotFound

_SECONDS = {
    "bootSeconds": "boot_seconds",
    "terminationSeconds": "termination_seconds",
    "retrySeconds": "retry_seconds",
}
_SHORTAGE = {
    "group": "group",
    "zone": "zone",
    "imageId": "image_id",
    "instanceType": "instance_type",
    "spot": "spot",
    "message": "message",
}
_FATE = {"joins": "joins", "joinSeconds": "join_seconds"}


def set_timing(request: object) -> dict:
    """For one group, which need not exist yet, or for all that have no times of their own."""
    seconds = {name: float(value) for name, value in _members(request.body, _SECONDS, "group").items()}
    Timing(**seconds)
    _conditions(request).set_timing(request.body.get("group"), seconds)
    return {}


def add_shortage(request: object) -> dict:
    return {"id": _conditions(request).add_shortage(_members(request.body, _SHORTAGE))}


def end_shortage(request: object) -> dict:
    if not _conditions(request).remove_shortages(request.path["id"]):
        raise NotFound(f"no shortage {request.path['id']}")
    return _launch_what_was_short(request)


def end_shortages(request: object) -> dict:
    _conditions(request).remove_shortages(None)
    return _launch_what_was_short(request)


def hold(request: object) -> dict:
    """From now on instances of the group wait at the transition, as for a lifecycle hook."""
    _conditions(request).hold(request.path["name"], request.body["transition"])
    return {}


def release(request: object) -> dict:
    _conditions(request).release(request.path["name"], request.query["transition"])
    return {}


def set_image_fate(request: object) -> dict:
    _conditions(request).set_fate("image", request.path["id"], _members(request.body, _FATE))
    return {}


def set_group_fate(request: object) -> dict:
    _conditions(request).set_fate("group", request.path["name"], _members(request.body, _FATE))
    return {}


def proceed(request: object) -> dict:
    """One instance need not wait, or not any longer."""
    group, member = _member(request)
    member.proceed()
    group.advance()
    return {"lifecycleState": member.lifecycle_state}


def interrupt(request: object) -> dict:
    """EC2 takes a spot instance back, after the notice."""
    group, member = _member(request)
    member.interrupt(float(request.body.get("noticeSeconds", 0)))
    group.advance()
    group.autoscaling_backend.follow(group)
    return {"lifecycleState": member.lifecycle_state}


def rebalance(request: object) -> dict:
    """Even out the zones now, which Auto Scaling does in its own time."""
    group = request.simulation.autoscaling(request.region).autoscaling_groups.get(request.path["name"])
    if group is None:
        raise NotFound(f"no group {request.path['name']}")
    return {"moved": group.rebalance()}


def _launch_what_was_short(request: object) -> dict:
    for group in list(request.simulation.autoscaling(request.region).autoscaling_groups.values()):
        if group.is_short:
            group.reconcile()
    return {"at": clock.rfc3339(clock.now())}


def _member(request: object) -> tuple[object, object]:
    wanted = request.path["id"]
    for group in request.simulation.autoscaling(request.region).autoscaling_groups.values():
        for member in group.instance_states:
            if member.instance_id == wanted:
                return group, member
    raise NotFound(f"no member {wanted} of any group")


def _conditions(request: object) -> object:
    return request.simulation.autoscaling(request.region).conditions


def _members(body: dict, names: dict[str, str], *others: str) -> dict:
    if unknown := set(body) - set(names) - {"region", *others}:
        raise ValueError(f"unknown members: {', '.join(sorted(unknown))}")
    return {names[name]: value for name, value in body.items() if name in names and value is not None}
