"""Owns the proof that the side door for tests does what it says, unseen by the record of calls."""

import http.client
import socket
from urllib.parse import urlsplit

from conftest import Administration, describe, start_server


def test_seeding_is_idempotent_and_not_counted(admin):
    first = admin.post("/seed", {"clusterName": "demo", "kubernetesVersion": "1.33"})
    assert admin.post("/seed", {"clusterName": "demo", "kubernetesVersion": "1.33"}) == first
    assert len(first["subnetIds"]) == 3 and first["accountId"] == "123456789012"
    assert first["instanceProfileName"] == "demo-node" and first["region"] == "us-west-2"
    other = admin.post("/seed", {"clusterName": "other"})
    assert other["vpcId"] != first["vpcId"]
    assert admin.get("/counts") == {}


def test_instances(admin, autoscaling, group, seed, image):
    group(DesiredCapacity=1)
    shown = admin.get("/instances")["instances"]
    assert len(shown) == 1
    member = describe(autoscaling)["Instances"][0]
    assert shown[0]["instanceId"] == member["InstanceId"] and shown[0]["zone"] == member["AvailabilityZone"]
    assert shown[0]["groupName"] == "workers" and shown[0]["launchTemplateVersion"] == "1"
    assert shown[0]["imageId"] == image and shown[0]["instanceType"] == "m5.large"
    assert shown[0]["roleArn"] == seed["roleArn"]
    assert shown[0]["instanceProfileArn"] == seed["instanceProfileArn"]
    assert shown[0]["lifecycleState"] == "InService" and shown[0]["healthStatus"] == "Healthy"
    assert shown[0]["privateDnsName"].startswith("ip-10-0-") and shown[0]["launchedAt"].endswith("Z")


def test_an_image_may_have_a_given_identifier_and_be_deregistered(admin, ec2):
    assert admin.image(imageId="ami-0aaaaaaaaaaaaaaaa") == "ami-0aaaaaaaaaaaaaaaa"
    admin.post("/images/ami-0aaaaaaaaaaaaaaaa/deregister")
    assert admin.ask("POST", "/images/ami-0aaaaaaaaaaaaaaaa/deregister")[0] == 404


def test_errors_are_json(admin):
    for method, path, body, status in (
        ("GET", "/nowhere", None, 404),
        ("GET", "/seed", None, 405),
        ("POST", "/images", {}, 400),
        ("POST", "/images/ami-1/deprecate", {"at": "2026-01-01T00:00:00Z"}, 404),
        ("POST", "/images", {"name": "x", "creationDate": "yesterday"}, 400),
    ):
        answered, content = admin.ask(method, path, body)
        assert answered == status and content["error"], (path, answered, content)


def test_reset_forgets_all_but_the_sequence(admin, ec2):
    ec2.describe_vpcs()
    before = admin.get("/calls")["last"]
    admin.post("/reset")
    assert admin.get("/calls") == {"calls": [], "last": before}
    ec2.describe_vpcs()
    assert admin.get(f"/calls?after={before}")["calls"][0]["sequence"] == before + 1


def test_the_clock_can_be_moved(admin, ec2, seed, image):
    admin.post("/clock", {"offsetSeconds": 86400 * 365})
    created = ec2.create_launch_template(LaunchTemplateName="later", LaunchTemplateData={"ImageId": image})
    now = admin.get("/health")["now"]
    assert str(created["LaunchTemplate"]["CreateTime"].year) == now[:4]
    year = int(now[:4])
    assert str(year) in created["ResponseMetadata"]["HTTPHeaders"]["date"]


def test_connections_are_kept_and_nagle_is_off(admin, base_url):
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.connect()
    local = connection.sock.getsockname()
    for _ in range(3):
        connection.request("GET", "/_simulation/health")
        response = connection.getresponse()
        response.read()
        assert response.status == 200 and response.version == 11
        assert connection.sock is not None and connection.sock.getsockname() == local
    connection.close()


def test_the_process_ends_with_its_standard_input():
    process, base = start_server()
    assert Administration(base).get("/health")["status"] == "ok"
    process.stdin.close()
    assert process.wait(timeout=10) == 0
    address = urlsplit(base)
    with socket.socket() as probe:
        assert probe.connect_ex((address.hostname, address.port)) != 0
