"""Owns the question which AWS call an HTTP request is: caller, service, action, region, parameters.

It reads the request only; it must neither answer it nor verify its signature.
"""

import json
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from .environment import DEFAULT_REGION

SERVICES = ("autoscaling", "ec2", "eks", "iam", "ssm", "sts")

# Unsigned calls (AssumeRoleWithWebIdentity) tell their service only by the version of the API.
_SERVICE_BY_VERSION = {
    "2011-01-01": "autoscaling",
    "2016-11-15": "ec2",
    "2010-05-08": "iam",
    "2011-06-15": "sts",
}
_SCOPE = re.compile(r"Credential=[^/,\s]+/\d{8}/([^/]+)/([^/]+)/aws4_request")
_CALLER = re.compile(r"Credential=([^/,\s]+)/")

_EKS_ROUTES = [
    (method, re.compile(pattern), action)
    for method, pattern, action in (
        ("POST", r"/clusters", "CreateCluster"),
        ("GET", r"/clusters", "ListClusters"),
        ("GET", r"/clusters/(?P<name>[^/]+)", "DescribeCluster"),
        ("DELETE", r"/clusters/(?P<name>[^/]+)", "DeleteCluster"),
        ("POST", r"/clusters/(?P<name>[^/]+)/updates", "UpdateClusterVersion"),
        ("GET", r"/clusters/(?P<name>[^/]+)/updates", "ListUpdates"),
        ("GET", r"/clusters/(?P<name>[^/]+)/updates/(?P<updateId>[^/]+)", "DescribeUpdate"),
        ("POST", r"/clusters/(?P<name>[^/]+)/update-config", "UpdateClusterConfig"),
        ("POST", r"/clusters/(?P<name>[^/]+)/node-groups", "CreateNodegroup"),
        ("GET", r"/clusters/(?P<name>[^/]+)/node-groups", "ListNodegroups"),
        ("GET", r"/clusters/(?P<name>[^/]+)/node-groups/(?P<nodegroupName>[^/]+)", "DescribeNodegroup"),
        ("DELETE", r"/clusters/(?P<name>[^/]+)/node-groups/(?P<nodegroupName>[^/]+)", "DeleteNodegroup"),
        (
            "POST",
            r"/clusters/(?P<name>[^/]+)/node-groups/(?P<nodegroupName>[^/]+)/update-config",
            "UpdateNodegroupConfig",
        ),
        ("POST", r"/clusters/(?P<name>[^/]+)/fargate-profiles", "CreateFargateProfile"),
        ("GET", r"/clusters/(?P<name>[^/]+)/fargate-profiles", "ListFargateProfiles"),
        (
            "GET",
            r"/clusters/(?P<name>[^/]+)/fargate-profiles/(?P<fargateProfileName>[^/]+)",
            "DescribeFargateProfile",
        ),
        (
            "DELETE",
            r"/clusters/(?P<name>[^/]+)/fargate-profiles/(?P<fargateProfileName>[^/]+)",
            "DeleteFargateProfile",
        ),
        ("POST", r"/tags/(?P<resourceArn>.+)", "TagResource"),
        ("DELETE", r"/tags/(?P<resourceArn>.+)", "UntagResource"),
        ("GET", r"/tags/(?P<resourceArn>.+)", "ListTagsForResource"),
    )
]


@dataclass
class Call:
    service: str | None
    action: str | None
    region: str
    parameters: dict[str, str]
    # The access key that signed it: processes under test are told apart by it.
    caller: str | None = None

    @property
    def mutating(self) -> bool:
        return not (self.action or "").startswith(("Describe", "Get", "List"))


def identify(environ: dict, body: bytes) -> Call:
    call = _identify(environ, body)
    caller = _CALLER.search(environ.get("HTTP_AUTHORIZATION", ""))
    call.caller = caller.group(1) if caller else None
    return call


def _identify(environ: dict, body: bytes) -> Call:
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    region = scope.group(1) if scope else DEFAULT_REGION
    service = scope.group(2).lower() if scope else None

    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        service = service or ("ssm" if target.startswith("AmazonSSM") else None)
        return Call(service, target.rsplit(".", 1)[-1], region, _flatten_json(body))

    path = environ.get("PATH_INFO", "/")
    if service == "eks" or (service is None and path.startswith(("/clusters", "/tags/"))):
        return _identify_eks(environ, path, body, region)

    form = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    form.update(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    action = form.pop("Action", None)
    service = service or _SERVICE_BY_VERSION.get(form.get("Version", ""))
    form.pop("Version", None)
    return Call(service, action, region, {name: _presentable(name, value) for name, value in form.items()})


def _identify_eks(environ: dict, path: str, body: bytes, region: str) -> Call:
    parameters = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    parameters.update(_flatten_json(body))
    for method, pattern, action in _EKS_ROUTES:
        found = pattern.fullmatch(path.rstrip("/")) if method == environ["REQUEST_METHOD"] else None
        if found:
            parameters.update({name: unquote(value) for name, value in found.groupdict().items()})
            return Call("eks", action, region, parameters)
    return Call("eks", None, region, parameters)


def _flatten_json(body: bytes) -> dict[str, str]:
    try:
        value = json.loads(body) if body else {}
    except ValueError:
        return {}
    flat: dict[str, str] = {}
    _flatten(value, "", flat)
    return flat


def _flatten(value: object, path: str, flat: dict[str, str]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(inner, f"{path}.{name}" if path else name, flat)
    elif isinstance(value, list):
        # Counted from one, as the query protocol does.
        for position, inner in enumerate(value, 1):
            _flatten(inner, f"{path}.{position}" if path else str(position), flat)
    elif isinstance(value, bool):
        flat[path] = "true" if value else "false"
    elif value is not None:
        flat[path] = _presentable(path, str(value))


def _presentable(name: str, value: str) -> str:
    """User data is long and of no use in a record of calls: keep its length only."""
    return str(len(value)) if name.endswith("UserData") else value
