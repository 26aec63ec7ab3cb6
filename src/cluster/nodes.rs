//! Nodes, as facts.
//!
//! Owns the step from a Node object to what decisions read, and what of a Node is kept in memory. Must not write nodes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus};

use crate::api::{NodeRecord, annotation, label};
use crate::plan::facts;

/// The EC2 instance behind a provider id `aws:///<zone>/<instance id>`.
#[must_use]
pub fn instance_id(provider_id: &str) -> Option<&str> {
    let id = provider_id.strip_prefix("aws:///")?.rsplit('/').next()?;
    id.starts_with("i-").then_some(id)
}

/// The facts of a Node; `None` for one that is no EC2 instance.
#[must_use]
pub fn fact(node: &Node) -> Option<facts::Node> {
    let spec = node.spec.as_ref()?;
    let provider_id = spec.provider_id.as_deref()?;
    let ready = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    Some(facts::Node {
        name: node.metadata.name.clone()?,
        instance_id: instance_id(provider_id)?.to_owned(),
        ready,
        image_label: node
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(label::IMAGE))
            .cloned(),
        cordoned: spec.unschedulable == Some(true),
        avoided: spec
            .taints
            .iter()
            .flatten()
            .any(|taint| taint.key == label::TAINT_UPGRADING),
        record: node
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(annotation::ROLLOUT))
            .and_then(|text| NodeRecord::parse(text)),
    })
}

/// Cuts a Node down to what [`fact`] reads, before it is stored.
pub fn trim(node: &mut Node) {
    node.metadata.managed_fields = None;
    if let Some(annotations) = &mut node.metadata.annotations {
        annotations.retain(|key, _| key == annotation::ROLLOUT);
    }
    if let Some(labels) = &mut node.metadata.labels {
        labels.retain(|key, _| key == label::IMAGE);
    }
    let spec = node.spec.take().unwrap_or_default();
    let taints = spec.taints.map(|mut taints| {
        taints.retain(|taint| taint.key == label::TAINT_UPGRADING);
        taints
    });
    node.spec = Some(NodeSpec {
        provider_id: spec.provider_id,
        unschedulable: spec.unschedulable,
        taints,
        ..NodeSpec::default()
    });
    let conditions = node
        .status
        .take()
        .and_then(|status| status.conditions)
        .map(|mut conditions| {
            conditions.retain(|condition| condition.type_ == "Ready");
            for condition in &mut conditions {
                condition.message = None;
                condition.reason = None;
                condition.last_heartbeat_time = None;
            }
            conditions
        });
    node.status = Some(NodeStatus {
        conditions,
        ..NodeStatus::default()
    });
}

/// Nodes by the instance behind them.
#[derive(Debug, Default)]
pub struct NodeIndex {
    by_instance: Mutex<HashMap<String, Seen>>,
}

/// A node, and which state of it.
#[derive(Clone, Debug)]
struct Seen {
    fact: facts::Node,
    uid: Option<String>,
    version: u64,
}

impl Seen {
    fn of(node: &Node) -> Option<Self> {
        Some(Self {
            fact: fact(node)?,
            uid: node.metadata.uid.clone(),
            version: version(node),
        })
    }
}

