"""Owns the proof that instances take their time as told: they boot, wait, end, are interrupted."""

from conftest import describe, refused, versions_of


def states(autoscaling, name="workers"):
    return sorted(member["LifecycleState"] for member in describe(autoscaling, name)["Instances"])


def newest_activity(autoscaling):
    return autoscaling.describe_scaling_activities(AutoScalingGroupName="workers")["Activities"][0]


def machine(ec2, instance_id):
    return ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]


def terminate(autoscaling, instance_id, decrement=False):
    return autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=instance_id, ShouldDecrementDesiredCapacity=decrement
    )["Activity"]


def ids(autoscaling):
    return [member["InstanceId"] for member in describe(autoscaling)["Instances"]]


def test_an_instance_boots_before_it_is_in_service(admin, autoscaling, ec2, group, pass_time):
    admin.post("/timing", {"group": "workers", "bootSeconds": 60})
    group(DesiredCapacity=1)
    assert states(autoscaling) == ["Pending"]
    assert machine(ec2, ids(autoscaling)[0])["State"]["Name"] == "pending"
    activity = newest_activity(autoscaling)
    assert activity["StatusCode"] == "PreInService" and "EndTime" not in activity
    assert admin.get("/instances")["instances"][0]["nodeJoinDue"] is False
    pass_time(59)
    assert states(autoscaling) == ["Pending"]
    pass_time(2)
    assert states(autoscaling) == ["InService"]
    assert machine(ec2, ids(autoscaling)[0])["State"]["Name"] == "running"
    assert newest_activity(autoscaling)["StatusCode"] == "Successful"
    assert admin.get("/instances")["instances"][0]["nodeJoinDue"] is True
    autoscaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=2)
    assert len(ids(autoscaling)) == 2, "a pending instance is part of the capacity"


def test_times_of_one_group_go_before_those_of_all(admin, autoscaling, group):
    admin.post("/timing", {"bootSeconds": 60})
    admin.post("/timing", {"group": "fast", "bootSeconds": 0})
    group()
    group("fast")
    assert states(autoscaling) == ["Pending", "Pending"]
    assert states(autoscaling, "fast") == ["InService", "InService"]


def test_an_end_takes_its_time_and_the_replacement_comes_at_once(admin, autoscaling, ec2, group, pass_time):
    admin.post("/timing", {"group": "workers", "terminationSeconds": 30})
    group(DesiredCapacity=1)
    gone = ids(autoscaling)[0]
    first = terminate(autoscaling, gone)
    assert first["StatusCode"] == "InProgress"
    assert states(autoscaling) == ["InService", "Terminating"]
    assert machine(ec2, gone)["State"]["Name"] == "shutting-down"

    again = terminate(autoscaling, gone, decrement=True)
    assert again["ActivityId"] == first["ActivityId"], "a second request is fulfilled by the first"
    assert describe(autoscaling)["DesiredCapacity"] == 1 and len(ids(autoscaling)) == 2
    pass_time(31)
    assert states(autoscaling) == ["InService"] and gone not in ids(autoscaling)
    assert machine(ec2, gone)["State"]["Name"] == "terminated"
    with refused("ValidationError", "No managed instance found"):
        terminate(autoscaling, gone)


def test_an_instance_that_boots_can_be_terminated(admin, autoscaling, group):
    admin.post("/timing", {"group": "workers", "bootSeconds": 60})
    group(DesiredCapacity=1)
    terminate(autoscaling, ids(autoscaling)[0], decrement=True)
    assert ids(autoscaling) == []
    activities = autoscaling.describe_scaling_activities(AutoScalingGroupName="workers")["Activities"]
    assert [activity["StatusCode"] for activity in activities] == ["Successful", "Cancelled"]


def test_a_group_is_gone_with_its_last_instance(admin, autoscaling, group, pass_time):
    admin.post("/timing", {"group": "workers", "terminationSeconds": 30})
    group()
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="workers", ForceDelete=True)
    assert describe(autoscaling)["Status"] == "Delete in progress"
    assert states(autoscaling) == ["Terminating", "Terminating"]
    with refused("ValidationError", "pending delete"):
        autoscaling.update_auto_scaling_group(AutoScalingGroupName="workers", MaxSize=4)
    with refused("AlreadyExists"):
        group()
    pass_time(31)
    assert autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"] == []


