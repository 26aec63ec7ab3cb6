"""Owns the proof that SSM's public parameters and EKS clusters read as on AWS."""

from datetime import UTC, datetime

from conftest import refused

NAME = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"


def test_parameters_have_versions_and_dates(admin, ssm):
    first = admin.post(
        "/parameters", {"name": NAME, "value": "ami-1", "lastModified": "2026-02-03T04:05:06Z"}
    )
    second = admin.post(
        "/parameters", {"name": NAME, "value": "ami-2", "lastModified": "2026-03-03T04:05:06Z"}
    )
    assert (first["version"], second["version"]) == (1, 2)
    parameter = ssm.get_parameter(Name=NAME)["Parameter"]
    assert parameter["Value"] == "ami-2" and parameter["Version"] == 2
    assert parameter["LastModifiedDate"].astimezone(UTC) == datetime(2026, 3, 3, 4, 5, 6, tzinfo=UTC)
    assert parameter["ARN"] == f"arn:aws:ssm:us-west-2::parameter{NAME}"
    assert ssm.get_parameter(Name=f"{NAME}:1")["Parameter"]["Value"] == "ami-1"


def test_unknown_parameters(admin, ssm):
    admin.post("/parameters", {"name": NAME, "value": "ami-1"})
    answer = ssm.get_parameters(Names=["/aws/service/eks/absent", NAME])
    assert answer["InvalidParameters"] == ["/aws/service/eks/absent"]
    assert [parameter["Version"] for parameter in answer["Parameters"]] == [1]
    with refused("ParameterNotFound"):
        ssm.get_parameter(Name="/aws/service/eks/absent")
    admin.delete(f"/parameters?name={NAME}")
    assert ssm.get_parameters(Names=[NAME])["InvalidParameters"] == [NAME]


def test_ten_names_at_most(ssm):
    with refused("ValidationException"):
        ssm.get_parameters(Names=[f"/aws/service/eks/{number}" for number in range(11)])


def test_each_answer_has_a_date(admin, ssm):
    admin.post("/parameters", {"name": NAME, "value": "ami-1"})
    headers = ssm.get_parameter(Name=NAME)["ResponseMetadata"]["HTTPHeaders"]
    at = datetime.strptime(headers["date"], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - at).total_seconds()) < 60


def test_a_cluster(eks, seed):
    cluster = eks.describe_cluster(name="demo")["cluster"]
    assert cluster["version"] == "1.33" and cluster["status"] == "ACTIVE"
    assert cluster["endpoint"].startswith("https://") and cluster["certificateAuthority"]["data"]
    assert cluster["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "172.20.0.0/16"
    assert cluster["resourcesVpcConfig"]["vpcId"] == seed["vpcId"]
    assert cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP"
    with refused("ResourceNotFoundException", "No cluster found for name: nobody."):
        eks.describe_cluster(name="nobody")


def test_the_update_of_a_version(eks, seed):
    update = eks.update_cluster_version(name="demo", version="1.34", clientRequestToken="token-1")["update"]
    assert update["type"] == "VersionUpdate" and update["status"] == "InProgress"
    again = eks.update_cluster_version(name="demo", version="1.34", clientRequestToken="token-1")["update"]
    assert again["id"] == update["id"]
    assert eks.describe_cluster(name="demo")["cluster"]["version"] == "1.34"
    assert eks.describe_update(name="demo", updateId=update["id"])["update"]["status"] == "Successful"
    with refused("InvalidParameterException"):
        eks.update_cluster_version(name="demo", version="1.36")
    with refused("ResourceNotFoundException"):
        eks.update_cluster_version(name="nobody", version="1.34")


def test_the_administration_sets_versions_directly(admin, eks, seed):
    admin.post("/clusters/demo", {"version": "1.31", "authenticationMode": "API_AND_CONFIG_MAP"})
    cluster = eks.describe_cluster(name="demo")["cluster"]
    assert cluster["version"] == "1.31"
    assert cluster["accessConfig"]["authenticationMode"] == "API_AND_CONFIG_MAP"
    assert admin.ask("POST", "/clusters/nobody", {"version": "1.31"})[0] == 404
