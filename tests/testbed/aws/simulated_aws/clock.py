"""Owns the time of the simulation: the machine's clock plus an offset that tests may set.

It must not make anybody wait, and must not influence how long faults delay an answer.
"""

import sys
import time
from datetime import UTC, datetime, timedelta

_offset = timedelta(0)


def set_offset(seconds: float) -> None:
    global _offset
    _offset = timedelta(seconds=seconds)


def offset_seconds() -> float:
    return _offset.total_seconds()


def now() -> datetime:
    """The time of the simulation, aware of its zone."""
    return datetime.now(UTC) + _offset


def naive_now() -> datetime:
    """The same without a zone, which is how moto stores every date."""
    return now().replace(tzinfo=None)


def epoch_seconds() -> float:
    return time.time() + offset_seconds()


def rfc3339(moment: datetime) -> str:
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds") + "Z"


def whole_seconds(moment: datetime) -> str:
    """The form that AWS uses inside the prose of scaling activities."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """Read RFC 3339 into a date without a zone, in UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def take_over_moto() -> None:
    """Make every loaded module of moto read this clock.

    moto's modules import the function by name, so each of them holds its own reference.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("moto.") and hasattr(module, "utcnow"):
            module.utcnow = naive_now
