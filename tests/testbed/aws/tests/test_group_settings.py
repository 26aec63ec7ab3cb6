"""Owns the proof that groups are created, changed, listed and deleted as on AWS."""

import pytest
from conftest import describe, launchable, refused


def create(autoscaling, seed, **members):
    settings = {
        "AutoScalingGroupName": "workers",
        "MinSize": 0,
        "MaxSize": 1,
        "VPCZoneIdentifier": ",".join(seed["subnetIds"]),
        "LaunchTemplate": {"LaunchTemplateName": "workers", "Version": "1"},
        **members,
    }
    autoscaling.create_auto_scaling_group(**settings)


def test_a_second_group_of_the_name_is_refused(autoscaling, group):
    group()
    with refused("AlreadyExists"):
        group()


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"MinSize": 2, "MaxSize": 1}, "Max bound, 1, must be greater than or equal to min bound, 2"),
        ({"MinSize": 1, "MaxSize": 3, "DesiredCapacity": 5}, "Desired capacity:5 must be between"),
        ({"MinSize": 1, "MaxSize": 3, "DesiredCapacity": 0}, "Desired capacity:0 must be between"),
    ],
)
def test_sizes_must_fit(autoscaling, template, seed, sizes, text):
    with refused("ValidationError", text):
        create(autoscaling, seed, **sizes)


def test_an_update_keeps_the_desired_capacity_within_new_bounds(autoscaling, group):
    group(DesiredCapacity=2)
    autoscaling.update_auto_scaling_group(AutoScalingGroupName="workers", MinSize=3)
    assert describe(autoscaling)["DesiredCapacity"] == 3
    autoscaling.update_auto_scaling_group(AutoScalingGroupName="workers", MinSize=0, MaxSize=1)
    assert describe(autoscaling)["DesiredCapacity"] == 1
    assert len(describe(autoscaling)["Instances"]) == 1
    with refused("ValidationError", "Desired capacity:9 must be between"):
        autoscaling.update_auto_scaling_group(AutoScalingGroupName="workers", DesiredCapacity=9)
    with refused("ValidationError", "above max value 1"):
        autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=2)


def test_unknown_template_and_version(autoscaling, template, seed):
    prefix = "You must use a valid fully-formed launch template."
    with refused("ValidationError", prefix):
        create(autoscaling, seed, LaunchTemplate={"LaunchTemplateName": "nobody"})
    with refused("ValidationError", prefix):
        create(autoscaling, seed, LaunchTemplate={"LaunchTemplateId": "lt-0123456789abcdef0"})
    with refused("ValidationError", "version 7"):
        create(autoscaling, seed, LaunchTemplate={"LaunchTemplateName": "workers", "Version": "7"})


def test_unknown_subnet(autoscaling, template, seed):
    with refused("ValidationError", "The subnet ID 'subnet-0123456789abcdef0' does not exist"):
        create(autoscaling, seed, VPCZoneIdentifier="subnet-0123456789abcdef0")


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"ImageId": "ami-0123456789abcdef0"}, "The image id '[ami-0123456789abcdef0]' does not exist"),
        ({"InstanceType": "m99.huge"}, "m99.huge"),
        ({"InstanceType": "m6g.large"}, "architecture"),
        (
            {"SecurityGroupIds": ["sg-0123456789abcdef0"]},
            "The security group 'sg-0123456789abcdef0' does not",
        ),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "Invalid IAM Instance Profile name"),
        (
            {"IamInstanceProfile": {"Arn": "arn:aws:iam::123456789012:instance-profile/nobody"}},
            "Invalid IAM Instance Profile ARN",
        ),
        ({"KeyName": "nobody"}, "The key pair 'nobody' does not exist"),
    ],
)
def test_template_content_is_verified_on_create_and_update(
    autoscaling, ec2, group, seed, image, members, text
):
    ec2.create_launch_template(
        LaunchTemplateName="bad", LaunchTemplateData=launchable(seed, image, **members)
    )
    with refused("ValidationError", "You must use a valid fully-formed launch template. "):
        create(autoscaling, seed, LaunchTemplate={"LaunchTemplateName": "bad"})
    group(MaxSize=3)
    with refused("ValidationError", text):
        autoscaling.update_auto_scaling_group(
            AutoScalingGroupName="workers", MaxSize=9, LaunchTemplate={"LaunchTemplateName": "bad"}
        )
    unchanged = describe(autoscaling)
    assert unchanged["LaunchTemplate"]["LaunchTemplateName"] == "workers" and unchanged["MaxSize"] == 3


def test_unknown_groups(autoscaling, template):
    with refused("ValidationError", "AutoScalingGroup name not found - null"):
        autoscaling.update_auto_scaling_group(AutoScalingGroupName="nobody", MaxSize=1)
    with refused("ValidationError", "AutoScalingGroup name not found"):
        autoscaling.delete_auto_scaling_group(AutoScalingGroupName="nobody")
    with refused("ValidationError", "AutoScalingGroup name not found"):
        autoscaling.set_desired_capacity(AutoScalingGroupName="nobody", DesiredCapacity=1)
    with refused("ValidationError", "AutoScalingGroup name not found"):
        autoscaling.suspend_processes(AutoScalingGroupName="nobody")
    with refused("ValidationError"):
        autoscaling.create_or_update_tags(
            Tags=[{"ResourceId": "nobody", "ResourceType": "auto-scaling-group", "Key": "a", "Value": "b"}]
        )
    assert (
        autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["nobody"])["AutoScalingGroups"] == []
    )


