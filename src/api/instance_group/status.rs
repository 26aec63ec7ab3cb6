//! The `status` of an instance group.
//!
//! Owns the fields that existing tools read (first part of [`InstanceGroupStatus`]) and the ones
//! that this operator adds. Every field may be absent, so that a status written by another program
//! is still read. It must not decide what the values are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{AsRefStr, Display, EnumString, IntoStaticStr};

use super::records::{BlockedTarget, HistoryEntry, LockStatus, RolloutRecord};
use crate::api::schema::{StoredCondition, absent_not_null, stored_conditions};

/// What the operator knows and does about a group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = absent_not_null)]
pub struct InstanceGroupStatus {
    /// Where the group stands, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_state: Option<String>,
    /// Minimum size of the Auto Scaling group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_min: Option<i64>,
    /// Maximum size of the Auto Scaling group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_max: Option<i64>,
    /// Name of the launch configuration in use, if the group has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_launch_configuration_name: Option<String>,
    /// Name of the launch template in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_launch_template_name: Option<String>,
    /// Number of the newest version of that template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_template_version: Option<String>,
    /// Name of the Auto Scaling group; several are joined by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_scaling_group_name: Option<String>,
    /// ARN of the role that the nodes run under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_instance_role_arn: Option<String>,
    /// Name of the last object made by strategy `crd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_resource_name: Option<String>,
    /// Namespace of that object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_resource_namespace: Option<String>,
    /// Attempts of strategy `crd` after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_retry_count: Option<i64>,
    /// Whether a spot recommendation is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub using_spot_recommendation: Option<bool>,
    /// `normal`, `spot` or `mixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<String>,
    /// Digest of the settings that were applied last.
    #[serde(rename = "configMD5", skip_serializing_if = "Option::is_none")]
    pub config_md5: Option<String>,
    /// What holds for the group right now, one entry a type.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "stored_conditions"
    )]
    #[schemars(with = "Vec<StoredCondition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Provisioner in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<String>,
    /// Upgrade strategy in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is going on or waited for, and when it is looked at next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Images of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageStatus>,
    /// Launch template versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_template: Option<LaunchTemplateStatus>,
    /// Keys of the tags that the spec put on the Auto Scaling group, so that one that is dropped can be
    /// taken away without touching tags of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tag_keys: Vec<String>,
    /// Digests of what a new node gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<FingerprintStatus>,
    /// Whether upgrades need an approval, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockStatus>,
    /// Name of the upgrade request that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_request: Option<String>,
    /// Targets that never start by themselves again; at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_targets: Vec<BlockedTarget>,
    /// The rollout that was started without a request and is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutRecord>,
    /// What was rolled out or turned down, newest first; at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
}

/// Images of the nodes of a group.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// Image id that every node is meant to run; it changes when the last node is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Since when that image is the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_since: Option<Time>,
    /// Image id that was current before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Kubernetes minor version that the current image was looked up for; absent if it follows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Image id that is wanted next and not rolled out yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// Nodes that run the current image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_on_current: Option<i64>,
    /// Nodes that run any other image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_on_other: Option<i64>,
}

/// The launch template of a group and the versions that matter. Versions are decimal numbers
/// written as text, as Auto Scaling writes them.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LaunchTemplateStatus {
    /// Id of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version that was approved last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_version: Option<String>,
    /// Version that was approved before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<String>,
}

/// Digests of what a new node gets.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FingerprintStatus {
    /// Digest of what was approved last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// Digest of what spec, settings and image ask for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// Version of the rendering rules that the digests were made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_version: Option<String>,
}

/// The words of `status.currentState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumString, IntoStaticStr)]
#[strum(ascii_case_insensitive)]
pub enum CurrentState {
    /// Just seen.
    Init,
    /// About to be deleted.
    InitDelete,
    /// About to be updated.
    InitUpdate,
    /// About to be created.
    InitCreate,
    /// About to replace nodes.
    InitUpgrade,
    /// Being deleted.
    Deleting,
    /// Gone.
    Deleted,
    /// AWS resources are being changed.
    ReconcileModifying,
    /// AWS resources have been changed.
    ReconcileModified,
    /// An upgrade request waits.
    Locked,
    /// Nothing waits.
    Ready,
    /// Stopped by an error.
    #[strum(serialize = "Error")]
    Failed,
}
