"""Owns the routes of the administration and their errors.

It must not hold what the routes do.
"""

import json
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from .. import clock
from ..answers import Answer, as_json
from ..environment import DEFAULT_REGION
from ..faults import InvalidFault
from . import conduct, content, inspection, seeding


@dataclass
class AdministrationRequest:
    simulation: object
    path: re.Match
    query: dict[str, str]
    body: dict

    @property
    def region(self) -> str:
        return self.query.get("region") or self.body.get("region") or DEFAULT_REGION


def answer(simulation: object, environ: dict, body: bytes) -> Answer:
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix("/_simulation")
    query = {name: values[-1] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
    try:
        given = json.loads(body) if body else {}
    except ValueError as problem:
        return as_json({"error": f"the body is no JSON: {problem}"}, 400)
    if not isinstance(given, dict):
        return as_json({"error": "the body must be a JSON object"}, 400)
    known = False
    for route_method, pattern, action in _ROUTES:
        found = pattern.fullmatch(path)
        known = known or found is not None
        if found and route_method == method:
            return _perform(action, AdministrationRequest(simulation, found, query, given))
    if known:
        return as_json({"error": f"{method} is not possible on {path}"}, 405)
    return as_json({"error": f"no such path: {path}"}, 404)


def _perform(action: Callable, request: AdministrationRequest) -> Answer:
    try:
        with request.simulation.lock:
            request.simulation.advance()
            return as_json(action(request))
    except LookupError as missing:
        reason = missing.args[0] if missing.args else "not found"
        # A plain KeyError stems from a body that lacks a member.
        known = isinstance(missing, content.NotFound)
        return as_json({"error": reason if known else f"missing or unknown: {reason}"}, 404 if known else 400)
    except (InvalidFault, ValueError, TypeError) as problem:
        return as_json({"error": str(problem)}, 400)
    except Exception as problem:  # noqa: BLE001 - tests must see what failed
        traceback.print_exc()
        return as_json({"error": repr(problem)}, 422)


def _health(request: AdministrationRequest) -> dict:
    return {"status": "ok", "now": clock.rfc3339(clock.now()), "clockOffsetSeconds": clock.offset_seconds()}


def _set_clock(request: AdministrationRequest) -> dict:
    clock.set_offset(float(request.body["offsetSeconds"]))
    return _health(request)


def _reset(request: AdministrationRequest) -> dict:
    request.simulation.reset()
    return {}


def _calls(request: AdministrationRequest) -> dict:
    return request.simulation.record.after(int(request.query.get("after", 0)))


def _counts(request: AdministrationRequest) -> dict:
    return request.simulation.record.counts(int(request.query.get("after", 0)))


def _add_fault(request: AdministrationRequest) -> dict:
    return {"id": request.simulation.faults.add(request.body)}


def _clear_faults(request: AdministrationRequest) -> dict:
    request.simulation.faults.clear()
    return {}


def _remove_fault(request: AdministrationRequest) -> dict:
    if not request.simulation.faults.remove(request.path["id"]):
        raise content.NotFound(f"no fault {request.path['id']}")
    return {}


_ROUTES = [
    (method, re.compile(pattern), action)
    for method, pattern, action in (
        ("GET", r"/health", _health),
        ("POST", r"/clock", _set_clock),
        ("POST", r"/reset", _reset),
        ("POST", r"/seed", seeding.seed),
        ("POST", r"/images", content.add_image),
        ("POST", r"/images/(?P<id>[^/]+)/deprecate", content.deprecate_image),
        ("POST", r"/images/(?P<id>[^/]+)/deregister", content.deregister_image),
        ("POST", r"/parameters", content.put_parameter),
        ("DELETE", r"/parameters", content.delete_parameter),
        ("POST", r"/clusters/(?P<name>[^/]+)", content.change_cluster),
        ("POST", r"/timing", conduct.set_timing),
        ("POST", r"/shortages", conduct.add_shortage),
        ("DELETE", r"/shortages", conduct.end_shortages),
        ("DELETE", r"/shortages/(?P<id>[^/]+)", conduct.end_shortage),
        ("POST", r"/groups/(?P<name>[^/]+)/holds", conduct.hold),
        ("DELETE", r"/groups/(?P<name>[^/]+)/holds", conduct.release),
        ("POST", r"/groups/(?P<name>[^/]+)/nodes", conduct.set_group_fate),
        ("POST", r"/groups/(?P<name>[^/]+)/rebalance", conduct.rebalance),
        ("POST", r"/images/(?P<id>[^/]+)/nodes", conduct.set_image_fate),
        ("POST", r"/instances/(?P<id>[^/]+)/proceed", conduct.proceed),
        ("POST", r"/instances/(?P<id>[^/]+)/interrupt", conduct.interrupt),
        ("POST", r"/reconcile", content.reconcile),
        ("GET", r"/instances", inspection.instances),
        ("GET", r"/calls", _calls),
        ("GET", r"/counts", _counts),
        ("POST", r"/faults", _add_fault),
        ("DELETE", r"/faults", _clear_faults),
        ("DELETE", r"/faults/(?P<id>[^/]+)", _remove_fault),
    )
]
