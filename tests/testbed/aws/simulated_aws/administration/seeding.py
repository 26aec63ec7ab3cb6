"""Owns the surroundings that an operator finds: a network, a cluster, a role for the nodes.

It must not make groups or templates; these are the operator's.
"""

import json

from moto.iam.exceptions import EntityAlreadyExists

from ..environment import ACCOUNT_ID

_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly")


def seed(request: object) -> dict:
    name = request.body["clusterName"]
    ec2 = request.simulation.ec2(request.region)
    vpc_id, subnet_ids, group_id = _network(ec2, name)
    _cluster(
        request.simulation.eks(request.region),
        name,
        request.body.get("kubernetesVersion"),
        subnet_ids,
        group_id,
    )
    role, profile = _node_role(request.simulation.iam(), f"{name}-node")
    return {
        "vpcId": vpc_id,
        "subnetIds": subnet_ids,
        "securityGroupId": group_id,
        "roleName": role.name,
        "roleArn": role.arn,
        "instanceProfileName": profile.name,
        "instanceProfileArn": profile.arn,
        "clusterName": name,
        "region": request.region,
        "accountId": ACCOUNT_ID,
    }


def _network(ec2: object, cluster: str) -> tuple[str, list[str], str]:
    for vpc in ec2.vpcs.values():
        if vpc.get_filter_value("tag:Name") == cluster:
            subnets = ec2.describe_subnets(filters={"vpc-id": [vpc.id]})
            subnets.sort(key=lambda subnet: subnet.availability_zone)
            group = ec2.get_security_group_from_name(f"{cluster}-nodes", vpc_id=vpc.id)
            return vpc.id, [subnet.id for subnet in subnets], group.id
    # Names of nodes stem from addresses: clusters that share a control plane must not share addresses.
    prefix = f"10.{sum(vpc.cidr_block.startswith('10.') for vpc in ec2.vpcs.values())}"
    vpc = ec2.create_vpc(f"{prefix}.0.0/16", tags=[{"Key": "Name", "Value": cluster}])
    subnet_ids = []
    for position, letter in enumerate("abc"):
        subnet = ec2.create_subnet(
            vpc.id,
            # 4,091 addresses each: room for thousands of instances.
            f"{prefix}.{position * 16}.0/20",
            availability_zone=f"{ec2.region_name}{letter}",
        )
        subnet.add_tags({"Name": f"{cluster}-{letter}", f"kubernetes.io/cluster/{cluster}": "shared"})
        subnet_ids.append(subnet.id)
    group = ec2.create_security_group(f"{cluster}-nodes", f"Nodes of {cluster}", vpc_id=vpc.id)
    group.add_tags({"Name": f"{cluster}-nodes", f"kubernetes.io/cluster/{cluster}": "owned"})
    return vpc.id, subnet_ids, group.id


def _cluster(eks: object, name: str, version: str | None, subnet_ids: list[str], group_id: str) -> None:
    if name in eks.clusters:
        return
    eks.create_cluster(
        name=name,
        role_arn=f"arn:aws:iam::{ACCOUNT_ID}:role/{name}-cluster",
        resources_vpc_config={"subnetIds": subnet_ids, "securityGroupIds": [group_id]},
        version=version or "1.33",
    )


def _node_role(iam: object, name: str) -> tuple[object, object]:
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
    try:
        role = iam.create_role(name, json.dumps(trust), "/", None, "", [], None)
    except EntityAlreadyExists:
        return iam.get_role(name), iam.get_instance_profile(name)
    for policy in _POLICIES:
        iam.attach_role_policy(f"arn:aws:iam::aws:policy/{policy}", name)
    return role, iam.create_instance_profile(name, "/", [role.name])
