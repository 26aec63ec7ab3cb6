"""Owns the server that the tests talk to and the clients they use; one process, reset for each test."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

PACKAGE_FOLDER = Path(__file__).resolve().parent.parent


def start_server() -> tuple[subprocess.Popen, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "simulated_aws", "--port", "0", "--exit-with-stdin"],
        cwd=PACKAGE_FOLDER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    assert line.startswith("listening on "), line
    return process, f"http://{line.split()[-1]}"


@dataclass
class Administration:
    base: str

    def ask(self, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/_simulation{path}", data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def get(self, path: str) -> dict:
        return self._accepted("GET", path)

    def post(self, path: str, body: dict | None = None) -> dict:
        return self._accepted("POST", path, body or {})

    def delete(self, path: str) -> dict:
        return self._accepted("DELETE", path)

    def image(self, **members: str) -> str:
        return self.post("/images", {"name": "node-image", **members})["imageId"]

    def _accepted(self, method: str, path: str, body: dict | None = None) -> dict:
        status, answer = self.ask(method, path, body)
        assert status == 200, answer
        return answer


@pytest.fixture(scope="session")
def base_url():
    process, base = start_server()
    yield base
    process.stdin.close()
    assert process.wait(timeout=10) == 0


@pytest.fixture(scope="session")
def session_clients(base_url):
    def client(service: str):
        return boto3.client(
            service,
            region_name="us-west-2",
            endpoint_url=base_url,
            aws_access_key_id="anything",
            aws_secret_access_key="goes",
            config=Config(retries={"max_attempts": 0}, read_timeout=20),
        )

    return {name: client(name) for name in ("autoscaling", "ec2", "eks", "iam", "ssm", "sts")}


@pytest.fixture
def admin(base_url):
    administration = Administration(base_url)
    administration.post("/reset")
    return administration


@pytest.fixture
def pass_time(admin):
    """A function that moves the clock so many seconds on."""
    passed = 0

    def move(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        admin.post("/clock", {"offsetSeconds": passed})

    return move


@pytest.fixture
def autoscaling(admin, session_clients):
    return session_clients["autoscaling"]


@pytest.fixture
def ec2(admin, session_clients):
    return session_clients["ec2"]


@pytest.fixture
def eks(admin, session_clients):
    return session_clients["eks"]


@pytest.fixture
def iam(admin, session_clients):
    return session_clients["iam"]


@pytest.fixture
def ssm(admin, session_clients):
    return session_clients["ssm"]


@pytest.fixture
def seed(admin):
    return admin.post("/seed", {"clusterName": "demo", "kubernetesVersion": "1.33"})


@pytest.fixture
def image(admin):
    return admin.image()


@pytest.fixture
def template(ec2, seed, image):
    """The name of a template with one version that can be launched."""
    ec2.create_launch_template(LaunchTemplateName="workers", LaunchTemplateData=launchable(seed, image))
    return "workers"


@pytest.fixture
def group(autoscaling, template, seed):
    """A function that creates a group from the template."""

    def create(name: str = "workers", version: str = "1", **members: object) -> str:
        settings = {"MinSize": 0, "MaxSize": 10, "DesiredCapacity": 2, **members}
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": template, "Version": version},
            VPCZoneIdentifier=",".join(seed["subnetIds"]),
            **settings,
        )
        return name

    return create


def launchable(seed: dict, image: str, **members: object) -> dict:
    return {
        "ImageId": image,
        "InstanceType": "m5.large",
        "SecurityGroupIds": [seed["securityGroupId"]],
        "IamInstanceProfile": {"Name": seed["instanceProfileName"]},
        "UserData": "aGVsbG8=",
        **members,
    }


def describe(autoscaling: object, name: str = "workers") -> dict:
    return autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]


def versions_of(autoscaling: object, name: str = "workers") -> list[str]:
    return sorted(member["LaunchTemplate"]["Version"] for member in describe(autoscaling, name)["Instances"])


class refused:
    """Expects a call to fail with an AWS error of the code, whose message holds the text."""

    def __init__(self, code: str, text: str = "") -> None:
        self.code, self.text = code, text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: object, trace: object) -> bool:
        assert problem is not None, f"expected {self.code}, but the call was accepted"
        error = getattr(problem, "response", {}).get("Error")
        if error is None:
            return False
        assert error["Code"] == self.code, error
        assert self.text in error["Message"], error
        return True
