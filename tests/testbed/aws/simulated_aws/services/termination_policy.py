"""Owns the order in which a group that shrinks gives up its instances.

It must not terminate anything.
"""

from collections import Counter


def select(members: list, count: int, policies: list[str]) -> list:
    """AWS first keeps the zones balanced, then follows the group's termination policies."""
    candidates = [member for member in members if not member.protected_from_scale_in]
    chosen: list = []
    while candidates and len(chosen) < count:
        zones = Counter(member.availability_zone for member in members if member not in chosen)
        most = max(zones[member.availability_zone] for member in candidates)
        fullest = [member for member in candidates if zones[member.availability_zone] == most]
        member = min(fullest, key=lambda candidate: _rank(candidate, policies))
        candidates.remove(member)
        chosen.append(member)
    return chosen


def overfull_zone(members: list, zones: list[str]) -> str | None:
    """The zone that should give up an instance: one that the group has left, or one two ahead of another."""
    counts = Counter(member.availability_zone for member in members)
    if left := [zone for zone in counts if zone not in zones]:
        return left[0]
    fullest = max(zones, key=lambda zone: counts[zone])
    return fullest if counts[fullest] - min(counts[zone] for zone in zones) > 1 else None


def _rank(member: object, policies: list[str]) -> tuple:
    # Unhealthy instances go before all others, whatever the policy.
    rank: list = [member.health_status == "Healthy"]
    for policy in policies or ["Default"]:
        age = member.instance.launch_time
        if policy == "NewestInstance":
            rank.append(-age.timestamp())
        elif policy == "OldestInstance":
            rank.append(age.timestamp())
        elif policy in ("Default", "OldestLaunchTemplate"):
            rank.append(_version(member))
    # Last the one launched first: the next billing hour has no meaning here.
    rank.append(member.serial)
    return tuple(rank)


def _version(member: object) -> int:
    return int(member.launch_template["Version"]) if member.launch_template else 0
