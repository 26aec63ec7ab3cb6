"""Owns the meaning of one EC2 filter: any of the values may match, with * and ? as wildcards.

moto asks that *all* values of a set be matched, so a filter tag-key=a,b misses what carries only a.
It must not know any resource.
"""

import re
from datetime import datetime
from fnmatch import translate
from functools import lru_cache

from .. import clock


def matches(resource: object, name: str, patterns: object) -> bool:
    value = resource.get_filter_value(name)
    wanted = [patterns] if isinstance(patterns, str) else list(patterns or [])
    if value is None:
        return False
    present = value if isinstance(value, (list, set, tuple)) or hasattr(value, "mapping") else [value]
    return any(_same(text, pattern) for text in map(_text, present) for pattern in wanted)


def _same(text: str, pattern: str) -> bool:
    return text == pattern or _expression(pattern).match(text) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern:
    # EC2 knows * and ? only; brackets stand for themselves.
    return re.compile(translate(pattern.replace("[", "[[]")))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return clock.rfc3339(value)
    return str(value)
