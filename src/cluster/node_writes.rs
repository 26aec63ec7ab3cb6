//! Writes on a Node: the rollout's record, the cordon, the load-balancer label, the taint, cluster-autoscaler's annotation.
//!
//! Owns the patches and what "ours" means in them: only what the record on the node says is ours is ever undone. Each patch
//! is narrow and conditional on the resourceVersion that was read. Must not decide which node is edited when, and must not
//! touch any other field.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::call::{read, write};
use super::groups::merge_patch;
use super::nodes::instance_id;
use crate::api::{NodeRecord, NodeState, annotation, field_manager, label};
use crate::fence::Fence;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::step::NodeEdit;

/// How often an edit is begun anew because somebody wrote in between. Kubelets write other subresources, so that one conflict
/// is rare and several in a row mean that something fights over the node.
const ATTEMPTS: usize = 5;

/// Writes Nodes.
#[derive(Clone)]
pub struct NodeWriter {
    api: Api<Node>,
    fence: Fence,
}

impl NodeWriter {
    /// A writer over this client, behind this fence.
    #[must_use]
    pub fn new(client: Client, fence: Fence) -> Self {
        Self {
            api: Api::all(client),
            fence,
        }
    }

    /// Reads the Node and makes the edit, if anything of it is missing and the Node stands for that instance. Returns the Node
    /// as it is then.
    ///
    /// # Errors
    /// The failure of a call. Class `NotFound` when the Node is gone or stands for another instance: then nothing is written.
    /// Class `Busy` when somebody wrote in between again and again.
    pub async fn edit(&self, node: &str, instance_id: &str, edit: &NodeEdit) -> Result<Node, Failure> {
        let mut attempt = 1;
        loop {
            match self.try_edit(node, instance_id, edit).await {
                Err(failure) if failure.class == FailureClass::Busy && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn try_edit(&self, name: &str, instance_id: &str, edit: &NodeEdit) -> Result<Node, Failure> {
        let node = read("kubernetes:get nodes", self.api.get(name)).await?;
        is_of_instance(&node, instance_id)?;
        let Some(mut patch) = change(&node, edit) else {
            return Ok(node);
        };
        patch["metadata"]["resourceVersion"] = json!(node.metadata.resource_version);
        let parameters = PatchParams {
            field_manager: Some(field_manager::INSTANCE_GROUP.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(&patch);
        let patched = self.api.patch(name, &parameters, &patch);
        write(&self.fence, "kubernetes:patch nodes", patched).await
    }
}

/// Refuses a Node that has come back for another instance under the same name.
fn is_of_instance(node: &Node, wanted: &str) -> Result<(), Failure> {
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    if provider_id.and_then(instance_id) == Some(wanted) {
        return Ok(());
    }
    Err(Failure {
        class: FailureClass::NotFound,
        action: "kubernetes:patch nodes".to_owned(),
        code: None,
        message: format!(
            "node {} stands for {}, not for {wanted}",
            node.metadata.name.as_deref().unwrap_or_default(),
            provider_id.unwrap_or("no instance")
        ),
    })
}

/// The JSON merge patch (RFC 7386) that makes an edit, without its condition; `None` if nothing has to change.
#[must_use]
pub fn change(node: &Node, edit: &NodeEdit) -> Option<Value> {
    let before = Fields::of(node);
    let after = before.clone().edited(edit);
    merge_patch(&before.json(), &after.json())
}

/// Everything of a Node that an edit may change.
#[derive(Clone)]
struct Fields {
    /// The note as it stands, ours or not.
    note: Option<String>,
    unschedulable: bool,
    /// The label's value. One that is there stays, whatever it says: `false` is a person's word, too.
    excluded: Option<String>,
    /// The annotation's value; the same holds.
    protected: Option<String>,
    taints: Vec<Taint>,
}

impl Fields {
    fn of(node: &Node) -> Self {
        let get = |map: &Option<BTreeMap<String, String>>, key: &str| map.as_ref()?.get(key).cloned();
        let (metadata, spec) = (&node.metadata, node.spec.as_ref());
        Self {
            note: get(&metadata.annotations, annotation::ROLLOUT),
            unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
            excluded: get(&metadata.labels, label::EXCLUDE_FROM_LOAD_BALANCERS),
            protected: get(&metadata.annotations, annotation::SCALE_DOWN_DISABLED),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
        }
    }

    fn json(&self) -> Value {
        let known =
            |value: &Option<String>, key: &str| value.iter().map(|value| (key.to_owned(), json!(value))).collect();
        let mut annotations: serde_json::Map<String, Value> = known(&self.note, annotation::ROLLOUT);
        annotations.extend::<serde_json::Map<_, _>>(known(&self.protected, annotation::SCALE_DOWN_DISABLED));
        let labels: serde_json::Map<String, Value> = known(&self.excluded, label::EXCLUDE_FROM_LOAD_BALANCERS);
        let mut spec = serde_json::Map::new();
        if self.unschedulable {
            spec.insert("unschedulable".to_owned(), json!(true));
        }
        if !self.taints.is_empty() {
            spec.insert("taints".to_owned(), json!(self.taints));
        }
        json!({ "metadata": { "annotations": annotations, "labels": labels }, "spec": spec })
    }

    fn record(&self) -> Option<NodeRecord> {
        self.note.as_deref().and_then(NodeRecord::parse)
    }

    fn note(&mut self, record: &NodeRecord) {
        self.note = Some(json!(record).to_string());
    }

    fn edited(mut self, edit: &NodeEdit) -> Self {
        match edit {
            NodeEdit::Take { target, since } => self.take(target, *since),
            NodeEdit::Release { keep } => self.release(keep.as_ref()),
            NodeEdit::Avoid => self.avoid(),
            NodeEdit::Join { target, since } => self.join(target, *since),
        }
        self
    }

    fn take(&mut self, target: &str, since: Timestamp) {
        let mut record = self.next_record(target, NodeState::Draining, since);
        if !self.unschedulable {
            self.unschedulable = true;
            record.cordoned = true;
        }
        if self.excluded.is_none() {
            self.excluded = Some("true".to_owned());
            record.excluded = true;
        }
        self.note(&record);
    }

    fn join(&mut self, target: &str, since: Timestamp) {
        let mut record = self.next_record(target, NodeState::Joined, since);
        if self.protected.is_none() {
            self.protected = Some("true".to_owned());
            record.protected = true;
        }
        self.note(&record);
    }

    fn release(&mut self, keep: Option<&NodeRecord>) {
        if let Some(record) = self.record() {
            if record.cordoned {
                self.unschedulable = false;
            }
            if record.excluded {
                self.excluded = None;
            }
            if record.protected {
                self.protected = None;
            }
        }
        if let Some(keep) = keep {
            self.note(keep);
        } else {
            self.note = None;
            self.taints.retain(|taint| taint.key != label::TAINT_UPGRADING);
        }
    }

    fn avoid(&mut self) {
        if !self.taints.iter().any(|taint| taint.key == label::TAINT_UPGRADING) {
            self.taints.push(Taint {
                key: label::TAINT_UPGRADING.to_owned(),
                effect: "PreferNoSchedule".to_owned(),
                ..Taint::default()
            });
        }
    }

    /// The record that comes next. What the present one says is ours stays ours; and an edit that is made again, because its
    /// effect was not seen yet, must not start its time anew.
    fn next_record(&self, target: &str, state: NodeState, since: Timestamp) -> NodeRecord {
        let mut next = NodeRecord::new(target, state, since);
        if let Some(present) = self.record() {
            next.cordoned = present.cordoned;
            next.excluded = present.excluded;
            next.protected = present.protected;
            if present.state == state && present.target == target {
                next.since = present.since;
            }
        }
        next
    }
}

#[cfg(test)]
mod tests;
