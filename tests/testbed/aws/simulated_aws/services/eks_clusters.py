"""Owns EKS clusters: the members that moto leaves out, and the update of their version.

It must not run a control plane; a cluster here is a description.
"""

import base64
import re
import uuid

from moto.core.responses import ActionResult
from moto.eks.exceptions import InvalidParameterException, ResourceNotFoundException
from moto.eks.models import Cluster, EKSBackend
from moto.eks.responses import EKSResponse

from .. import clock

_AUTHORITY = "-----BEGIN CERTIFICATE-----\nc2ltdWxhdGVk\n-----END CERTIFICATE-----\n"
_MINOR = re.compile(r"1\.(\d+)")


class SimulatedCluster(Cluster):
    def __init__(self, *positional: object, **named: object) -> None:
        super().__init__(*positional, **named)
        self.certificate_authority = {"data": base64.b64encode(_AUTHORITY.encode()).decode()}
        network = dict(self.kubernetes_network_config)
        network.setdefault("serviceIpv4Cidr", "172.20.0.0/16")
        network.setdefault("ipFamily", "ipv4")
        self.kubernetes_network_config = network
        # What CreateCluster gives a cluster that does not ask for access entries.
        self.access_config = {"authenticationMode": "CONFIG_MAP"}
        self.updates: dict[str, dict] = {}


class SimulatedEks(EKSBackend):
    def create_cluster(self, *positional: object, **named: object) -> SimulatedCluster:
        cluster = super().create_cluster(*positional, **named)
        cluster.resources_vpc_config = self._network(cluster.resources_vpc_config or {})
        return cluster

    def _network(self, config: dict) -> dict:
        """AWS derives the VPC from the subnets."""
        from moto.ec2.models import ec2_backends

        subnets = ec2_backends[self.account_id][self.region_name].describe_subnets()
        vpcs = [subnet.vpc_id for subnet in subnets if subnet.id in config.get("subnetIds", [])]
        return {
            "endpointPublicAccess": True,
            "endpointPrivateAccess": False,
            "publicAccessCidrs": ["0.0.0.0/0"],
            "securityGroupIds": [],
            **({"vpcId": vpcs[0]} if vpcs else {}),
            **config,
        }

    def find(self, name: str) -> SimulatedCluster:
        if name not in self.clusters:
            raise ResourceNotFoundException(
                clusterName=None,
                nodegroupName=None,
                fargateProfileName=None,
                addonName=None,
                message=f"No cluster found for name: {name}.",
            )
        return self.clusters[name]

    def update_version(self, name: str, version: str, token: str | None) -> dict:
        cluster = self.find(name)
        for update in cluster.updates.values():
            if token and update["token"] == token:
                return update
        before, after = _MINOR.fullmatch(cluster.version), _MINOR.fullmatch(version or "")
        if not after or int(after.group(1)) != int(before.group(1)) + 1:
            # EKS goes up by one minor version at a time, and never back here.
            raise InvalidParameterException(
                clusterName=name,
                nodegroupName=None,
                addonName=None,
                message=f"Unsupported Kubernetes minor version update from {cluster.version} to {version}",
            )
        cluster.version = version
        update = {
            "id": str(uuid.uuid4()),
            "status": "InProgress",
            "type": "VersionUpdate",
            "params": [
                {"type": "Version", "value": version},
                {"type": "PlatformVersion", "value": cluster.platformVersion},
            ],
            "createdAt": clock.naive_now(),
            "errors": [],
            "token": token,
        }
        cluster.updates[update["id"]] = update
        return update

    def describe_update(self, name: str, update_id: str) -> dict:
        updates = self.find(name).updates
        if update_id not in updates:
            raise ResourceNotFoundException(
                clusterName=name,
                nodegroupName=None,
                addonName=None,
                message=f"No update found for ID: {update_id}",
            )
        # The version was set at once: by the time that anybody asks, it is done.
        updates[update_id]["status"] = "Successful"
        return updates[update_id]


class EksRequests(EKSResponse):
    def update_cluster_version(self) -> ActionResult:
        update = self.eks_backend.update_version(
            self._get_param("name"), self._get_param("version"), self._get_param("clientRequestToken")
        )
        return ActionResult({"update": update})

    def describe_update(self) -> ActionResult:
        update = self.eks_backend.describe_update(self._get_param("name"), self._get_param("updateId"))
        return ActionResult({"update": update})

    def list_updates(self) -> ActionResult:
        updates = self.eks_backend.find(self._get_param("name")).updates
        return ActionResult({"updateIds": list(updates)})
