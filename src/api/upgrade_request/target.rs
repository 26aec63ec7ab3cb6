//! What an upgrade request is about: the group, what it runs and what it would run.
//!
//! Owns the wire shape of the part that is written once. Every text and list in it has a limit,
//! since the API server compares the whole on each write. It must not compute a digest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{AsRefStr, Display, EnumIter, EnumString, IntoStaticStr};

/// Most entries of `target.changes` that the API server takes.
pub const MAX_CHANGES: usize = 128;

/// Most characters of a value in `target.changes` that the API server takes.
pub const MAX_CHANGE_TEXT: usize = 1024;

/// The group of a request.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct InstanceGroupRef {
    /// Name of the group.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Uid of the group; a group made anew under the name has another.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

/// What kind of change a request stands for.
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
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
pub enum UpgradeReason {
    /// A newer image.
    ImageDrift,
    /// The image parameter went back to a value it had before.
    ImageRollback,
    /// An edit of the group or of the settings.
    SpecDrift,
    /// Another Kubernetes minor version.
    KubernetesVersionDrift,
    /// The group was taken over and differs from what would be rendered.
    Adoption,
    /// Several of these; the strictest policy among them holds.
    Multiple,
}

/// What a group runs when a request opens.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeSource {
    /// Digest of what is approved.
    #[schemars(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Image id.
    #[schemars(length(max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Name of that image.
    #[schemars(length(max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// When that image was made, where it was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_created_at: Option<Time>,
    /// Launch template version, a decimal number.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_template_version: Option<String>,
    /// Kubernetes minor version of the nodes.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
}

/// What a group would run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeTarget {
    /// Digest of what a new node would get.
    #[schemars(length(min = 1, max = 128))]
    pub fingerprint: String,
    /// Version of the rendering rules that the digest was made with.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_version: Option<String>,
    /// Image id.
    #[schemars(length(max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Name of that image.
    #[schemars(length(max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// When that image was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_created_at: Option<Time>,
    /// Parameter that the image came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssm: Option<SsmParameter>,
    /// Kubernetes minor version of the nodes.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Subnets that the Auto Scaling group has and the spec has not.
    #[schemars(length(max = 200), inner(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_subnets: Vec<String>,
    /// What changes, field by field.
    #[schemars(length(max = MAX_CHANGES))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<TargetChange>,
}

/// A parameter of the Systems Manager parameter store, as it was read.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SsmParameter {
    /// Name of the parameter.
    #[schemars(length(max = 2048))]
    pub parameter: String,
    /// Version of its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// When that value was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<Time>,
}

/// One field that changes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TargetChange {
    /// Path of the field.
    #[schemars(length(max = 512))]
    pub path: String,
    /// Its value now; user data is given as digest and line count.
    #[schemars(length(max = MAX_CHANGE_TEXT))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its value in the target.
    #[schemars(length(max = MAX_CHANGE_TEXT))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}
