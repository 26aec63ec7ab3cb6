//! What the nodes of an Auto Scaling group are made of: `spec.eks.configuration`.
//!
//! Owns the wire shape of everything that ends up in a launch template or on the Auto Scaling
//! group. It must not render or resolve any of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::launch::{LifecycleHook, MetadataOptions, MixedInstancesPolicy, Placement};
use super::node::{BootstrapOptions, NodeVolume, UserDataStage};
use super::tags::{Tag, TagSpecification};
use crate::api::schema::{MapLimit, TextLimit, filled};

/// What the nodes of the group are made of and where they run.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EksConfiguration {
    /// Name of the EKS cluster that the nodes join.
    #[schemars(length(max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub cluster_name: Option<String>,
    /// EC2 key pair for logging in to the nodes.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub key_pair_name: Option<String>,
    /// An AMI id, `latest`, `ssm://<id>` (an id within the EKS parameter path) or
    /// `ssm:///<full parameter name>`.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = (
        "self == '' || self.lowerAscii() == 'latest' \
         || self.matches('^(ami-[0-9A-Za-z]+|ssm://.+|resolve:ssm:.+)$')",
        "image must be an AMI id (ami-...), latest, or ssm:// followed by a name",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub image: Option<String>,
    /// Kubernetes minor version that `latest` and `ssm://` follow, such as `1.33`; absent means the
    /// version of the cluster.
    #[schemars(length(max = 16))]
    #[x_kube(validation = (
        "self == '' || self.matches('^1\\\\.[0-9]{1,3}$')",
        "kubernetesVersion must be a minor version such as 1.33",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub kubernetes_version: Option<String>,
    /// EC2 instance type; the primary one when a mixed instances policy is set.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub instance_type: Option<String>,
    /// Security groups, each an id (`sg-...`) or the value of a `Name` tag.
    #[schemars(length(max = 16), inner(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// Block devices; empty means one of 32 GiB on `/dev/xvda`.
    #[schemars(length(max = 128))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<NodeVolume>,
    /// Subnets, each an id (`subnet-...`) or the value of a `Name` tag.
    #[schemars(length(max = 200), inner(length(max = 256)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// Scaling processes kept suspended, or `all`; unknown names are dropped.
    #[schemars(length(max = 64), inner(length(max = 255)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspend_processes: Vec<String>,
    /// Text appended to the kubelet's arguments.
    #[schemars(length(max = 16384))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub bootstrap_arguments: Option<String>,
    /// Settings of the node's bootstrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_options: Option<BootstrapOptions>,
    /// Most to pay for a spot instance, in US dollars an hour.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub spot_price: Option<String>,
    /// Tags put on the Auto Scaling group and its instances.
    #[schemars(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// Tags put on other resources that a launch makes.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tag_specifications: Vec<TagSpecification>,
    /// Labels of the nodes.
    #[schemars(transform = MapLimit { entries: 1024, value: 16384 })]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints of the nodes.
    #[schemars(length(max = 100), transform = TextLimit(317))]
    #[x_kube(validation = (
        "self.all(taint, taint.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
        "the effect of every taint must be NoSchedule, PreferNoSchedule or NoExecute",
    ))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Scripts and documents added to the user data.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_data: Vec<UserDataStage>,
    /// An existing role for the nodes; when set, IAM is never written.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub role_name: Option<String>,
    /// The instance profile of that existing role.
    #[schemars(length(max = 128))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub instance_profile_name: Option<String>,
    /// Policies attached to the role that the operator makes, as names or ARNs.
    #[schemars(length(max = 25), inner(length(max = 2048)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_policies: Vec<String>,
    /// Group metrics collected once a minute, or `all`; unknown names are dropped.
    #[schemars(length(max = 64), inner(length(max = 255)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics_collection: Vec<String>,
    /// Lifecycle hooks of the Auto Scaling group.
    #[schemars(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle_hooks: Vec<LifecycleHook>,
    /// Several instance types and a share of spot instances in one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_instances_policy: Option<MixedInstancesPolicy>,
    /// ARNs of licence configurations.
    #[schemars(length(max = 50), inner(length(max = 2048)))]
    #[x_kube(validation = (
        "self.all(arn, arn.matches('^arn:([^:]*:){4}'))",
        "every entry of licenseSpecifications must be an ARN",
    ))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub license_specifications: Vec<String>,
    /// Tenancy and host placement of the instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Instance metadata service of the instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
}
