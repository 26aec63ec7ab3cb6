"""Owns the proof that launch templates, their versions and client tokens behave as on EC2."""

from conftest import refused


def create(ec2, name="workers", **members):
    data = members.pop("data", {"ImageId": "ami-0123456789abcdef0", "InstanceType": "m5.large"})
    return ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data, **members)[
        "LaunchTemplate"
    ]


def add(ec2, name="workers", **members):
    data = members.pop("data", {"InstanceType": "m5.xlarge"})
    answer = ec2.create_launch_template_version(LaunchTemplateName=name, LaunchTemplateData=data, **members)
    return answer["LaunchTemplateVersion"]


def numbers(answer):
    return [version["VersionNumber"] for version in answer["LaunchTemplateVersions"]]


def test_tags_of_the_template_are_kept_apart_from_its_data(ec2):
    create(
        ec2,
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "owner", "Value": "me"}]}],
        data={
            "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "role", "Value": "node"}]}]
        },
    )
    create(ec2, "other")
    found = ec2.describe_launch_templates(Filters=[{"Name": "tag:owner", "Values": ["me"]}])[
        "LaunchTemplates"
    ]
    assert [template["LaunchTemplateName"] for template in found] == ["workers"]
    assert found[0]["Tags"] == [{"Key": "owner", "Value": "me"}]
    data = ec2.describe_launch_template_versions(LaunchTemplateName="workers")["LaunchTemplateVersions"][0]
    kinds = [spec["ResourceType"] for spec in data["LaunchTemplateData"]["TagSpecifications"]]
    assert kinds == ["instance"]
    ec2.create_tags(Resources=[found[0]["LaunchTemplateId"]], Tags=[{"Key": "late", "Value": "1"}])
    found = ec2.describe_launch_templates(Filters=[{"Name": "tag-key", "Values": ["late", "absent"]}])
    assert len(found["LaunchTemplates"]) == 1


def test_look_up_by_name_and_identifier(ec2):
    created = create(ec2)
    assert created["DefaultVersionNumber"] == created["LatestVersionNumber"] == 1
    by_name = ec2.describe_launch_templates(LaunchTemplateNames=["workers"])["LaunchTemplates"]
    by_id = ec2.describe_launch_templates(LaunchTemplateIds=[created["LaunchTemplateId"]])["LaunchTemplates"]
    by_filter = ec2.describe_launch_templates(
        Filters=[{"Name": "launch-template-name", "Values": ["work*"]}]
    )["LaunchTemplates"]
    assert by_name == by_id == by_filter
    with refused("InvalidLaunchTemplateName.NotFoundException"):
        ec2.describe_launch_templates(LaunchTemplateNames=["nobody"])
    with refused("InvalidLaunchTemplateId.NotFound"):
        ec2.describe_launch_templates(LaunchTemplateIds=["lt-0123456789abcdef0"])
    with refused("InvalidLaunchTemplateId.Malformed"):
        ec2.describe_launch_templates(LaunchTemplateIds=["nonsense"])
    with refused("InvalidLaunchTemplateName.NotFoundException"):
        ec2.describe_launch_template_versions(LaunchTemplateName="nobody")
    with refused("InvalidLaunchTemplateName.NotFoundException"):
        ec2.delete_launch_template(LaunchTemplateName="nobody")


def test_a_name_is_taken_once(ec2):
    create(ec2)
    with refused("InvalidLaunchTemplateName.AlreadyExistsException"):
        create(ec2)
    with refused("InvalidLaunchTemplateName.MalformedException"):
        create(ec2, "no spaces")


def test_version_entries(ec2):
    create(ec2, VersionDescription="first")
    added = add(ec2, VersionDescription="second", SourceVersion="1")
    assert added["VersionNumber"] == 2 and added["DefaultVersion"] is False
    # What the new version does not give comes from its source.
    assert added["LaunchTemplateData"] == {"ImageId": "ami-0123456789abcdef0", "InstanceType": "m5.xlarge"}
    answer = ec2.describe_launch_template_versions(LaunchTemplateName="workers")
    assert numbers(answer) == [2, 1]
    entry = answer["LaunchTemplateVersions"][1]
    assert entry["VersionDescription"] == "first" and entry["DefaultVersion"] is True and entry["CreateTime"]
    assert entry["LaunchTemplateData"]["InstanceType"] == "m5.large"


