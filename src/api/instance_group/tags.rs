//! Tags as written in a group.
//!
//! Owns the wire shape only. It must not know which tags the operator adds.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// One AWS tag.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.key) && self.key != ''",
    "every tag needs a key",
))]
#[x_kube(validation = (
    "!has(self.key) || !self.key.startsWith('aws:')",
    "the key of a tag must not begin with aws:, which AWS keeps to itself",
))]
pub struct Tag {
    /// Name of the tag.
    #[schemars(length(max = 128))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Value of the tag; absent means empty.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Tags for one kind of resource that a launch makes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TagSpecification {
    /// Kind of resource, such as `volume` or `network-interface`.
    #[schemars(length(max = 255))]
    pub resource_type: String,
    /// The tags.
    #[schemars(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
}
