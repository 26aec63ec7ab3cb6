"""Owns the proof that EC2 and IAM resources are found, and missing ones are named, as on AWS."""

import pytest
from conftest import launchable, refused


def test_images(admin, ec2):
    image = admin.image(name="node-1", architecture="arm64", creationDate="2026-01-02T03:04:05Z")
    admin.post(f"/images/{image}/deprecate", {"at": "2126-01-02T03:04:05Z"})
    found = ec2.describe_images(ImageIds=[image])["Images"][0]
    assert found["State"] == "available" and found["Architecture"] == "arm64"
    assert found["CreationDate"] == "2026-01-02T03:04:05.000Z"
    assert found["DeprecationTime"] == "2126-01-02T03:04:05.000Z"
    for image_ids in (["ami-0123456789abcdef0"], [image, "ami-0123456789abcdef0"]):
        with refused("InvalidAMIID.NotFound", "The image id '[ami-0123456789abcdef0]' does not exist"):
            ec2.describe_images(ImageIds=image_ids)
    absent = [{"Name": "image-id", "Values": ["ami-0123456789abcdef0"]}]
    assert ec2.describe_images(Filters=absent)["Images"] == []


def test_deprecated_images_are_listed_on_demand_only(admin, ec2):
    image = admin.image(deprecationTime="2020-01-01T00:00:00Z")
    assert ec2.describe_images(Owners=["amazon"])["Images"] == []
    assert len(ec2.describe_images(Owners=["amazon"], IncludeDeprecated=True)["Images"]) == 1
    assert len(ec2.describe_images(ImageIds=[image])["Images"]) == 1


def test_a_deregistered_image_is_unknown_once_nothing_refers_to_it(autoscaling, ec2, group, image):
    group(DesiredCapacity=1)
    ec2.deregister_image(ImageId=image)
    assert ec2.describe_images(ImageIds=[image])["Images"] == []
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="workers", ForceDelete=True)
    with refused("InvalidAMIID.NotFound"):
        ec2.describe_images(ImageIds=[image])


def test_instance_types(ec2):
    found = ec2.describe_instance_types(InstanceTypes=["m5.large", "m6g.large"])["InstanceTypes"]
    architectures = {kind["InstanceType"]: kind["ProcessorInfo"]["SupportedArchitectures"] for kind in found}
    assert architectures["m6g.large"] == ["arm64"]
    with refused("InvalidInstanceType", "m99.huge"):
        ec2.describe_instance_types(InstanceTypes=["m5.large", "m99.huge"])


def test_offerings(ec2):
    def offered(**filters):
        pairs = [{"Name": name.replace("_", "-"), "Values": values} for name, values in filters.items()]
        answer = ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=pairs)
        return {(o["InstanceType"], o["Location"]) for o in answer["InstanceTypeOfferings"]}

    zones = {zone for _, zone in offered(instance_type=["m5.large"])}
    assert {"us-west-2a", "us-west-2b", "us-west-2c"} <= zones
    assert offered(instance_type=["m5.large"], location=["us-west-2a"]) == {("m5.large", "us-west-2a")}
    assert len(offered(instance_type=["m5.*"], location=["us-west-2a"])) > 3
    assert offered(instance_type=["m99.huge"]) == set()


def test_subnets(ec2, seed):
    first = seed["subnetIds"][0]
    assert ec2.describe_subnets(SubnetIds=[first, first])["Subnets"][0]["AvailabilityZone"] == "us-west-2a"
    with refused("InvalidSubnetID.NotFound", "'subnet-0123456789abcdef0'"):
        ec2.describe_subnets(SubnetIds=[first, "subnet-0123456789abcdef0"])
    filters = [
        {"Name": "vpc-id", "Values": [seed["vpcId"]]},
        {"Name": "tag:Name", "Values": ["demo-a", "demo-b"]},
    ]
    found = [subnet["SubnetId"] for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]]
    assert sorted(found) == sorted(seed["subnetIds"][:2])


@pytest.mark.parametrize(
    "filters",
    [
        {"group-name": ["demo-nodes", "absent"]},
        {"tag:Name": ["demo-nodes"]},
        {"tag:Name": ["demo-*"]},
        {"group-name": ["demo-nodes"], "tag:Name": ["demo-nodes"]},
    ],
)
def test_security_groups_by_filter(ec2, seed, filters):
    pairs = [{"Name": name, "Values": values} for name, values in filters.items()]
    pairs.append({"Name": "vpc-id", "Values": [seed["vpcId"]]})
    found = ec2.describe_security_groups(Filters=pairs)["SecurityGroups"]
    assert [group["GroupId"] for group in found] == [seed["securityGroupId"]]


def test_security_groups_by_identifier(ec2, seed):
    known = seed["securityGroupId"]
    assert len(ec2.describe_security_groups(GroupIds=[known])["SecurityGroups"]) == 1
    with refused("InvalidGroup.NotFound", "'sg-0123456789abcdef0'"):
        ec2.describe_security_groups(GroupIds=[known, "sg-0123456789abcdef0"])


def test_instance_profiles(iam, seed):
    profile = iam.get_instance_profile(InstanceProfileName=seed["instanceProfileName"])["InstanceProfile"]
    assert profile["Roles"][0]["Arn"] == seed["roleArn"]
    with refused("NoSuchEntity"):
        iam.get_instance_profile(InstanceProfileName="nobody")


def test_managed_policies_can_be_attached(iam, seed):
    attached = iam.list_attached_role_policies(RoleName=seed["roleName"])["AttachedPolicies"]
    assert "AmazonEKSWorkerNodePolicy" in {policy["PolicyName"] for policy in attached}
    iam.attach_role_policy(
        RoleName=seed["roleName"], PolicyArn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    )


def test_a_template_may_be_written_with_names_that_do_not_exist(ec2, seed):
    # EC2 verifies nothing until something is launched.
    data = launchable(seed, "ami-0123456789abcdef0")
    ec2.create_launch_template(LaunchTemplateName="hollow", LaunchTemplateData=data)
