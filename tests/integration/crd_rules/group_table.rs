//! Every rule of a group: what it takes and what it refuses.
//!
//! Owns the table; its part on what nodes are made of is in `group_configuration`. It must not send anything.

use serde_json::{Value, json};

use super::{API_VERSION, Rule, group_configuration, merged};

/// A rule with edits of [`base`] that keep it and edits that break it.
pub struct Case {
    pub field: &'static str,
    pub message: &'static str,
    pub accepted: Vec<Value>,
    pub refused: Vec<Value>,
}

impl Case {
    pub fn rule(&self) -> Rule {
        Rule {
            field: self.field.to_owned(),
            message: self.message.to_owned(),
        }
    }
}

/// A group that breaks no rule.
pub fn base(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "InstanceGroup", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "provisioner": "eks",
            "strategy": {"type": "rollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "eks": {"minSize": 1, "maxSize": 3, "configuration": {
                "clusterName": "demo", "image": "ami-0123456789abcdef0", "instanceType": "m5.large",
                "subnets": ["subnet-1"], "securityGroups": ["sg-1"],
            }},
        },
    })
}

pub fn case<const A: usize, const R: usize>(
    field: &'static str,
    message: &'static str,
    accepted: [Value; A],
    refused: [Value; R],
) -> Case {
    Case {
        field,
        message,
        accepted: accepted.into(),
        refused: refused.into(),
    }
}

fn spec(edit: &Value) -> Value {
    json!({"spec": edit})
}

fn eks(edit: &Value) -> Value {
    spec(&json!({"eks": edit}))
}

/// An edit of one field of the configuration.
pub fn set(field: &str, value: &Value) -> Value {
    eks(&json!({"configuration": {field: value}}))
}

fn rolling(field: &str, value: &Value) -> Value {
    spec(&json!({"strategy": {"rollingUpdate": {field: value}}}))
}

pub fn managed(edit: &Value) -> Value {
    let section = json!({"minSize": 1, "maxSize": 2, "configuration": {"clusterName": "demo"}});
    spec(&json!({"provisioner": "eks-managed", "eks": null, "eks-managed": merged(section, edit)}))
}

/// A Fargate profile; what the edit names is replaced as a whole.
fn fargate(edit: &Value) -> Value {
    let mut edits = json!({
        "provisioner": "eks-fargate", "eks": null, "strategy": {"type": "managed", "rollingUpdate": null},
        "eks-fargate": {"clusterName": "demo", "selectors": [{"namespace": "team"}]},
    });
    for (field, value) in edit.as_object().into_iter().flatten() {
        edits[field.as_str()] = value.clone();
    }
    spec(&edits)
}

/// The table.
pub fn cases() -> Vec<Case> {
    let parts = [sections(), strategy(), sizes(), group_configuration::cases()];
    parts.into_iter().flatten().collect()
}

fn sections() -> Vec<Case> {
    vec![
        case(
            "spec.provisioner",
            "provisioner must be eks, eks-managed or eks-fargate",
            [
                spec(&json!({"provisioner": "EKS"})),
                spec(&json!({"provisioner": ""})),
                spec(&json!({"provisioner": null})),
            ],
            [
                spec(&json!({"provisioner": "ec2"})),
                spec(&json!({"provisioner": " eks"})),
            ],
        ),
        case(
            "spec",
            "spec.eks is required when spec.provisioner is eks",
            [spec(&json!({"provisioner": null, "eks": null})), managed(&json!({}))],
            [
                spec(&json!({"eks": null})),
                spec(&json!({"provisioner": "EKS", "eks": null})),
            ],
        ),
        case(
            "spec",
            "spec.eks-managed is required when spec.provisioner is eks-managed",
            [managed(&json!({}))],
            [
                spec(&json!({"provisioner": "eks-managed"})),
                spec(&json!({"provisioner": "EKS-Managed", "eks": null})),
            ],
        ),
        case(
            "spec",
            "spec.eks-fargate is required when spec.provisioner is eks-fargate",
            [fargate(&json!({}))],
            [
                fargate(&json!({"eks-fargate": null})),
                fargate(&json!({"provisioner": "EKS-Fargate", "eks-fargate": null})),
            ],
        ),
        case(
            "spec",
            "spec.strategy.type must be managed when spec.provisioner is eks-fargate",
            [
                fargate(&json!({"strategy": {"type": "Managed"}})),
                fargate(&json!({"strategy": null})),
            ],
            [
                fargate(&json!({"strategy": {"type": "rollingUpdate"}})),
                fargate(&json!({"strategy": {"type": "crd"}})),
            ],
        ),
    ]
}

