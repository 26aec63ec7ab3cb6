"""Owns the proof that the history of a group tells what happened, failures included."""

from conftest import describe, launchable, refused


def activities(autoscaling, **members):
    return autoscaling.describe_scaling_activities(AutoScalingGroupName="workers", **members)["Activities"]


def test_launches_and_terminations_newest_first(autoscaling, group):
    group(DesiredCapacity=2)
    gone = describe(autoscaling)["Instances"][0]["InstanceId"]
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=gone, ShouldDecrementDesiredCapacity=False
    )
    history = activities(autoscaling)
    kinds = [activity["Description"].split(" EC2")[0] for activity in history]
    assert kinds == ["Launching a new", "Terminating", "Launching a new", "Launching a new"]
    assert {activity["StatusCode"] for activity in history} == {"Successful"}
    assert "in response to a user request" in history[1]["Cause"]
    assert "created an AutoScalingGroup changing the desired capacity from 0 to 2" in history[3]["Cause"]
    assert "Availability Zone" in history[0]["Details"]


def test_a_vanished_image_is_a_failed_activity(admin, autoscaling, ec2, group, seed, image):
    group(DesiredCapacity=1)
    ec2.deregister_image(ImageId=image)
    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=2)
    newest = activities(autoscaling)[0]
    assert newest["StatusCode"] == "Failed" and newest["Progress"] == 100
    assert (
        newest["StatusMessage"] == f"The image id '[{image}]' does not exist. Launching EC2 instance failed."
    )
    assert len(describe(autoscaling)["Instances"]) == 1
    assert describe(autoscaling)["DesiredCapacity"] == 2

    gone = describe(autoscaling)["Instances"][0]["InstanceId"]
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=gone, ShouldDecrementDesiredCapacity=False
    )
    assert describe(autoscaling)["Instances"] == []
    assert [activity["StatusCode"] for activity in activities(autoscaling)[:3]] == [
        "Failed",
        "Failed",
        "Successful",
    ]

    fresh = admin.image(name="fresh")
    ec2.create_launch_template_version(
        LaunchTemplateName="workers", LaunchTemplateData=launchable(seed, fresh)
    )
    autoscaling.update_auto_scaling_group(
        AutoScalingGroupName="workers", LaunchTemplate={"LaunchTemplateName": "workers", "Version": "2"}
    )
    assert len(describe(autoscaling)["Instances"]) == 2


def test_a_deleted_template_is_a_failed_activity(admin, autoscaling, ec2, group):
    group(DesiredCapacity=0)
    ec2.delete_launch_template(LaunchTemplateName="workers")
    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=1)
    assert activities(autoscaling)[0]["StatusCode"] == "Failed"
    admin.post("/reconcile")
    assert len(activities(autoscaling)) == 2


def test_pages_and_deleted_groups(autoscaling, group):
    group(DesiredCapacity=3)
    first = autoscaling.describe_scaling_activities(AutoScalingGroupName="workers", MaxRecords=2)
    second = autoscaling.describe_scaling_activities(
        AutoScalingGroupName="workers", MaxRecords=2, NextToken=first["NextToken"]
    )
    ids = [activity["ActivityId"] for page in (first, second) for activity in page["Activities"]]
    assert len(set(ids)) == 3 and "NextToken" not in second
    assert len(activities(autoscaling, ActivityIds=ids[:1])) == 1
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="workers", ForceDelete=True)
    with refused("ValidationError", "no such group"):
        activities(autoscaling)
    kept = activities(autoscaling, IncludeDeletedGroups=True)
    assert len(kept) == 6 and {activity["AutoScalingGroupState"] for activity in kept} == {"Deleted"}
