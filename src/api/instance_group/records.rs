//! What the status of a group remembers beyond the moment: lock, blocked targets, the rollout in
//! hand and the history.
//!
//! Owns the wire shape only. It must not decide what is blocked, locked or forgotten.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{AsRefStr, Display, EnumString, IntoStaticStr};

/// Whether upgrades of the group need an approval.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LockStatus {
    /// True when they do.
    pub locked: bool,
    /// What locks the group; with several, the first of settings, namespace, group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<LockSource>,
    /// Why, in the words of who locked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the lock lifts by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// What locks a group.
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
    IntoStaticStr,
)]
pub enum LockSource {
    /// The fleet's settings.
    Settings,
    /// The annotation of the namespace.
    Namespace,
    /// The annotation of the group.
    Group,
}

/// A target that does not start by itself, in whichever way it comes back.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BlockedTarget {
    /// Digest of the target.
    pub fingerprint: String,
    /// What happened to it.
    pub reason: BlockReason,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Who denied or cancelled it; the operator itself after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Set once a person asked for it again: it is not blocked any more, and only a person approves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lifted: bool,
}

/// Why a target is blocked.
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
pub enum BlockReason {
    /// Somebody denied it.
    Denied,
    /// Its first nodes did not become Ready, or it could not be launched.
    Failed,
    /// Somebody cancelled its rollout.
    Cancelled,
}

/// A rollout under way: its claim, where no request stands for it, and what must outlive a restart of the operator.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRecord {
    /// Name of the request it was claimed for; absent for a rollout that needed none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Digest of the target.
    pub fingerprint: String,
    /// Launch template version of the target, once it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_template_version: Option<String>,
    /// Image id of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Subnets that the group leaves in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_subnets: Vec<String>,
    /// When the rollout was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Nodes done of all nodes, such as `3/12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Instances that ran the target's version before the rollout began, be it from one that was stopped: whether they are Ready
    /// says nothing about the target, and they stay whatever becomes of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub present_at_start: Vec<String>,
    /// Instances of the target that have not been Ready yet. One that ends before it is Ready stays until its successor is
    /// known, which goes on with its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joining: Vec<JoiningInstance>,
    /// Since when instances are missing that nothing on its way explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_since: Option<Time>,
    /// Processes of the Auto Scaling group that the operator suspended for the time of the rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended_processes: Vec<String>,
    /// Set once the rollout stops before its end: what is left is cleared up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<RolloutEnding>,
}

/// An instance of a rollout's target that has not been Ready yet.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct JoiningInstance {
    /// Its id.
    pub instance_id: String,
    /// Since when it is known, or the one that ended in its place before it was Ready.
    pub since: Time,
}

/// Why a rollout stops before its end.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutEnding {
    /// What stopped it.
    pub result: RolloutResult,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Instance that showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Since when every node of the target that never became Ready is on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared_at: Option<Time>,
}

/// What stopped a rollout.
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
pub enum RolloutResult {
    /// The target does not work.
    Failed,
    /// A person cancelled it, or deleted its request.
    Cancelled,
    /// The group was locked while it ran without a request.
    Locked,
}

/// One finished change of what the group boots.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Digest of what was approved before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Digest of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Image id before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_image: Option<String>,
    /// Image id of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_image: Option<String>,
    /// Who decided; `creation` for the first approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Time>,
    /// How it ended.
    pub result: HistoryResult,
    /// Name of the request, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Why it ended so, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a change ended.
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
pub enum HistoryResult {
    /// The group was made with it.
    Created,
    /// The group was taken over with it.
    Adopted,
    /// Every node runs it.
    Succeeded,
    /// It was halted.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// Somebody denied it.
    Denied,
    /// Another target took its place, or the target went away.
    Superseded,
}