/// The resourceVersion as a number; it grows with each write of an object (Kubernetes, "Resource versions").
fn version(node: &Node) -> u64 {
    let text = node.metadata.resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl NodeIndex {
    /// Takes in a Node that came, changed or went, also as a write of ours returned it. Returns its instance id if anything
    /// that decisions read is different. The watch may still bring a state from before our write: that is passed over.
    pub fn touched(&self, node: &Node, gone: bool) -> Option<String> {
        let seen = Seen::of(node)?;
        let mut index = self.lock();
        let id = seen.fact.instance_id.clone();
        if let Some(known) = index.get(&id)
            && known.uid == seen.uid
            && known.version > seen.version
        {
            return None;
        }
        let after = (!gone).then(|| seen.fact.clone());
        let before = if gone {
            index.remove(&id)
        } else {
            index.insert(id.clone(), seen)
        };
        (before.map(|before| before.fact) != after).then_some(id)
    }

    /// Starts over from a complete list.
    pub fn replace<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) {
        let fresh = nodes
            .into_iter()
            .filter_map(Seen::of)
            .map(|seen| (seen.fact.instance_id.clone(), seen))
            .collect();
        *self.lock() = fresh;
    }

    /// The node on an instance.
    #[must_use]
    pub fn on(&self, instance_id: &str) -> Option<facts::Node> {
        self.lock().get(instance_id).map(|seen| seen.fact.clone())
    }

    /// Whether there is a Ready node that takes pods besides the one of this name.
    #[must_use]
    pub fn refuge(&self, besides: Option<&str>) -> bool {
        self.lock()
            .values()
            .any(|seen| seen.fact.ready && !seen.fact.cordoned && Some(seen.fact.name.as_str()) != besides)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(ready: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": { "name": "ip-10-0-0-1", "labels": { "instancemgr.keikoproj.io/image": "ami-1", "x": "y" },
                          "annotations": { "a": "b", "instancemgr.keikoproj.io/rollout":
                              "{\"target\":\"f\",\"state\":\"Draining\",\"since\":\"2026-11-30T10:00:00Z\",\"cordoned\":true}" } },
            "spec": { "providerID": "aws:///us-west-2a/i-0abc", "podCIDR": "10.0.0.0/24", "unschedulable": true,
                      "taints": [ { "key": "instancemgr.keikoproj.io/upgrading", "effect": "PreferNoSchedule" },
                                  { "key": "other", "effect": "NoSchedule" } ] },
            "status": { "conditions": [ { "type": "MemoryPressure", "status": "True" }, { "type": "Ready", "status": ready, "message": "m" } ],
                        "images": [] }
        }))
        .unwrap()
    }

    #[test]
    fn provider_ids() {
        assert_eq!(instance_id("aws:///us-west-2a/i-0abc"), Some("i-0abc"));
        for other in [
            "",
            "i-0abc",
            "aws:///us-west-2a/fargate-ip-1",
            "gce://p/z/i-1",
            "aws:///",
        ] {
            assert_eq!(instance_id(other), None, "{other}");
        }
    }

    #[test]
    fn trimming_keeps_what_a_fact_needs() {
        for (status, ready) in [("True", true), ("False", false), ("Unknown", false)] {
            let mut trimmed = node(status);
            trim(&mut trimmed);
            assert_eq!(fact(&trimmed), fact(&node(status)));
            let fact = fact(&trimmed).unwrap();
            assert_eq!(
                (fact.instance_id.as_str(), fact.ready, fact.image_label.as_deref()),
                ("i-0abc", ready, Some("ami-1"))
            );
            assert!(fact.cordoned && fact.avoided && fact.record.is_some());
            let text = serde_json::to_string(&trimmed).unwrap();
            assert!(
                !text.contains("podCIDR")
                    && !text.contains("MemoryPressure")
                    && !text.contains("\"x\"")
                    && !text.contains("other"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_index_tells_what_changed() {
        let index = NodeIndex::default();
        assert_eq!(index.touched(&node("False"), false).as_deref(), Some("i-0abc"));
        assert_eq!(index.touched(&node("False"), false), None);
        assert_eq!(index.touched(&node("True"), false).as_deref(), Some("i-0abc"));
        assert!(index.on("i-0abc").unwrap().ready);
        assert_eq!(index.touched(&node("True"), true).as_deref(), Some("i-0abc"));
        assert_eq!(index.on("i-0abc"), None);
        index.replace([&node("True")]);
        assert!(index.on("i-0abc").is_some());
        index.replace([]);
        assert_eq!(index.on("i-0abc"), None);
    }

    #[test]
    fn a_state_from_before_our_own_write_is_passed_over() {
        let at = |version: &str, ready: &str| {
            let mut node = node(ready);
            node.metadata.resource_version = Some(version.to_owned());
            node
        };
        let index = NodeIndex::default();
        index.touched(&at("9", "False"), false);
        assert!(index.touched(&at("11", "True"), false).is_some(), "our write");
        assert_eq!(index.touched(&at("10", "False"), false), None);
        assert!(index.on("i-0abc").unwrap().ready);
        assert!(index.touched(&at("100", "False"), false).is_some(), "numbers, not text");
        let mut other = at("5", "True");
        other.metadata.uid = Some("another".to_owned());
        assert!(index.touched(&other, false).is_some(), "made anew");
    }

    #[test]
    fn a_refuge_is_ready_and_takes_pods() {
        let index = NodeIndex::default();
        assert!(!index.refuge(None));
        let mut open = node("True");
        open.spec.as_mut().unwrap().unschedulable = None;
        index.touched(&open, false);
        assert!(index.refuge(None) && index.refuge(Some("other")) && !index.refuge(Some("ip-10-0-0-1")));
        for other in [node("True"), {
            open.status = node("False").status;
            open.clone()
        }] {
            index.replace([&other]);
            assert!(!index.refuge(None), "cordoned, or not Ready");
        }
    }
}
