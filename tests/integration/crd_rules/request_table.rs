//! Every rule of a request: a stored request, changes that keep the rule and changes that break it.
//!
//! Owns the table and the request that it starts from. It must not send anything.

use serde_json::{Value, json};

use super::{API_VERSION, Rule};

/// A rule, what is stored, and changes of the spec that keep it and that break it.
pub struct Case {
    pub field: &'static str,
    pub message: &'static str,
    /// Merged into the spec of [`base`] before it is created.
    pub stored: Value,
    /// `None` before the operator has written a status.
    pub phase: Option<&'static str>,
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

pub const TERMINAL: [&str; 5] = ["Succeeded", "Failed", "Denied", "Superseded", "Cancelled"];

pub const EXCLUSIVE: &str = "approved and denied exclude each other";
pub const STARTED: &str = "an approval cannot be withdrawn once the rollout has started; set spec.cancelled instead";
pub const FROZEN: &str = "this request is finished; its decisions are frozen";
pub const DENIAL: &str = "a denial is final; deleting the request lifts it";
pub const CANCELLATION: &str = "a cancellation is final";
pub const NAME_ALONE: &str = "approvedBy changes only together with approved, denied, cancelled or urgent";
pub const FROM: &str = "from cannot be changed, added or removed";
pub const TARGET: &str = "target cannot be changed; another target needs another request";
pub const REFERENCE: &str = "instanceGroupRef cannot be changed";
pub const REASON: &str = "reason cannot be changed";

/// A request that nobody has decided on.
pub fn base(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "InstanceGroupUpgradeRequest",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "instanceGroupRef": {"name": "workers", "uid": "u-1"},
            "reason": "ImageDrift",
            "from": {"imageId": "ami-1", "launchTemplateVersion": "3"},
            "target": {
                "fingerprint": format!("sha256:{}", "a".repeat(64)), "imageId": "ami-2",
                "ssm": {"parameter": "/team/image", "version": 7},
                "changes": [{"path": "image", "from": "ami-1", "to": "ami-2"}],
            },
        },
    })
}

/// Changes of what a request is about, each with the message that refuses it.
pub fn forgeries() -> Vec<(&'static str, Value)> {
    let target = |edit: Value| (TARGET, json!({"target": edit}));
    vec![
        target(json!({"fingerprint": "sha256:other"})),
        target(json!({"imageId": "ami-3"})),
        target(json!({"imageId": null})),
        target(json!({"kubernetesVersion": "1.33"})),
        target(json!({"removedSubnets": ["subnet-1"]})),
        target(json!({"ssm": {"version": 8}})),
        target(json!({"ssm": null})),
        target(json!({"changes": null})),
        target(json!({"changes": [{"path": "image", "from": "ami-1", "to": "ami-3"}]})),
        (FROM, json!({"from": {"imageId": "ami-0"}})),
        (FROM, json!({"from": {"imageId": null}})),
        (FROM, json!({"from": {"imageName": "added"}})),
        (FROM, json!({"from": null})),
        (FROM, json!({"from": {"imageId": null, "launchTemplateVersion": null}})),
        (REASON, json!({"reason": "Adoption"})),
        (REFERENCE, json!({"instanceGroupRef": {"name": "others"}})),
        (REFERENCE, json!({"instanceGroupRef": {"uid": "u-2"}})),
    ]
}

/// The table.
pub fn cases() -> Vec<Case> {
    let about = |message: &'static str| -> Vec<Value> {
        let found = forgeries().into_iter().filter(|(with, _)| *with == message);
        found.map(|(_, edit)| edit).collect()
    };
    let approved = json!({"approved": true, "approvedBy": "alice"});
    let unchanged = |field, message| Case {
        field,
        message,
        stored: json!({}),
        phase: Some("Pending"),
        accepted: vec![json!({"approved": true}), json!({"reason": "ImageDrift"})],
        refused: about(message),
    };
    let mut cases = vec![
        unchanged("spec", FROM),
        unchanged("spec.target", TARGET),
        unchanged("spec.instanceGroupRef", REFERENCE),
        unchanged("spec.reason", REASON),
        Case {
            field: "spec",
            message: EXCLUSIVE,
            stored: json!({}),
            phase: Some("Pending"),
            accepted: vec![json!({"approved": true}), json!({"denied": true})],
            refused: vec![json!({"approved": true, "denied": true})],
        },
        Case {
            field: "spec",
            message: DENIAL,
            stored: json!({"denied": true}),
            phase: Some("Pending"),
            accepted: vec![json!({"decisionReason": "why"}), json!({"denied": true})],
            refused: vec![
                json!({"denied": false}),
                json!({"denied": null}),
                json!({"denied": false, "approved": true}),
            ],
        },
        Case {
            field: "spec",
            message: CANCELLATION,
            stored: json!({"approved": true, "cancelled": true}),
            phase: Some("InProgress"),
            accepted: vec![json!({"decisionReason": "why"}), json!({"cancelled": true})],
            refused: vec![json!({"cancelled": false}), json!({"cancelled": null})],
        },
        Case {
            field: "spec",
            message: NAME_ALONE,
            stored: approved.clone(),
            phase: Some("Approved"),
            accepted: vec![
                json!({"approvedBy": "bob", "urgent": true}),
                json!({"approvedBy": "bob", "cancelled": true}),
                json!({"approvedBy": "bob", "approved": false}),
                json!({"approvedBy": "bob", "approved": false, "denied": true}),
                json!({"approvedBy": "alice", "decisionReason": "why"}),
            ],
            refused: vec![
                json!({"approvedBy": "eve"}),
                json!({"approvedBy": null}),
                json!({"approvedBy": "eve", "approved": true}),
                json!({"approvedBy": "eve", "decisionReason": "why"}),
            ],
        },
    ];
    cases.push(Case {
        field: "",
        message: STARTED,
        stored: approved,
        phase: Some("InProgress"),
        accepted: vec![
            json!({"cancelled": true}),
            json!({"urgent": true}),
            json!({"decisionReason": "why"}),
        ],
        refused: vec![
            json!({"approved": false}),
            json!({"approved": null}),
            json!({"approved": false, "approvedBy": ""}),
        ],
    });
    cases.extend(TERMINAL.map(|phase| Case {
        field: "",
        message: FROZEN,
        stored: json!({"approvedBy": "alice"}),
        phase: Some(phase),
        accepted: vec![
            json!({"approved": false, "denied": false, "urgent": false}),
            json!({"approvedBy": "alice"}),
        ],
        refused: decisions(),
    }));
    cases
}

/// Every change of one field of the decision block of an undecided request.
pub fn decisions() -> Vec<Value> {
    vec![
        json!({"approved": true}),
        json!({"denied": true}),
        json!({"cancelled": true}),
        json!({"urgent": true}),
        json!({"decisionReason": "why"}),
        json!({"approvedBy": "eve", "approved": true}),
    ]
}
