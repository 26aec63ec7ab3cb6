"""Owns the faults that tests inject: errors, delays and calls that are never answered.

It decides which fault meets a call; carrying it out is the application's work.
"""

import threading
from dataclasses import dataclass, field

from .identification import Call

HANG_SECONDS = 120


class InvalidFault(ValueError):
    """The description of a fault that a test sent makes no sense."""


def _holds(parameters: dict[str, str], name: str, text: str) -> bool:
    """Whether a parameter, or with "*" any of them, has the text in it: a list's place says nothing about a name."""
    if name == "*":
        return any(text in value for value in parameters.values())
    return text in parameters.get(name, "") and name in parameters


@dataclass
class Fault:
    id: str
    service: str | None = None
    action: str | None = None
    code: str | None = None
    message: str = "injected by a test"
    status: int = 400
    count: int | None = None
    when: str = "before"
    latency_milliseconds: int = 0
    match: dict[str, str] = field(default_factory=dict)
    hang: bool = False

    def meets(self, call: Call) -> bool:
        return (
            self.count != 0
            and self.service in (None, call.service)
            and self.action in (None, call.action)
            and all(_holds(call.parameters, name, text) for name, text in self.match.items())
        )


@dataclass
class Verdict:
    """What is to happen to one call."""

    # Set when the faults change: whoever hangs then gives up.
    released: threading.Event
    latency_seconds: float = 0
    fault: Fault | None = None


class FaultPlan:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._next = 1
        self._released = threading.Event()

    def add(self, description: dict) -> str:
        known = {
            "service": "service",
            "action": "action",
            "code": "code",
            "message": "message",
            "status": "status",
            "count": "count",
            "when": "when",
            "latencyMilliseconds": "latency_milliseconds",
            "match": "match",
            "hang": "hang",
        }
        unknown = set(description) - set(known)
        if unknown:
            raise InvalidFault(f"unknown members: {', '.join(sorted(unknown))}")
        values = {known[name]: value for name, value in description.items() if value is not None}
        if values.get("when", "before") not in ("before", "after"):
            raise InvalidFault('"when" is "before" or "after"')
        if not values.get("code") and not values.get("hang") and not values.get("latency_milliseconds"):
            raise InvalidFault("a fault needs a code, a latency or hang")
        with self._lock:
            fault = Fault(id=f"fault-{self._next}", **values)
            self._next += 1
            self._faults.append(fault)
            return fault.id

    def remove(self, fault_id: str) -> bool:
        with self._lock:
            kept = [fault for fault in self._faults if fault.id != fault_id]
            found = len(kept) < len(self._faults)
            self._faults = kept
            self._release()
        return found

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self._release()

    def judge(self, call: Call) -> Verdict:
        """Spend the faults that meet the call, in the order in which they were added.

        Delays add up; the first fault with an error or a hang decides, and those behind it are
        kept for the next call.
        """
        with self._lock:
            verdict = Verdict(self._released)
            for fault in self._faults:
                if not fault.meets(call):
                    continue
                if fault.count is not None:
                    fault.count -= 1
                verdict.latency_seconds += fault.latency_milliseconds / 1000
                if fault.code or fault.hang:
                    verdict.fault = fault
                    break
        return verdict

    def _release(self) -> None:
        """Let go the calls that hang, without an answer."""
        self._released.set()
        self._released = threading.Event()