def test_deletion(autoscaling, ec2, group):
    group()
    with refused("ResourceInUse"):
        autoscaling.delete_auto_scaling_group(AutoScalingGroupName="workers")
    members = [member["InstanceId"] for member in describe(autoscaling)["Instances"]]
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="workers", ForceDelete=True)
    assert autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"] == []
    reservations = ec2.describe_instances(InstanceIds=members)["Reservations"]
    assert {i["State"]["Name"] for r in reservations for i in r["Instances"]} == {"terminated"}


def test_filters(autoscaling, group):
    for name, value in (("one", "blue"), ("two", "green"), ("three", "blue")):
        group(
            name,
            DesiredCapacity=0,
            Tags=[{"Key": "colour", "Value": value}, {"Key": f"only-{name}", "Value": ""}],
        )

    def names(*filters):
        pairs = [{"Name": name, "Values": values} for name, values in filters]
        found = autoscaling.describe_auto_scaling_groups(Filters=pairs)["AutoScalingGroups"]
        return [shown["AutoScalingGroupName"] for shown in found]

    assert names(("tag:colour", ["blue"])) == ["one", "three"]
    assert names(("tag-key", ["only-two"])) == ["two"]
    assert names(("tag-value", ["green"])) == ["two"]
    assert names(("tag:colour", ["blue"]), ("tag-key", ["only-three"])) == ["three"]
    with refused("ValidationError", "colour"):
        names(("colour", ["blue"]))


def test_pages(autoscaling, group):
    for number in range(5):
        group(f"group-{number}", DesiredCapacity=0)
    first = autoscaling.describe_auto_scaling_groups(MaxRecords=2)
    # A group that vanishes between two pages must not disturb the listing.
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="group-1")
    second = autoscaling.describe_auto_scaling_groups(MaxRecords=2, NextToken=first["NextToken"])
    third = autoscaling.describe_auto_scaling_groups(MaxRecords=2, NextToken=second["NextToken"])
    seen = [g["AutoScalingGroupName"] for page in (first, second, third) for g in page["AutoScalingGroups"]]
    assert seen == [f"group-{number}" for number in range(5)]
    assert "NextToken" not in third
    with refused("ValidationError", "less than or equal to 100"):
        autoscaling.describe_auto_scaling_groups(MaxRecords=101)
    with refused("InvalidNextToken"):
        autoscaling.describe_auto_scaling_groups(NextToken="nonsense")


def test_processes(autoscaling, group):
    group()
    autoscaling.suspend_processes(AutoScalingGroupName="workers", ScalingProcesses=["Launch", "AZRebalance"])
    shown = describe(autoscaling)["SuspendedProcesses"]
    assert [process["ProcessName"] for process in shown] == ["AZRebalance", "Launch"]
    assert shown[0]["SuspensionReason"].startswith("User suspended at ")
    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=4)
    assert len(describe(autoscaling)["Instances"]) == 2
    autoscaling.resume_processes(AutoScalingGroupName="workers", ScalingProcesses=["Launch"])
    assert len(describe(autoscaling)["Instances"]) == 4
    autoscaling.resume_processes(AutoScalingGroupName="workers")
    assert describe(autoscaling)["SuspendedProcesses"] == []


def test_metrics(autoscaling, group):
    group()
    autoscaling.enable_metrics_collection(
        AutoScalingGroupName="workers", Granularity="1Minute", Metrics=["GroupMinSize", "GroupMaxSize"]
    )
    autoscaling.disable_metrics_collection(AutoScalingGroupName="workers", Metrics=["GroupMinSize"])
    assert describe(autoscaling)["EnabledMetrics"] == [{"Metric": "GroupMaxSize", "Granularity": "1Minute"}]
    autoscaling.enable_metrics_collection(AutoScalingGroupName="workers", Granularity="1Minute")
    assert len(describe(autoscaling)["EnabledMetrics"]) > 10
    autoscaling.disable_metrics_collection(AutoScalingGroupName="workers")
    assert describe(autoscaling)["EnabledMetrics"] == []


def test_tags(autoscaling, group):
    group(Tags=[{"Key": "kept", "Value": "1"}, {"Key": "gone", "Value": "1"}])
    of_group = {"ResourceId": "workers", "ResourceType": "auto-scaling-group"}
    autoscaling.create_or_update_tags(
        Tags=[
            {**of_group, "Key": "kept", "Value": "2", "PropagateAtLaunch": True},
            {**of_group, "Key": "new", "Value": "3", "PropagateAtLaunch": False},
        ]
    )
    autoscaling.delete_tags(Tags=[{**of_group, "Key": "gone"}])
    tags = {tag["Key"]: (tag["Value"], tag["PropagateAtLaunch"]) for tag in describe(autoscaling)["Tags"]}
    assert tags == {"kept": ("2", True), "new": ("3", False)}


def test_settings_that_an_update_can_change(autoscaling, group):
    group()
    autoscaling.update_auto_scaling_group(
        AutoScalingGroupName="workers",
        DefaultCooldown=77,
        TerminationPolicies=["OldestInstance"],
        MaxInstanceLifetime=86400,
        CapacityRebalance=True,
        DefaultInstanceWarmup=33,
        NewInstancesProtectedFromScaleIn=True,
    )
    shown = describe(autoscaling)
    assert shown["DefaultCooldown"] == 77 and shown["TerminationPolicies"] == ["OldestInstance"]
    assert shown["MaxInstanceLifetime"] == 86400 and shown["CapacityRebalance"] is True
    assert shown["DefaultInstanceWarmup"] == 33 and shown["NewInstancesProtectedFromScaleIn"] is True
