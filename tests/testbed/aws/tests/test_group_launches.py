"""Owns the proof that instances keep what they were launched from, and that groups replace them."""

from conftest import describe, launchable, refused, versions_of


def new_version(ec2, seed, image, name="workers", **members):
    answer = ec2.create_launch_template_version(
        LaunchTemplateName=name, LaunchTemplateData=launchable(seed, image, **members)
    )
    return str(answer["LaunchTemplateVersion"]["VersionNumber"])


def pin(autoscaling, version, name="workers"):
    autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateName": "workers", "Version": version},
    )


def test_a_changed_pin_concerns_later_launches_only(admin, autoscaling, ec2, group, seed):
    group()
    later = admin.image(name="later")
    pin(autoscaling, new_version(ec2, seed, later))
    assert versions_of(autoscaling) == ["1", "1"]
    assert describe(autoscaling)["LaunchTemplate"]["Version"] == "2"

    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=3)
    assert versions_of(autoscaling) == ["1", "1", "2"]
    newest = next(m for m in describe(autoscaling)["Instances"] if m["LaunchTemplate"]["Version"] == "2")
    described = ec2.describe_instances(InstanceIds=[newest["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert described["ImageId"] == later
    assert {"Key": "aws:ec2launchtemplate:version", "Value": "2"} in described["Tags"]
    assert described["IamInstanceProfile"]["Arn"] == seed["instanceProfileArn"]
    assert described["PrivateDnsName"].endswith(".us-west-2.compute.internal")


def test_latest_and_default_are_resolved_at_the_launch(autoscaling, ec2, group, seed, image):
    group("latest", "$Latest", DesiredCapacity=1)
    group("default", "$Default", DesiredCapacity=1)
    new_version(ec2, seed, image)
    for name in ("latest", "default"):
        autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=2)
    assert versions_of(autoscaling, "latest") == ["1", "2"]
    assert versions_of(autoscaling, "default") == ["1", "1"]
    assert describe(autoscaling, "latest")["LaunchTemplate"]["Version"] == "$Latest"
    ec2.modify_launch_template(LaunchTemplateName="workers", DefaultVersion="2")
    autoscaling.set_desired_capacity(AutoScalingGroupName="default", DesiredCapacity=3)
    assert versions_of(autoscaling, "default") == ["1", "1", "2"]


def test_instances_show_their_own_version_in_both_listings(autoscaling, ec2, group, seed, image):
    group()
    pin(autoscaling, new_version(ec2, seed, image))
    instances = autoscaling.describe_auto_scaling_instances()["AutoScalingInstances"]
    assert {member["LaunchTemplate"]["Version"] for member in instances} == {"1"}
    assert {member["AutoScalingGroupName"] for member in instances} == {"workers"}


def test_termination_without_decrement_replaces_from_the_pinned_version(autoscaling, ec2, group, seed, image):
    group()
    pin(autoscaling, new_version(ec2, seed, image))
    gone = describe(autoscaling)["Instances"][0]["InstanceId"]
    answer = autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=gone, ShouldDecrementDesiredCapacity=False
    )
    assert gone in answer["Activity"]["Description"]
    members = describe(autoscaling)["Instances"]
    assert len(members) == 2 and gone not in [member["InstanceId"] for member in members]
    assert versions_of(autoscaling) == ["1", "2"]
    state = ec2.describe_instances(InstanceIds=[gone])["Reservations"][0]["Instances"][0]["State"]["Name"]
    assert state == "terminated"


def test_termination_with_decrement_shrinks_the_group(autoscaling, group):
    group(MinSize=1)
    first, second = [member["InstanceId"] for member in describe(autoscaling)["Instances"]]
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=first, ShouldDecrementDesiredCapacity=True
    )
    assert describe(autoscaling)["DesiredCapacity"] == 1
    with refused("ValidationError", "desiredSize equals minSize (1)"):
        autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=second, ShouldDecrementDesiredCapacity=True
        )


def test_termination_of_an_unknown_instance(autoscaling, group):
    group()
    with refused(
        "ValidationError",
        "Instance Id not found - No managed instance found for instance ID: i-0123456789abcdef0",
    ):
        autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId="i-0123456789abcdef0", ShouldDecrementDesiredCapacity=False
        )


def test_instances_are_spread_over_the_zones(autoscaling, group):
    group(DesiredCapacity=6)
    zones = [member["AvailabilityZone"] for member in describe(autoscaling)["Instances"]]
    assert sorted(zones) == [f"us-west-2{letter}" for letter in "aabbcc"]


