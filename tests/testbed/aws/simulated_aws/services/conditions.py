"""Owns what tests impose on the groups of one region: times, holds, shortages, how nodes fare.

It must not act on a group; whoever launches or terminates asks here.
"""

import itertools
from dataclasses import dataclass, field, fields

TRANSITIONS = ("launching", "terminating")
NODE_FATES = ("ready", "notReady", "never")


@dataclass
class Timing:
    """Seconds by the simulation's clock. Everything happens at once unless a test says otherwise."""

    boot_seconds: float = 0
    termination_seconds: float = 0
    # Zero: a failed launch is not tried again by itself.
    retry_seconds: float = 0


@dataclass
class Shortage:
    """No capacity for the launches that fit all given members."""

    id: str
    group: str | None = None
    zone: str | None = None
    image_id: str | None = None
    instance_type: str | None = None
    spot: bool | None = None
    message: str | None = None

    def meets(self, launch: "Launch") -> bool:
        return all(
            getattr(self, name) in (None, getattr(launch, name))
            for name in ("group", "zone", "image_id", "instance_type", "spot")
        )


@dataclass
class Launch:
    """One launch that is about to happen."""

    group: str
    zone: str
    image_id: str
    instance_type: str
    spot: bool


@dataclass
class NodeFate:
    """What becomes of the Node of an instance; the node simulator acts on it."""

    joins: str = "ready"
    # From the moment that the machine runs.
    join_seconds: float = 0


@dataclass
class Conditions:
    _timings: dict[str | None, dict] = field(default_factory=dict)
    _shortages: list[Shortage] = field(default_factory=list)
    _serials: itertools.count = field(default_factory=lambda: itertools.count(1))
    _holds: set[tuple[str, str]] = field(default_factory=set)
    # By ("image" or "group", name).
    _fates: dict[tuple[str, str], dict] = field(default_factory=dict)

    def set_timing(self, group: str | None, seconds: dict[str, float]) -> None:
        self._timings.setdefault(group, {}).update(seconds)

    def timing(self, group: str) -> Timing:
        return Timing(**{**self._timings.get(None, {}), **self._timings.get(group, {})})

    def add_shortage(self, members: dict) -> str:
        known = {entry.name for entry in fields(Shortage)} - {"id"}
        if unknown := set(members) - known:
            raise ValueError(f"unknown members: {', '.join(sorted(unknown))}")
        shortage = Shortage(f"shortage-{next(self._serials)}", **members)
        self._shortages.append(shortage)
        return shortage.id

    def remove_shortages(self, shortage_id: str | None) -> bool:
        kept = [shortage for shortage in self._shortages if shortage_id not in (None, shortage.id)]
        found = len(kept) < len(self._shortages)
        self._shortages = kept
        return found

    def shortage(self, launch: Launch) -> Shortage | None:
        return next((shortage for shortage in self._shortages if shortage.meets(launch)), None)

    def hold(self, group: str, transition: str) -> None:
        if transition not in TRANSITIONS:
            raise ValueError(f'"transition" is one of {", ".join(TRANSITIONS)}')
        self._holds.add((group, transition))

    def release(self, group: str, transition: str) -> None:
        self._holds.discard((group, transition))

    def holds(self, group: str, transition: str) -> bool:
        return (group, transition) in self._holds

    def set_fate(self, kind: str, name: str, members: dict) -> None:
        if members.get("joins", "ready") not in NODE_FATES:
            raise ValueError(f'"joins" is one of {", ".join(NODE_FATES)}')
        self._fates.setdefault((kind, name), {}).update(members)

    def fate(self, group: str, image_id: str) -> NodeFate:
        """What was said of the group goes before what was said of the image."""
        of_image, of_group = (self._fates.get(key, {}) for key in (("image", image_id), ("group", group)))
        return NodeFate(**{**of_image, **of_group})
