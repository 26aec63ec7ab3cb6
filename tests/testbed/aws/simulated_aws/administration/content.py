"""Owns the changes to the simulated world that no AWS call can make: images, parameters, versions.

It must not make what a test could make through AWS.
"""

from .. import clock
from ..services import images


class NotFound(LookupError):
    """The administration was asked about something that does not exist."""


def add_image(request: object) -> dict:
    body = request.body
    image = images.register(
        request.simulation.ec2(request.region),
        name=body["name"],
        architecture=body.get("architecture", "x86_64"),
        creation_date=_moment(body.get("creationDate")),
        image_id=body.get("imageId"),
        deprecation_time=_moment(body.get("deprecationTime")),
    )
    return {"imageId": image.id}


def deprecate_image(request: object) -> dict:
    image = request.simulation.ec2(request.region).amis.get(request.path["id"])
    if image is None:
        raise NotFound(f"no image {request.path['id']}")
    image.deprecates_at = clock.parse(request.body["at"])
    return {"imageId": image.id}


def deregister_image(request: object) -> dict:
    ec2, image_id = request.simulation.ec2(request.region), request.path["id"]
    if image_id not in ec2.amis:
        raise NotFound(f"no image {image_id}")
    ec2.deregister_image(image_id)
    return {"imageId": image_id}


def put_parameter(request: object) -> dict:
    body = request.body
    version = request.simulation.ssm(request.region).seed(
        body["name"], body["value"], _moment(body.get("lastModified"))
    )
    return {"version": version}


def delete_parameter(request: object) -> dict:
    name = request.query["name"]
    if not request.simulation.ssm(request.region).withdraw(name):
        raise NotFound(f"no parameter {name}")
    return {}


def change_cluster(request: object) -> dict:
    """Set what on AWS takes a quarter of an hour, and also what cannot go back there."""
    name, body = request.path["name"], request.body
    cluster = request.simulation.eks(request.region).clusters.get(name)
    if cluster is None:
        raise NotFound(f"no cluster {name}")
    if "version" in body:
        cluster.version = body["version"]
    if "authenticationMode" in body:
        cluster.access_config = {**cluster.access_config, "authenticationMode": body["authenticationMode"]}
    return {"version": cluster.version, "authenticationMode": cluster.access_config["authenticationMode"]}


def reconcile(request: object) -> dict:
    """Let every group try again what failed, which Auto Scaling does by itself every few minutes."""
    for backend in request.simulation.all_autoscaling():
        for group in list(backend.autoscaling_groups.values()):
            group.reconcile()
    return {}


def _moment(text: str | None) -> object:
    return clock.parse(text) if text else None
