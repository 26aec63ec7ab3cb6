"""Owns the proof that standby and suspended processes change what a group does by itself."""

from conftest import describe, refused


def ids(autoscaling):
    return [member["InstanceId"] for member in describe(autoscaling)["Instances"]]


def states(autoscaling):
    return sorted(member["LifecycleState"] for member in describe(autoscaling)["Instances"])


def enter(autoscaling, instance_id, decrement):
    return autoscaling.enter_standby(
        AutoScalingGroupName="workers", InstanceIds=[instance_id], ShouldDecrementDesiredCapacity=decrement
    )["Activities"][0]


def suspend(autoscaling, *processes):
    autoscaling.suspend_processes(AutoScalingGroupName="workers", ScalingProcesses=list(processes))


def resume(autoscaling, *processes):
    autoscaling.resume_processes(AutoScalingGroupName="workers", ScalingProcesses=list(processes))


def test_standby_with_decrement_and_back(autoscaling, group):
    group(MinSize=1)
    first, second = ids(autoscaling)
    activity = enter(autoscaling, first, decrement=True)
    assert activity["Description"] == f"Moving EC2 instance to Standby: {first}"
    assert activity["StatusCode"] == "Successful" and "from 2 to 1" in activity["Cause"]
    assert states(autoscaling) == ["InService", "Standby"] and describe(autoscaling)["DesiredCapacity"] == 1
    with refused("ValidationError", f"The instance {first} is not in InService."):
        enter(autoscaling, first, decrement=True)
    with refused("ValidationError", "max-size=10, and desired-size=1. To place into standby 1 instance"):
        enter(autoscaling, second, decrement=True)
    back = autoscaling.exit_standby(AutoScalingGroupName="workers", InstanceIds=[first])["Activities"][0]
    assert "increasing the capacity from 1 to 2" in back["Cause"]
    assert states(autoscaling) == ["InService", "InService"] and describe(autoscaling)["DesiredCapacity"] == 2


def test_standby_without_decrement_is_replaced(autoscaling, group):
    group(DesiredCapacity=1, MaxSize=1)
    first = ids(autoscaling)[0]
    enter(autoscaling, first, decrement=False)
    assert states(autoscaling) == ["InService", "Standby"] and describe(autoscaling)["DesiredCapacity"] == 1
    with refused("ValidationError", "max-size=1, and desired-size=1. To take 1 instance out of standby"):
        autoscaling.exit_standby(AutoScalingGroupName="workers", InstanceIds=[first])
    with refused("ValidationError", "is not part of Auto Scaling group workers."):
        enter(autoscaling, "i-0123456789abcdef0", decrement=False)


def test_without_launch_nothing_is_launched(admin, autoscaling, group):
    group()
    suspend(autoscaling, "Launch")
    first, second = ids(autoscaling)
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=first, ShouldDecrementDesiredCapacity=False
    )
    autoscaling.set_instance_health(InstanceId=second, HealthStatus="Unhealthy")
    admin.post("/reconcile")
    assert ids(autoscaling) == [] and describe(autoscaling)["DesiredCapacity"] == 2
    resume(autoscaling, "Launch")
    assert len(ids(autoscaling)) == 2


def test_without_terminate_nothing_shrinks_and_nothing_is_replaced(autoscaling, group):
    group()
    before = ids(autoscaling)
    suspend(autoscaling, "Terminate")
    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=1)
    autoscaling.set_instance_health(InstanceId=before[0], HealthStatus="Unhealthy")
    assert ids(autoscaling) == before
    resume(autoscaling, "Terminate")
    assert ids(autoscaling) == [before[1]]


def test_lost_instances_stay_unnoticed_without_health_checks(autoscaling, ec2, group):
    group()
    first, second = ids(autoscaling)
    suspend(autoscaling, "HealthCheck")
    ec2.terminate_instances(InstanceIds=[first])
    assert ids(autoscaling) == [first, second]
    suspend(autoscaling, "ReplaceUnhealthy")
    resume(autoscaling, "HealthCheck")
    health = {member["InstanceId"]: member["HealthStatus"] for member in describe(autoscaling)["Instances"]}
    assert health == {first: "Unhealthy", second: "Healthy"}
    resume(autoscaling, "ReplaceUnhealthy")
    assert len(ids(autoscaling)) == 2 and first not in ids(autoscaling)


def test_zones_are_evened_out_unless_that_is_suspended(admin, autoscaling, group, seed):
    group(DesiredCapacity=4)
    subnet = seed["subnetIds"][2]
    autoscaling.update_auto_scaling_group(AutoScalingGroupName="workers", VPCZoneIdentifier=subnet)
    suspend(autoscaling, "AZRebalance")
    assert admin.post("/groups/workers/rebalance") == {"moved": 0}
    resume(autoscaling, "AZRebalance")
    assert admin.post("/groups/workers/rebalance") == {"moved": 3}
    members = describe(autoscaling)["Instances"]
    assert {member["AvailabilityZone"] for member in members} == {"us-west-2c"} and len(members) == 4
    assert admin.ask("POST", "/groups/nobody/rebalance")[0] == 404
