"""Owns the record of AWS calls: a sequence number, what was called, and what it answered.

Calls of the administration are never recorded here. It must not influence any answer.
"""

import json
import re
import threading
from collections import Counter

from . import clock
from .answers import Answer
from .identification import Call

_XML_CODE = re.compile(rb"<Code>([^<]*)</Code>")


class CallRecord:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[dict] = []
        self._last = 0

    def begin(self, call: Call) -> dict:
        """Record the arrival. Its status stays null until the call is answered."""
        with self._lock:
            self._last += 1
            entry = {
                "sequence": self._last,
                "at": clock.rfc3339(clock.now()),
                "service": call.service or "unknown",
                "action": call.action or "unknown",
                "mutating": call.mutating,
                "caller": call.caller,
                "status": None,
                "errorCode": None,
                "parameters": call.parameters,
            }
            self._entries.append(entry)
            return entry

    def finish(self, entry: dict, answer: Answer) -> None:
        code = error_code(answer) if answer.status >= 400 else None
        with self._lock:
            entry["status"], entry["errorCode"] = answer.status, code

    def after(self, sequence: int) -> dict:
        with self._lock:
            # Sequence numbers count from one without holes since the last reset.
            first = self._entries[0]["sequence"] if self._entries else self._last + 1
            start = max(0, sequence + 1 - first)
            return {"calls": [dict(entry) for entry in self._entries[start:]], "last": self._last}

    def counts(self, sequence: int) -> dict[str, dict[str, int]]:
        counts: dict[str, Counter] = {}
        for entry in self.after(sequence)["calls"]:
            counts.setdefault(entry["service"], Counter())[entry["action"]] += 1
        return {service: dict(counter) for service, counter in counts.items()}

    def forget(self) -> None:
        """Drop the entries; numbers go on, so that a position taken before stays valid."""
        with self._lock:
            self._entries.clear()


def error_code(answer: Answer) -> str | None:
    for name, value in answer.headers.items():
        if name.lower() == "x-amzn-errortype":
            return value.split("#")[-1].split(":")[0]
    found = _XML_CODE.search(answer.body)
    if found:
        return found.group(1).decode()
    try:
        named = json.loads(answer.body).get("__type")
    except (ValueError, AttributeError):
        return None
    return named.split("#")[-1] if named else None