def test_an_instance_terminated_in_ec2_is_replaced(autoscaling, ec2, group):
    group()
    gone = describe(autoscaling)["Instances"][0]["InstanceId"]
    ec2.terminate_instances(InstanceIds=[gone])
    members = [member["InstanceId"] for member in describe(autoscaling)["Instances"]]
    assert len(members) == 2 and gone not in members


def test_an_unhealthy_instance_is_replaced(autoscaling, group):
    group()
    gone = describe(autoscaling)["Instances"][0]["InstanceId"]
    autoscaling.set_instance_health(InstanceId=gone, HealthStatus="Unhealthy")
    members = [member["InstanceId"] for member in describe(autoscaling)["Instances"]]
    assert len(members) == 2 and gone not in members


def test_protected_instances_survive_a_smaller_group(autoscaling, group):
    group()
    kept = describe(autoscaling)["Instances"][0]["InstanceId"]
    autoscaling.set_instance_protection(
        AutoScalingGroupName="workers", InstanceIds=[kept], ProtectedFromScaleIn=True
    )
    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=0)
    assert [member["InstanceId"] for member in describe(autoscaling)["Instances"]] == [kept]


def test_a_mixed_policy_launches_the_first_override(autoscaling, template, seed):
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="mixed",
        MinSize=0,
        MaxSize=4,
        DesiredCapacity=4,
        VPCZoneIdentifier=",".join(seed["subnetIds"]),
        MixedInstancesPolicy={
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {"LaunchTemplateName": template, "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.xlarge"}, {"InstanceType": "m5a.xlarge"}],
            },
            "InstancesDistribution": {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0},
        },
    )
    shown = describe(autoscaling, "mixed")
    assert "LaunchTemplate" not in shown
    assert shown["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"][1]["InstanceType"] == "m5a.xlarge"
    assert {member["InstanceType"] for member in shown["Instances"]} == {"m5.xlarge"}
    autoscaling.update_auto_scaling_group(AutoScalingGroupName="mixed", MaxSize=5)
    assert "MixedInstancesPolicy" in describe(autoscaling, "mixed")


def test_spot_share_of_a_mixed_policy(autoscaling, ec2, template, seed):
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="mixed",
        MinSize=0,
        MaxSize=4,
        DesiredCapacity=4,
        VPCZoneIdentifier=seed["subnetIds"][0],
        MixedInstancesPolicy={
            "LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateName": template}},
            "InstancesDistribution": {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0},
        },
    )
    reservations = ec2.describe_instances()["Reservations"]
    kinds = [instance.get("InstanceLifecycle") for r in reservations for instance in r["Instances"]]
    assert kinds.count("spot") == 3


def test_a_group_can_launch_from_a_launch_configuration(autoscaling, seed, image):
    autoscaling.create_launch_configuration(
        LaunchConfigurationName="old",
        ImageId=image,
        InstanceType="m5.large",
        SecurityGroups=[seed["securityGroupId"]],
        IamInstanceProfile=seed["instanceProfileName"],
    )
    sizes = {"MinSize": 1, "MaxSize": 1, "VPCZoneIdentifier": seed["subnetIds"][0]}
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="workers", LaunchConfigurationName="old", **sizes
    )
    shown = describe(autoscaling)
    assert shown["LaunchConfigurationName"] == "old" and "LaunchTemplate" not in shown
    assert shown["Instances"][0]["LaunchConfigurationName"] == "old"
    with refused("ValidationError", "Launch configuration"):
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="other", LaunchConfigurationName="nobody", **sizes
        )


def test_instances_are_found_by_their_group(autoscaling, ec2, group):
    group("one", DesiredCapacity=1)
    group("two", DesiredCapacity=2, Tags=[{"Key": "colour", "Value": "blue", "PropagateAtLaunch": True}])
    filters = [
        {"Name": "tag:aws:autoscaling:groupName", "Values": ["two"]},
        {"Name": "tag:colour", "Values": ["blue"]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    found = [i for r in ec2.describe_instances(Filters=filters)["Reservations"] for i in r["Instances"]]
    members = {member["InstanceId"] for member in describe(autoscaling, "two")["Instances"]}
    assert {instance["InstanceId"] for instance in found} == members


def test_lifecycle_hooks_of_the_creation_are_kept(autoscaling, group):
    hook = {"LifecycleHookName": "drain", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    group(DesiredCapacity=0, LifecycleHookSpecificationList=[hook])
    hooks = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="workers")["LifecycleHooks"]
    assert [shown["LifecycleHookName"] for shown in hooks] == ["drain"]
