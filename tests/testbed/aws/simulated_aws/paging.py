"""Owns the cutting of long listings into pages.

Tokens name the last item shown, not a position: a listing goes on at the right place when items
came or went between two pages. It must not know what it lists.
"""

import base64
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class InvalidToken(ValueError):
    """The token was not made by this module."""


def page(
    items: Sequence[Item], key: Callable[[Item], object], size: int, token: str | None
) -> tuple[list[Item], str | None]:
    """The page behind the token, and the token of the next page. Items are sorted by key."""
    ordered = sorted(items, key=key)
    if token:
        last = _read(token)
        ordered = [item for item in ordered if _plain(key(item)) > last]
    shown = ordered[:size]
    more = len(ordered) > size
    return shown, _write(key(shown[-1])) if more and shown else None


def _plain(key: object) -> object:
    return list(key) if isinstance(key, tuple) else key


def _write(key: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(_plain(key)).encode()).decode()


def _read(token: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(token.encode()))
    except ValueError as problem:
        raise InvalidToken(token) from problem
