//! Owns what the simulated kubelets write: the shape of Nodes, their status and leases.
//!
//! It must not speak to the API server.

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::aws_administration::SimulatedInstance;

/// What the operator finds out about a node's image: nodes register with this label.
pub const IMAGE_LABEL: &str = "instancemgr.keikoproj.io/image";
/// By this label kwok knows whose pods to play; a node whose kubelet is dead has lost it.
pub const SIMULATED_LABEL: &str = "sluice.test/kubelet";
/// The name of the node's Auto Scaling group, for pods that have to run on it.
pub const GROUP_LABEL: &str = "sluice.test/group";
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// A node as its kubelet registers it: not ready yet.
pub fn registration(instance: &SimulatedInstance, kubelet_version: &str, labels: &Value) -> serde_json::Result<Node> {
    let region = instance
        .zone
        .trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": instance.private_dns_name,
            "labels": {
                "kubernetes.io/hostname": instance.private_dns_name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture(&instance.instance_type),
                "node.kubernetes.io/instance-type": instance.instance_type,
                "topology.kubernetes.io/region": region,
                "topology.kubernetes.io/zone": instance.zone,
                IMAGE_LABEL: instance.image_id,
                SIMULATED_LABEL: "alive",
                GROUP_LABEL: as_label(&instance.group_name),
            },
        },
        "spec": {"providerID": format!("aws:///{}/{}", instance.zone, instance.instance_id)},
        "status": status(instance, kubelet_version, false),
    });
    if let (Some(all), Some(more)) = (node["metadata"]["labels"].as_object_mut(), labels.as_object()) {
        all.extend(more.clone());
    }
    serde_json::from_value(node)
}

/// The status that the kubelet reports, whole: it is merged by type of condition and of address.
pub fn status(instance: &SimulatedInstance, kubelet_version: &str, ready: bool) -> Value {
    let resources = json!({"cpu": "4", "memory": "16Gi", "pods": "58"});
    json!({
        "addresses": [
            {"type": "Hostname", "address": instance.private_dns_name},
            {"type": "InternalDNS", "address": instance.private_dns_name},
        ],
        "capacity": resources,
        "allocatable": resources,
        "conditions": [ready_condition(ready)],
        "nodeInfo": {
            "architecture": architecture(&instance.instance_type),
            "bootID": instance.instance_id,
            "containerRuntimeVersion": "containerd://2.0.0",
            "kernelVersion": "6.12.0",
            "kubeProxyVersion": "",
            "kubeletVersion": kubelet_version,
            "machineID": instance.instance_id,
            "operatingSystem": "linux",
            "osImage": instance.image_id,
            "systemUUID": instance.instance_id,
        },
    })
}

fn ready_condition(ready: bool) -> Value {
    let (status, reason, message) = if ready {
        ("True", "KubeletReady", "kubelet is posting ready status")
    } else {
        ("False", "KubeletNotReady", "container runtime network not ready")
    };
    let now = now();
    json!({
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    })
}

/// The taints as they ought to be, or None if they are.
pub fn wanted_taints(node: &Node, ready: bool) -> Option<Vec<Taint>> {
    let mut taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let tainted = taints.iter().any(|taint| taint.key == NOT_READY_TAINT);
    match (ready, tainted) {
        (true, true) => taints.retain(|taint| taint.key != NOT_READY_TAINT),
        (false, false) => taints.push(Taint {
            key: NOT_READY_TAINT.into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        }),
        _ => return None,
    }
    Some(taints)
}

/// The lease by which the node's health is judged, gone together with its node.
pub fn lease(node_name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node_name,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": uid}],
        },
        "spec": {
            "holderIdentity": node_name,
            "leaseDurationSeconds": 40,
            "renewTime": format!("{:.6}", now()),
        },
    })
}

/// Labels are shorter than names of groups may be.
pub fn as_label(name: &str) -> &str {
    name.get(..63).unwrap_or(name).trim_end_matches(['-', '_', '.'])
}

/// Amazon's names tell: a family such as `m7g` runs on its own processors.
fn architecture(instance_type: &str) -> &'static str {
    let family = instance_type.split('.').next().unwrap_or_default();
    let after_generation = family.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let arm = after_generation
        .trim_start_matches(|digit: char| digit.is_ascii_digit())
        .starts_with('g');
    if arm || family == "a1" { "arm64" } else { "amd64" }
}

fn now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the API server judges these times by the real clock"
    )]
    Timestamp::now()
}
