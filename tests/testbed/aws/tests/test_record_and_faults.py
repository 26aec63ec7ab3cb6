"""Owns the proof that calls are counted and that faults reach the caller in each protocol."""

import threading
import time

import pytest
from conftest import launchable, refused

SHAPES = [
    ("ec2", lambda clients: clients["ec2"].describe_vpcs(), "RequestLimitExceeded"),
    ("autoscaling", lambda clients: clients["autoscaling"].describe_auto_scaling_groups(), "Throttling"),
    ("iam", lambda clients: clients["iam"].list_roles(), "Throttling"),
    ("sts", lambda clients: clients["sts"].get_caller_identity(), "Throttling"),
    ("ssm", lambda clients: clients["ssm"].get_parameters(Names=["a"]), "ThrottlingException"),
    ("eks", lambda clients: clients["eks"].list_clusters(), "ServerException"),
]


@pytest.mark.parametrize(("service", "call", "code"), SHAPES)
def test_errors_have_the_shape_of_their_protocol(admin, session_clients, service, call, code):
    admin.post("/faults", {"service": service, "code": code, "message": "too <many>", "count": 1})
    with refused(code, "too <many>"):
        call(session_clients)
    answered = call(session_clients)
    assert answered["ResponseMetadata"]["HTTPStatusCode"] == 200
    record = admin.get("/calls")["calls"]
    assert [entry["errorCode"] for entry in record] == [code, None]
    assert [entry["status"] for entry in record] == [400, 200]


def test_before_has_no_effect_and_after_has_one(admin, ec2, seed, image):
    fault = {
        "service": "ec2",
        "action": "CreateLaunchTemplate",
        "code": "InternalError",
        "status": 500,
        "count": 1,
    }
    for when, effect in (("before", 0), ("after", 1)):
        admin.post("/faults", {**fault, "when": when})
        with refused("InternalError"):
            ec2.create_launch_template(LaunchTemplateName=when, LaunchTemplateData=launchable(seed, image))
        names = [{"Name": "launch-template-name", "Values": [when]}]
        assert len(ec2.describe_launch_templates(Filters=names)["LaunchTemplates"]) == effect


def test_faults_can_ask_for_a_parameter_and_be_removed(admin, autoscaling, group):
    group("one", DesiredCapacity=0)
    group("two", DesiredCapacity=0)
    fault = admin.post(
        "/faults",
        {"action": "SetDesiredCapacity", "code": "Throttling", "match": {"AutoScalingGroupName": "tw"}},
    )["id"]
    autoscaling.set_desired_capacity(AutoScalingGroupName="one", DesiredCapacity=1)
    with refused("Throttling"):
        autoscaling.set_desired_capacity(AutoScalingGroupName="two", DesiredCapacity=1)
    admin.delete(f"/faults/{fault}")
    autoscaling.set_desired_capacity(AutoScalingGroupName="two", DesiredCapacity=1)
    assert admin.ask("DELETE", f"/faults/{fault}")[0] == 404


def test_latency(admin, ec2):
    admin.post("/faults", {"service": "ec2", "latencyMilliseconds": 300, "code": None, "count": 1})
    started = time.monotonic()
    ec2.describe_vpcs()
    assert time.monotonic() - started >= 0.3


def test_a_call_can_hang_with_its_effect(admin, ec2, seed, image):
    admin.post("/faults", {"action": "CreateLaunchTemplate", "hang": True, "when": "after"})
    problems = []

    def create():
        try:
            ec2.create_launch_template(LaunchTemplateName="hung", LaunchTemplateData=launchable(seed, image))
        except Exception as problem:  # noqa: BLE001 - whatever the client makes of it
            problems.append(problem)

    caller = threading.Thread(target=create)
    caller.start()
    named = [{"Name": "launch-template-name", "Values": ["hung"]}]
    deadline = time.monotonic() + 10
    while not ec2.describe_launch_templates(Filters=named)["LaunchTemplates"]:
        assert time.monotonic() < deadline
    assert caller.is_alive()
    record = admin.get("/calls")["calls"]
    assert [call["status"] for call in record if call["action"] == "CreateLaunchTemplate"] == [None]
    admin.delete("/faults")
    caller.join(timeout=10)
    assert not caller.is_alive() and problems


def test_faults_without_sense_are_refused(admin):
    assert admin.ask("POST", "/faults", {"service": "ec2"})[0] == 400
    assert admin.ask("POST", "/faults", {"code": "X", "wen": "after"})[0] == 400


def test_calls_and_counts(admin, ec2, autoscaling, seed, image):
    start = admin.get("/calls")["last"]
    data = launchable(seed, image)
    ec2.create_launch_template(LaunchTemplateName="workers", LaunchTemplateData=data)
    ec2.describe_launch_templates()
    with refused("ValidationError"):
        autoscaling.delete_auto_scaling_group(AutoScalingGroupName="nobody")
    record = admin.get(f"/calls?after={start}")
    calls = record["calls"]
    assert [call["sequence"] for call in calls] == [start + 1, start + 2, start + 3]
    assert record["last"] == start + 3
    assert [call["mutating"] for call in calls] == [True, False, True]
    assert calls[0]["parameters"]["LaunchTemplateName"] == "workers"
    assert calls[0]["parameters"]["LaunchTemplateData.UserData"] == str(len(data["UserData"]))
    assert calls[2]["status"] == 400 and calls[2]["errorCode"] == "ValidationError"
    assert calls[0]["at"].endswith("Z") and len(calls[0]["at"]) == 24
    assert admin.get(f"/counts?after={start}") == {
        "ec2": {"CreateLaunchTemplate": 1, "DescribeLaunchTemplates": 1},
        "autoscaling": {"DeleteAutoScalingGroup": 1},
    }
    assert admin.get(f"/counts?after={start + 3}") == {}


def test_names_and_paths_of_other_protocols_are_recorded(admin, eks, ssm, seed):
    ssm.get_parameters(Names=["first", "second"])
    eks.describe_cluster(name="demo")
    first, second = admin.get("/calls")["calls"]
    assert first["parameters"]["Names.2"] == "second" and first["action"] == "GetParameters"
    assert (second["service"], second["action"]) == ("eks", "DescribeCluster")
    assert second["parameters"] == {"name": "demo"}


def test_an_action_that_is_missing_says_so(admin, autoscaling, group):
    group(DesiredCapacity=0)
    with refused("InvalidAction", "StartInstanceRefresh"):
        autoscaling.start_instance_refresh(AutoScalingGroupName="workers")
