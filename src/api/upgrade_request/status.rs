//! The `status` of an upgrade request.
//!
//! Owns the wire shape. It must not decide when a phase follows another.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{AsRefStr, Display, EnumIter, EnumString, IntoStaticStr};

use crate::api::schema::{StoredCondition, absent_not_null, stored_conditions};

/// How far a request has come.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = absent_not_null)]
pub struct InstanceGroupUpgradeRequestStatus {
    /// Where the request stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What is going on or waited for, and when it is looked at next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Name of the schedule that applies; `manual` when none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// When the auto-approver will approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_approve_at: Option<Time>,
    /// What an approved request waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// Nodes done of all nodes, such as `3/12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Nodes of the group by what has become of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<NodeCounts>,
    /// Every decision taken, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// When the rollout was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When a terminal phase was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Name of the request that took this one's place, or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Why the rollout failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<UpgradeFailure>,
    /// What holds for the request right now, one entry a type.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "stored_conditions"
    )]
    #[schemars(with = "Vec<StoredCondition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Where a request stands.
#[derive(
    Serialize,
    Deserialize,
    JsonSchema,
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    AsRefStr,
    Display,
    EnumString,
    EnumIter,
    IntoStaticStr,
)]
pub enum Phase {
    /// Waits for an approval.
    Pending,
    /// Approved, and not started yet.
    Approved,
    /// Nodes are being replaced.
    InProgress,
    /// Every node runs the target.
    Succeeded,
    /// Halted.
    Failed,
    /// Turned down.
    Denied,
    /// Another target took its place, or the target went away.
    Superseded,
    /// Stopped by a person.
    Cancelled,
}

impl Phase {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Approved | Self::InProgress)
    }
}

/// What an approved request waits for.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WaitsFor {
    /// What it is, in one word.
    pub reason: String,
    /// When it is over or looked at next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// Nodes of the group by what has become of them.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// All nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Nodes that run the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<i64>,
    /// Nodes that are Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i64>,
    /// Nodes that are being drained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draining: Option<i64>,
    /// Nodes of the target that did not become Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<i64>,
}

/// One decision.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// When it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// What was decided.
    pub action: DecisionAction,
    /// User name of who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether the API server vouches for that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Which way it came: a schedule's name, a field manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Why, in the words of who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What was decided.
#[derive(
    Serialize,
    Deserialize,
    JsonSchema,
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    AsRefStr,
    Display,
    EnumString,
    IntoStaticStr,
)]
pub enum DecisionAction {
    /// Let it start.
    Approved,
    /// Took an approval back.
    Withdrawn,
    /// Turned it down.
    Denied,
    /// Stopped it.
    Cancelled,
    /// Deleted it before it had ended, which stops it as well.
    Deleted,
    /// Let it pass maintenance windows.
    Urgent,
    /// Bound it to maintenance windows again.
    NotUrgent,
}

/// Why a rollout failed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeFailure {
    /// What it is, in one word.
    pub reason: String,
    /// What it is, in a sentence; the cloud's own words where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Instance that showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
}
