//! The rules of `spec.eks.configuration`, and those of tags wherever they stand.
//!
//! Owns this part of the table of groups. It must not send anything.

use serde_json::{Value, json};

use super::group_table::{Case, case, managed, set};
use super::merged;

fn volume(edit: &Value) -> Value {
    let volume = merged(json!({"name": "/dev/xvda", "type": "gp3", "size": 10}), edit);
    set(
        "volumes",
        &json!([{"name": "/dev/xvdb", "type": "gp2", "size": 5}, volume]),
    )
}

fn hook(edit: &Value) -> Value {
    set(
        "lifecycleHooks",
        &json!([merged(json!({"name": "a", "lifecycle": "Launch"}), edit)]),
    )
}

fn mixed(edit: &Value) -> Value {
    set(
        "mixedInstancesPolicy",
        &merged(json!({"instancePool": "SubFamilyFlexible"}), edit),
    )
}

/// This part of the table.
pub fn cases() -> Vec<Case> {
    let parts = [image(), devices(), hooks(), spot(), placement(), tags()];
    parts.into_iter().flatten().collect()
}

fn image() -> Vec<Case> {
    let licences = |arn: &str| set("licenseSpecifications", &json!([arn]));
    let metadata = |field: &str, word: &str| set("metadataOptions", &json!({field: word}));
    vec![
        case(
            "spec.eks.configuration.image",
            "image must be an AMI id (ami-...), latest, or ssm:// followed by a name",
            [
                "latest",
                "LATEST",
                "ssm://recommended",
                "ssm:///team/image",
                "ami-12c6146b",
                "resolve:ssm:/team/image",
                "",
            ]
            .map(|image| set("image", &json!(image))),
            [
                "ubuntu", "ssm://", "SSM://x", "ami-", "ami_1", "ami-1 ", "newest", "ssm:/a",
            ]
            .map(|image| set("image", &json!(image))),
        ),
        case(
            "spec.eks.configuration.kubernetesVersion",
            "kubernetesVersion must be a minor version such as 1.33",
            ["1.33", "1.3", ""].map(|version| set("kubernetesVersion", &json!(version))),
            ["1.33.1", "v1.33", "2.1", "latest"].map(|version| set("kubernetesVersion", &json!(version))),
        ),
        case(
            "spec.eks.configuration.bootstrapOptions.containerRuntime",
            "bootstrapOptions.containerRuntime must be containerd or dockerd",
            ["containerd", "dockerd", ""]
                .map(|name| set("bootstrapOptions", &json!({"containerRuntime": name, "maxPods": 5}))),
            [set("bootstrapOptions", &json!({"containerRuntime": "cri-o"}))],
        ),
        case(
            "spec.eks.configuration.licenseSpecifications",
            "every entry of licenseSpecifications must be an ARN",
            [licences(
                "arn:aws:license-manager:us-west-2:1:license-configuration:lic-1",
            )],
            [licences("lic-1"), licences("")],
        ),
        case(
            "spec.eks.configuration.metadataOptions.httpEndpoint",
            "metadataOptions.httpEndpoint must be enabled or disabled",
            ["enabled", "disabled", ""].map(|word| metadata("httpEndpoint", word)),
            [metadata("httpEndpoint", "on")],
        ),
        case(
            "spec.eks.configuration.metadataOptions.httpTokens",
            "metadataOptions.httpTokens must be optional or required",
            ["optional", "required", ""].map(|word| metadata("httpTokens", word)),
            [metadata("httpTokens", "maybe")],
        ),
        case(
            "spec.eks.configuration.taints",
            "the effect of every taint must be NoSchedule, PreferNoSchedule or NoExecute",
            ["NoSchedule", "PreferNoSchedule", "NoExecute"]
                .map(|effect| set("taints", &json!([{"key": "a", "effect": effect}]))),
            ["Never", ""].map(|effect| {
                set(
                    "taints",
                    &json!([{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": effect}]),
                )
            }),
        ),
    ]
}

fn devices() -> Vec<Case> {
    vec![
        case(
            "spec.eks.configuration.volumes[].type",
            "the type of a volume must be gp2, gp3, io1, io2, sc1, st1 or standard",
            ["GP2", "gp3", "io1", "io2", "sc1", "st1", "standard"].map(|kind| volume(&json!({"type": kind}))),
            [volume(&json!({"type": "gp9"})), volume(&json!({"type": ""}))],
        ),
        case(
            "spec.eks.configuration.volumes[]",
            "iops of a volume needs type io1, io2 or gp3",
            ["IO1", "io2", "gp3"].map(|kind| volume(&json!({"type": kind, "iops": 3000}))),
            [volume(&json!({"type": "gp2", "iops": 3000}))],
        ),
        case(
            "spec.eks.configuration.volumes[]",
            "iops of a volume must be at least 100",
            [
                volume(&json!({"type": "io2", "iops": 100})),
                volume(&json!({"type": "gp2", "iops": 0})),
            ],
            [volume(&json!({"type": "io2", "iops": 99}))],
        ),
        case(
            "spec.eks.configuration.volumes[]",
            "throughput of a volume needs type gp3",
            [
                volume(&json!({"throughput": 125})),
                volume(&json!({"type": "io1", "throughput": 0})),
            ],
            [volume(&json!({"type": "io1", "throughput": 125}))],
        ),
        case(
            "spec.eks.configuration.volumes[]",
            "size of a volume must be 0 when snapshotId is set",
            [
                volume(&json!({"snapshotId": "snap-1", "size": 0})),
                volume(&json!({"snapshotId": ""})),
            ],
            [volume(&json!({"snapshotId": "snap-1"}))],
        ),
    ]
}

fn hooks() -> Vec<Case> {
    vec![
        case(
            "spec.eks.configuration.lifecycleHooks[].name",
            "the name of a lifecycle hook may hold letters, digits, -, _ and / only",
            [hook(&json!({"name": "drain/Nodes_1-b"}))],
            [hook(&json!({"name": "a b"})), hook(&json!({"name": "a.b"}))],
        ),
        case(
            "spec.eks.configuration.lifecycleHooks[].lifecycle",
            "lifecycle of a hook must be Launch or Terminate",
            [
                hook(&json!({"lifecycle": "launch"})),
                hook(&json!({"lifecycle": "Terminate"})),
            ],
            [hook(&json!({"lifecycle": "boot"})), hook(&json!({"lifecycle": ""}))],
        ),
        case(
            "spec.eks.configuration.lifecycleHooks[].heartbeatTimeout",
            "heartbeatTimeout of a hook must be 30 to 7200 seconds, or 0 for the default",
            [0, 30, 7200].map(|seconds| hook(&json!({"heartbeatTimeout": seconds}))),
            [-1, 29, 7201].map(|seconds| hook(&json!({"heartbeatTimeout": seconds}))),
        ),
        case(
            "spec.eks.configuration.lifecycleHooks[].notificationArn",
            "notificationArn of a hook must be an ARN",
            ["arn:aws:sns:us-west-2:1:topic", ""].map(|arn| hook(&json!({"notificationArn": arn}))),
            [hook(&json!({"notificationArn": "topic"}))],
        ),
        case(
            "spec.eks.configuration.lifecycleHooks[].roleArn",
            "roleArn of a hook must be an ARN",
            ["arn:aws:iam::1:role/x", ""].map(|arn| hook(&json!({"roleArn": arn}))),
            [hook(&json!({"roleArn": "role/x"}))],
        ),
    ]
}

fn spot() -> Vec<Case> {
    let pool = |name: &str| mixed(&json!({"instancePool": name}));
    let ratio = |share: Value| mixed(&json!({"spotRatio": share}));
    vec![
        case(
            "spec.eks.configuration.mixedInstancesPolicy",
            "mixedInstancesPolicy needs instancePool or instanceTypes",
            [
                mixed(&json!({})),
                mixed(&json!({"instancePool": null, "instanceTypes": [{"type": "m5.large"}]})),
            ],
            [mixed(&json!({"instancePool": null})), pool("")],
        ),
        case(
            "spec.eks.configuration.mixedInstancesPolicy",
            "mixedInstancesPolicy.instancePool must be SubFamilyFlexible",
            [
                pool("subfamilyflexible"),
                mixed(&json!({"instancePool": "any", "instanceTypes": [{"type": "m5.large"}]})),
            ],
            [pool("any")],
        ),
        case(
            "spec.eks.configuration.mixedInstancesPolicy",
            "mixedInstancesPolicy.spotPools needs strategy LowestPrice",
            [
                mixed(&json!({"spotPools": 3})),
                mixed(&json!({"spotPools": 3, "strategy": "lowestprice"})),
            ],
            [mixed(&json!({"spotPools": 3, "strategy": "CapacityOptimized"}))],
        ),
        case(
            "spec.eks.configuration.mixedInstancesPolicy.strategy",
            "mixedInstancesPolicy.strategy must be CapacityOptimized or LowestPrice",
            ["capacityoptimized", "LowestPrice", ""].map(|word| mixed(&json!({"strategy": word}))),
            [mixed(&json!({"strategy": "diversified"}))],
        ),
        case(
            "spec.eks.configuration.mixedInstancesPolicy.spotRatio",
            "mixedInstancesPolicy.spotRatio must be 0 to 100",
            [
                json!(0),
                json!(100),
                json!("50%"),
                json!("100%"),
                json!("no ratio, ignored"),
            ]
            .map(ratio),
            [json!(-1), json!(101), json!("101%"), json!("150%")].map(ratio),
        ),
    ]
}

fn placement() -> Vec<Case> {
    let place = |edit: Value| set("placement", &edit);
    vec![
        case(
            "spec.eks.configuration.placement",
            "placement.hostResourceGroupArn needs placement.tenancy host",
            [place(
                json!({"hostResourceGroupArn": "arn:aws:resource-groups:r:1:group/g", "tenancy": "Host"}),
            )],
            [
                place(json!({"hostResourceGroupArn": "arn:aws:resource-groups:r:1:group/g"})),
                place(json!({"hostResourceGroupArn": "arn:aws:resource-groups:r:1:group/g", "tenancy": "dedicated"})),
            ],
        ),
        case(
            "spec.eks.configuration.placement.hostResourceGroupArn",
            "placement.hostResourceGroupArn must be an ARN",
            [place(
                json!({"hostResourceGroupArn": "", "availabilityZone": "us-west-2a"}),
            )],
            [place(json!({"hostResourceGroupArn": "group/g", "tenancy": "host"}))],
        ),
        case(
            "spec.eks.configuration.placement.tenancy",
            "placement.tenancy must be default, dedicated or host",
            ["default", "Dedicated", "host", ""].map(|word| place(json!({"tenancy": word}))),
            [place(json!({"tenancy": "shared"}))],
        ),
    ]
}

/// The same two rules in three places.
fn tags() -> Vec<Case> {
    let group = |tag: &Value| set("tags", &json!([{"key": "a", "value": "b"}, tag]));
    let launch = |tag: &Value| set("tagSpecifications", &json!([{"resourceType": "volume", "tags": [tag]}]));
    let pool = |tag: &Value| managed(&json!({"configuration": {"tags": [tag]}}));
    let mut cases = tags_at("spec.eks.configuration.tags[]", group);
    cases.extend(tags_at("spec.eks.configuration.tagSpecifications[].tags[]", launch));
    cases.extend(tags_at("spec.eks-managed.configuration.tags[]", pool));
    cases
}

fn tags_at(field: &'static str, place: impl Fn(&Value) -> Value) -> Vec<Case> {
    vec![
        case(
            field,
            "every tag needs a key",
            [place(&json!({"key": "k"})), place(&json!({"key": "k", "value": ""}))],
            [place(&json!({"value": "b"})), place(&json!({"key": ""}))],
        ),
        case(
            field,
            "the key of a tag must not begin with aws:, which AWS keeps to itself",
            [place(&json!({"key": "team:aws:x", "value": "b"}))],
            [place(&json!({"key": "aws:x", "value": "b"}))],
        ),
    ]
}