def test_instances_wait_before_service_until_released(admin, autoscaling, group):
    admin.post("/groups/workers/holds", {"transition": "launching"})
    group(DesiredCapacity=3)
    assert states(autoscaling) == ["Pending:Wait"] * 3
    first, second, third = ids(autoscaling)
    assert admin.post(f"/instances/{first}/proceed") == {"lifecycleState": "InService"}
    autoscaling.complete_lifecycle_action(
        LifecycleHookName="any",
        AutoScalingGroupName="workers",
        InstanceId=second,
        LifecycleActionResult="ABANDON",
    )
    assert states(autoscaling) == ["InService", "Pending:Wait", "Pending:Wait"]
    assert second not in ids(autoscaling)
    admin.delete("/groups/workers/holds?transition=launching")
    assert states(autoscaling) == ["InService"] * 3 and third in ids(autoscaling)
    with refused("ValidationError", "No active Lifecycle Action found with instance ID"):
        autoscaling.complete_lifecycle_action(
            LifecycleHookName="any",
            AutoScalingGroupName="workers",
            InstanceId=third,
            LifecycleActionResult="CONTINUE",
        )


def test_instances_wait_before_their_end_until_released(admin, autoscaling, ec2, group):
    group(DesiredCapacity=1)
    admin.post("/groups/workers/holds", {"transition": "terminating"})
    gone = ids(autoscaling)[0]
    terminate(autoscaling, gone)
    assert states(autoscaling) == ["InService", "Terminating:Wait"]
    assert machine(ec2, gone)["State"]["Name"] == "running"
    autoscaling.complete_lifecycle_action(
        LifecycleHookName="any",
        AutoScalingGroupName="workers",
        InstanceId=gone,
        LifecycleActionResult="CONTINUE",
    )
    assert states(autoscaling) == ["InService"]
    assert admin.ask("POST", "/groups/workers/holds", {"transition": "sideways"})[0] == 400


def test_an_interrupted_instance_goes_and_the_group_refills(admin, autoscaling, ec2, group, pass_time):
    admin.post("/timing", {"group": "workers", "terminationSeconds": 30})
    group()
    gone = ids(autoscaling)[0]
    admin.post(f"/instances/{gone}/interrupt", {"noticeSeconds": 120})
    assert states(autoscaling) == ["InService", "InService"]
    pass_time(121)
    assert states(autoscaling) == ["InService", "InService", "Terminating"]
    activities = autoscaling.describe_scaling_activities(AutoScalingGroupName="workers")["Activities"]
    assert "EC2 health check indicating it has been terminated" in activities[1]["Cause"]
    pass_time(60)
    assert gone not in ids(autoscaling) and versions_of(autoscaling) == ["1", "1"]
    assert machine(ec2, gone)["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert admin.ask("POST", f"/instances/{gone}/interrupt")[0] == 404


def test_an_interruption_without_notice(admin, autoscaling, group):
    group(DesiredCapacity=1)
    gone = ids(autoscaling)[0]
    admin.post(f"/instances/{gone}/interrupt")
    assert states(autoscaling) == ["InService"] and gone not in ids(autoscaling)


def test_how_nodes_fare(admin, group, image, pass_time):
    group(DesiredCapacity=1)
    group("slow", DesiredCapacity=1)

    def shown() -> dict:
        instances = admin.get("/instances")["instances"]
        return {it["groupName"]: (it["nodeJoins"], it["nodeJoinDue"]) for it in instances}

    assert shown() == {"workers": ("ready", True), "slow": ("ready", True)}
    admin.post(f"/images/{image}/nodes", {"joins": "notReady"})
    admin.post("/groups/slow/nodes", {"joins": "never", "joinSeconds": 40})
    assert shown() == {"workers": ("notReady", True), "slow": ("never", False)}
    pass_time(41)
    assert shown()["slow"] == ("never", True)
    assert admin.ask("POST", "/groups/slow/nodes", {"joins": "sometimes"})[0] == 400
    assert admin.ask("POST", "/timing", {"bootHours": 1})[0] == 400
