//! A managed node group: `spec.eks-managed`.
//!
//! Owns the wire shape only.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::tags::Tag;
use crate::api::schema::{MapLimit, filled, unless_stored};

/// A node group that EKS itself manages.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = unless_stored(
    "@.minSize <= @.maxSize",
    "eks-managed.minSize must not exceed eks-managed.maxSize"
))]
pub struct EksManagedSpec {
    /// Most nodes the group may have.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    pub max_size: i64,
    /// Fewest nodes the group may have.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    pub min_size: i64,
    /// What the nodes are made of.
    pub configuration: EksManagedConfiguration,
}

/// What the nodes of a managed node group are made of.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EksManagedConfiguration {
    /// Name of the EKS cluster that the nodes join.
    #[schemars(length(max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub cluster_name: Option<String>,
    /// Size of the root volume in GiB.
    #[schemars(range(min = 0, max = 65536))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vol_size: Option<i64>,
    /// EC2 instance type.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub instance_type: Option<String>,
    /// Labels of the nodes.
    #[schemars(transform = MapLimit { entries: 50, value: 63 })]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// ARN of the nodes' role.
    #[schemars(length(max = 2048))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub node_role: Option<String>,
    /// Security groups from which logging in is allowed.
    #[schemars(length(max = 16), inner(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// EC2 key pair for logging in to the nodes.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub key_pair_name: Option<String>,
    /// Tags of the node group.
    #[schemars(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// Ids of the subnets.
    #[schemars(length(max = 200), inner(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// Kind of AMI, in the words of EKS.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub ami_type: Option<String>,
    /// Release of that AMI.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub release_version: Option<String>,
    /// Kubernetes version of the nodes.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub version: Option<String>,
}
