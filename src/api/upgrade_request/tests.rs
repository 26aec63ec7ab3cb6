//! Requests, read and written again.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use strum::IntoEnumIterator;

use super::*;

/// Every field of a request.
fn full() -> Value {
    json!({
        "apiVersion": "instancemgr.keikoproj.io/v1alpha1",
        "kind": "InstanceGroupUpgradeRequest",
        "metadata": {"name": "workers-0123456789", "namespace": "team-a"},
        "spec": {
            "instanceGroupRef": {"name": "workers", "uid": "u-1"},
            "reason": "ImageDrift",
            "from": {
                "fingerprint": "sha256:aa", "imageId": "ami-1", "imageName": "old", "launchTemplateVersion": "3",
                "kubernetesVersion": "1.33",
            },
            "target": {
                "fingerprint": "sha256:bb", "renderVersion": "1", "imageId": "ami-2", "imageName": "new",
                "imageCreatedAt": "2026-11-01T10:00:00Z",
                "ssm": {"parameter": "/a/b", "version": 7, "lastModified": "2026-11-02T10:00:00Z"},
                "kubernetesVersion": "1.33", "removedSubnets": ["subnet-1"],
                "changes": [{"path": "image", "from": "ami-1", "to": "ami-2"}],
            },
            "approved": true, "denied": false, "cancelled": false, "urgent": true,
            "approvedBy": "alice", "decisionReason": "tested",
        },
        "status": {
            "phase": "InProgress", "message": "draining", "policy": "prod", "autoApproveAt": "2026-11-08T10:00:00Z",
            "waitsFor": {"reason": "WaitsForWindow", "until": "2026-11-09T02:00:00Z"}, "progress": "3/12",
            "counts": {"total": 12, "updated": 3, "ready": 11, "draining": 1, "failed": 0},
            "decisions": [{
                "at": "2026-11-08T10:00:00Z", "action": "Approved", "by": "alice", "verified": true, "via": "kubectl",
                "reason": "tested",
            }],
            "startedAt": "2026-11-09T02:00:00Z", "finishedAt": "2026-11-09T03:00:00Z", "supersededBy": "workers-1",
            "failure": {"reason": "NodeDidNotBecomeReady", "message": "m", "instanceId": "i-1"},
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "RollingOut", "message": "m",
                "lastTransitionTime": "2026-11-09T02:00:00Z", "observedGeneration": 1,
            }],
        },
    })
}

#[test]
fn a_full_request_survives_a_round_trip() {
    let request: InstanceGroupUpgradeRequest = serde_json::from_value(full()).unwrap();
    assert_eq!(serde_json::to_value(&request).unwrap(), full());
    assert_eq!(request.phase(), Phase::InProgress);
    assert!(!request.is_terminal());
}

#[test]
fn nothing_is_decided_unless_it_says_so() {
    let mut value = full();
    value.as_object_mut().unwrap().remove("status");
    for name in [
        "approved",
        "denied",
        "cancelled",
        "urgent",
        "approvedBy",
        "decisionReason",
        "from",
    ] {
        value["spec"].as_object_mut().unwrap().remove(name);
    }
    let request: InstanceGroupUpgradeRequest = serde_json::from_value(value).unwrap();
    let spec = &request.spec;
    assert!(!spec.approved && !spec.denied && !spec.cancelled && !spec.urgent);
    assert_eq!((spec.approved_by.as_str(), spec.decision_reason.as_str()), ("", ""));
    assert_eq!(request.phase(), Phase::Pending);
}

#[test]
fn a_decision_is_written_even_when_it_is_the_default() {
    let mut request: InstanceGroupUpgradeRequest = serde_json::from_value(full()).unwrap();
    request.spec.approved = false;
    request.spec.approved_by = String::new();
    let written = serde_json::to_value(&request).unwrap();
    assert_eq!(written["spec"]["approved"], json!(false));
    assert_eq!(written["spec"]["approvedBy"], json!(""));
}

#[test]
fn terminal_phases_are_the_five_of_the_gate() {
    let terminal: Vec<_> = Phase::iter()
        .filter(|phase| phase.is_terminal())
        .map(|phase| phase.to_string())
        .collect();
    assert_eq!(terminal, ["Succeeded", "Failed", "Denied", "Superseded", "Cancelled"]);
}

#[test]
fn a_word_that_is_no_phase_or_reason_is_refused() {
    for (pointer, word) in [("/spec/reason", "Whim"), ("/status/phase", "Expired")] {
        let mut value = full();
        *value.pointer_mut(pointer).unwrap() = json!(word);
        assert!(
            serde_json::from_value::<InstanceGroupUpgradeRequest>(value).is_err(),
            "{pointer}"
        );
    }
}
