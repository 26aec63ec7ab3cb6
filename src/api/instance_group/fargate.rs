//! A Fargate profile: `spec.eks-fargate`.
//!
//! Owns the wire shape only. Its tags follow another convention than the other provisioners':
//! every entry of a map is a tag of its own.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::schema::{MapLimit, filled};

/// A profile that sends pods to Fargate.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EksFargateSpec {
    /// Name of the EKS cluster of the profile.
    #[schemars(length(min = 1, max = 100))]
    pub cluster_name: String,
    /// ARN of the role that the pods' hosts run under; absent means that the operator makes one.
    #[schemars(length(max = 2048))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub pod_execution_role_arn: Option<String>,
    /// Ids of the subnets that the pods run in.
    #[schemars(length(max = 200), inner(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// Which pods go to Fargate.
    #[schemars(length(min = 1, max = 5))]
    pub selectors: Vec<FargateSelector>,
    /// Tags of the profile; every entry of each map is one tag.
    #[schemars(length(max = 50), transform = MapLimit { entries: 50, value: 256 })]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<BTreeMap<String, String>>,
}

/// Pods of one namespace, or those of them that carry some labels.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FargateSelector {
    /// Namespace of the pods.
    #[schemars(length(min = 1, max = 253))]
    pub namespace: String,
    /// Labels that the pods must carry, all of them.
    #[schemars(transform = MapLimit { entries: 5, value: 63 })]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