def test_selected_versions(ec2):
    create(ec2)
    add(ec2)
    add(ec2)
    select = ec2.describe_launch_template_versions
    assert numbers(select(LaunchTemplateName="workers", Versions=["$Latest", "$Default"])) == [3, 1]
    assert numbers(select(LaunchTemplateName="workers", Versions=["2"])) == [2]
    assert numbers(select(LaunchTemplateName="workers", MinVersion="2")) == [3, 2]
    only_default = [{"Name": "is-default-version", "Values": ["true"]}]
    assert numbers(select(LaunchTemplateName="workers", Filters=only_default)) == [1]
    with refused("InvalidLaunchTemplateId.VersionNotFound"):
        select(LaunchTemplateName="workers", Versions=["9"])


def test_the_default_versions_of_all_templates_in_pages(ec2):
    for number in range(5):
        create(ec2, f"template-{number}")
        add(ec2, f"template-{number}")
    pages, token = [], None
    while True:
        extra = {"NextToken": token} if token else {}
        answer = ec2.describe_launch_template_versions(Versions=["$Default"], MaxResults=2, **extra)
        pages.append(answer["LaunchTemplateVersions"])
        token = answer.get("NextToken")
        if not token:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    entries = [entry for page in pages for entry in page]
    assert {entry["VersionNumber"] for entry in entries} == {1}
    assert [entry["LaunchTemplateName"] for entry in entries] == [f"template-{number}" for number in range(5)]
    assert numbers(ec2.describe_launch_template_versions(Versions=["$Latest"], MaxResults=200)) == [2] * 5
    with refused("InvalidParameterValue"):
        ec2.describe_launch_template_versions(Versions=["1"])
    with refused("InvalidParameterValue"):
        ec2.describe_launch_template_versions(Versions=["$Latest"], MaxResults=201)


def test_templates_in_pages(ec2):
    for number in range(3):
        create(ec2, f"template-{number}")
    first = ec2.describe_launch_templates(MaxResults=2)
    second = ec2.describe_launch_templates(MaxResults=2, NextToken=first["NextToken"])
    assert [t["LaunchTemplateName"] for t in second["LaunchTemplates"]] == ["template-2"]
    assert "NextToken" not in second


def test_the_default_version_can_be_moved(ec2):
    create(ec2)
    add(ec2)
    answer = ec2.modify_launch_template(LaunchTemplateName="workers", DefaultVersion="2")
    assert answer["LaunchTemplate"]["DefaultVersionNumber"] == 2
    with refused("InvalidLaunchTemplateId.VersionNotFound"):
        ec2.modify_launch_template(LaunchTemplateName="workers", DefaultVersion="9")


def test_deleting_versions(ec2):
    create(ec2)
    add(ec2)
    add(ec2)
    answer = ec2.delete_launch_template_versions(LaunchTemplateName="workers", Versions=["1", "2", "8"])
    deleted = answer["SuccessfullyDeletedLaunchTemplateVersions"]
    assert [item["VersionNumber"] for item in deleted] == [2]
    kept = {
        item["VersionNumber"]: item["ResponseError"]["Code"]
        for item in answer["UnsuccessfullyDeletedLaunchTemplateVersions"]
    }
    assert kept == {1: "unexpectedError", 8: "launchTemplateVersionDoesNotExist"}
    assert numbers(ec2.describe_launch_template_versions(LaunchTemplateName="workers")) == [3, 1]
    # Numbers are not given twice.
    assert add(ec2)["VersionNumber"] == 4


def test_client_tokens(ec2):
    first = create(ec2, ClientToken="token-1")
    assert create(ec2, ClientToken="token-1") == first
    with refused("IdempotentParameterMismatch"):
        create(ec2, ClientToken="token-1", VersionDescription="other")
    version = add(ec2, ClientToken="token-2")
    assert add(ec2, ClientToken="token-2") == version
    with refused("IdempotentParameterMismatch"):
        add(ec2, ClientToken="token-2", data={"InstanceType": "m5.2xlarge"})
    assert numbers(ec2.describe_launch_template_versions(LaunchTemplateName="workers")) == [2, 1]


def test_user_data(ec2):
    create(ec2, data={"UserData": "aGVsbG8="})
    entry = ec2.describe_launch_template_versions(LaunchTemplateName="workers")["LaunchTemplateVersions"][0]
    assert entry["LaunchTemplateData"]["UserData"] == "aGVsbG8="
    with refused("InvalidUserData.Malformed"):
        create(ec2, "other", data={"UserData": "!!"})
    with refused("InvalidParameterValue", "16384"):
        create(ec2, "other", data={"UserData": "QUFB" * 6000})