fn strategy() -> Vec<Case> {
    vec![
        case(
            "spec.strategy.type",
            "strategy.type must be rollingUpdate, crd or managed",
            ["CRD", "managed", "rollingupdate", ""].map(|word| spec(&json!({"strategy": {"type": word}}))),
            ["recreate", "rolling-update"].map(|word| spec(&json!({"strategy": {"type": word}}))),
        ),
        case(
            "spec.strategy.rollingUpdate.maxUnavailable",
            "rollingUpdate.maxUnavailable must be a number from 0 or a percentage such as 25%",
            [json!(0), json!(5), json!("25%"), json!("100%"), json!("150%")]
                .map(|size| rolling("maxUnavailable", &size)),
            [
                json!(-1),
                json!(2_147_483_648_u32),
                json!("-5%"),
                json!("3"),
                json!("abc"),
                json!(""),
            ]
            .map(|size| rolling("maxUnavailable", &size)),
        ),
        case(
            "spec.strategy.rollingUpdate.drainTimeout",
            "rollingUpdate.drainTimeout must be a duration above zero such as 90s, 15m or 1h30m",
            ["15m", "1h30m", "90s", "1d12h", "2w", ""].map(|time| rolling("drainTimeout", &json!(time))),
            ["0s", "0h0m", "15", "1.5h", "-5m", "1 h", "1y", "m"].map(|time| rolling("drainTimeout", &json!(time))),
        ),
        case(
            "spec.strategy.rollingUpdate.readyTimeout",
            "rollingUpdate.readyTimeout must be a duration above zero such as 90s, 15m or 1h30m",
            ["15m", "1h30m", ""].map(|time| rolling("readyTimeout", &json!(time))),
            ["0m", "soon"].map(|time| rolling("readyTimeout", &json!(time))),
        ),
    ]
}

fn sizes() -> Vec<Case> {
    let pool = json!({"instancePool": "SubFamilyFlexible"});
    let licences = json!(["arn:aws:license-manager:us-west-2:1:license-configuration:lic-1"]);
    let group = "arn:aws:resource-groups:us-west-2:1:group/g";
    let old = |configuration: Value| eks(&json!({"type": "LaunchConfiguration", "configuration": configuration}));
    vec![
        case(
            "spec.eks",
            "eks.minSize must not exceed eks.maxSize",
            [
                eks(&json!({"minSize": 3})),
                eks(&json!({"minSize": 0, "maxSize": 0})),
                eks(&json!({"minSize": 9, "maxSize": null})),
            ],
            [eks(&json!({"minSize": 4})), eks(&json!({"maxSize": 0}))],
        ),
        case(
            "spec.eks-managed",
            "eks-managed.minSize must not exceed eks-managed.maxSize",
            [managed(&json!({"minSize": 2}))],
            [managed(&json!({"minSize": 3}))],
        ),
        case(
            "spec.eks",
            "eks.warmPool cannot be used with eks.configuration.mixedInstancesPolicy",
            [
                eks(&json!({"warmPool": {"maxSize": -1, "minSize": 0}})),
                eks(
                    &json!({"type": "LaunchConfiguration", "warmPool": {}, "configuration": {"mixedInstancesPolicy": pool}}),
                ),
            ],
            [eks(
                &json!({"warmPool": {}, "configuration": {"mixedInstancesPolicy": pool}}),
            )],
        ),
        case(
            "spec.eks",
            "eks.warmPool cannot be used with eks.configuration.spotPrice",
            [
                eks(&json!({"warmPool": {}, "configuration": {"spotPrice": ""}})),
                set("spotPrice", &json!("0.1")),
            ],
            [eks(&json!({"warmPool": {}, "configuration": {"spotPrice": "0.1"}}))],
        ),
        case(
            "spec.eks",
            "eks.configuration.licenseSpecifications needs eks.type LaunchTemplate",
            [
                set("licenseSpecifications", &licences),
                old(json!({"licenseSpecifications": []})),
            ],
            [old(json!({"licenseSpecifications": licences}))],
        ),
        case(
            "spec.eks",
            "eks.configuration.placement may set no more than tenancy when eks.type is LaunchConfiguration",
            [old(
                json!({"placement": {"tenancy": "dedicated", "availabilityZone": ""}}),
            )],
            [
                old(json!({"placement": {"availabilityZone": "us-west-2a"}})),
                old(json!({"placement": {"tenancy": "host", "hostResourceGroupArn": group}})),
            ],
        ),
    ]
}
