"""Owns the proof that launches without capacity fail as AWS words it, and that a group recovers."""

from conftest import describe

SHORT = (
    "We currently do not have sufficient m5.large capacity in the Availability Zone you requested "
    "(us-west-2a). Our system will be working on provisioning additional capacity. You can currently get "
    "m5.large capacity by not specifying an Availability Zone in your request or choosing us-west-2b, "
    "us-west-2c, us-west-2d. Launching EC2 instance failed."
)


def activities(autoscaling, name="workers"):
    return autoscaling.describe_scaling_activities(AutoScalingGroupName=name)["Activities"]


def zones(autoscaling, name="workers"):
    return sorted(member["AvailabilityZone"][-1] for member in describe(autoscaling, name)["Instances"])


def test_a_zone_without_capacity_is_passed_over_with_a_failed_activity(admin, autoscaling, group):
    shortage = admin.post("/shortages", {"group": "workers", "zone": "us-west-2a"})
    group()
    assert zones(autoscaling) == ["b", "c"]
    failed = [activity for activity in activities(autoscaling) if activity["StatusCode"] == "Failed"]
    assert {activity["StatusMessage"] for activity in failed} == {SHORT}
    assert "us-west-2a" in failed[0]["Details"]
    group("other")
    assert zones(autoscaling, "other") == ["a", "b"]
    admin.delete(f"/shortages/{shortage['id']}")
    assert admin.ask("DELETE", f"/shortages/{shortage['id']}")[0] == 404
    assert zones(autoscaling) == ["b", "c"], "nothing was missing"


def test_a_group_without_capacity_recovers_when_the_shortage_ends(admin, autoscaling, group):
    admin.post("/shortages", {"instanceType": "m5.large"})
    group()
    assert describe(autoscaling)["Instances"] == [] and describe(autoscaling)["DesiredCapacity"] == 2
    assert len(activities(autoscaling)) == 6, "each zone was tried for each instance"
    assert "in your request. Launching EC2" in activities(autoscaling)[0]["StatusMessage"]
    admin.delete("/shortages")
    assert zones(autoscaling) == ["a", "b"]


def test_a_group_tries_again_in_its_own_time(admin, autoscaling, group, image, pass_time):
    admin.post("/timing", {"group": "workers", "retrySeconds": 60})
    admin.post("/shortages", {"imageId": image, "message": "Max spot instance count exceeded."})
    group(DesiredCapacity=1)
    before = len(activities(autoscaling))
    assert activities(autoscaling)[0]["StatusMessage"] == (
        "Max spot instance count exceeded. Launching EC2 instance failed."
    )
    pass_time(30)
    assert len(activities(autoscaling)) == before
    pass_time(31)
    assert len(activities(autoscaling)) == 2 * before


def test_spot_capacity_is_short_of_its_own(admin, autoscaling, group, template, seed):
    admin.post("/shortages", {"spot": True})
    group()
    assert len(describe(autoscaling)["Instances"]) == 2
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="spot",
        MinSize=0,
        MaxSize=2,
        DesiredCapacity=1,
        VPCZoneIdentifier=seed["subnetIds"][0],
        MixedInstancesPolicy={
            "LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateName": template}},
            "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0},
        },
    )
    assert activities(autoscaling, "spot")[0]["StatusMessage"] == (
        "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available "
        "that matches your request. Launching EC2 instance failed."
    )


def test_the_next_type_of_a_mixed_policy_steps_in(admin, autoscaling, template, seed):
    admin.post("/shortages", {"instanceType": "m5.xlarge"})
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="mixed",
        MinSize=0,
        MaxSize=2,
        DesiredCapacity=2,
        VPCZoneIdentifier=",".join(seed["subnetIds"]),
        MixedInstancesPolicy={
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {"LaunchTemplateName": template},
                "Overrides": [{"InstanceType": "m5.xlarge"}, {"InstanceType": "m5a.xlarge"}],
            },
        },
    )
    kinds = {member["InstanceType"] for member in describe(autoscaling, "mixed")["Instances"]}
    assert kinds == {"m5a.xlarge"}
    assert admin.ask("POST", "/shortages", {"continent": "Europe"})[0] == 400
