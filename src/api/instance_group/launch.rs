//! How the Auto Scaling group launches: hooks, mixed instances, placement and the metadata service.
//!
//! Owns the wire shape only. It must not choose instance types or talk of prices.

#![expect(
    clippy::struct_field_names,
    reason = "metadata options carry the names of the EC2 API"
)]

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::schema::{filled, unless_stored};

/// A lifecycle hook of the Auto Scaling group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHook {
    /// Name of the hook, unique in the group.
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = (
        "self.matches('^[A-Za-z0-9_/-]+$')",
        "the name of a lifecycle hook may hold letters, digits, -, _ and / only",
    ))]
    pub name: String,
    /// `Launch` or `Terminate`, in any case.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self.lowerAscii() in ['launch', 'terminate']",
        "lifecycle of a hook must be Launch or Terminate",
    ))]
    pub lifecycle: String,
    /// `ABANDON` or `CONTINUE` when the time is up; any other word means `ABANDON`.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub default_result: Option<String>,
    /// Time the hook may take, in seconds; absent or 0 means 300.
    #[x_kube(validation = (
        "self == 0 || (self >= 30 && self <= 7200)",
        "heartbeatTimeout of a hook must be 30 to 7200 seconds, or 0 for the default",
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<i64>,
    /// Queue or topic that is told.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = (
        "self == '' || self.matches('^arn:([^:]*:){4}')",
        "notificationArn of a hook must be an ARN",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub notification_arn: Option<String>,
    /// Text sent along with the notification.
    #[schemars(length(max = 4000))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub metadata: Option<String>,
    /// Role that may publish to the queue or topic.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = (
        "self == '' || self.matches('^arn:([^:]*:){4}')",
        "roleArn of a hook must be an ARN",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub role_arn: Option<String>,
}

/// Several instance types and a share of spot instances in one group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = unless_stored(
    "has(@.instanceTypes) || (has(@.instancePool) && @.instancePool != '')",
    "mixedInstancesPolicy needs instancePool or instanceTypes"
))]
#[x_kube(validation = unless_stored(
    "has(@.instanceTypes) || !has(@.instancePool) \
     || @.instancePool.lowerAscii() in ['', 'subfamilyflexible']",
    "mixedInstancesPolicy.instancePool must be SubFamilyFlexible"
))]
#[x_kube(validation = unless_stored(
    "!has(@.spotPools) || !has(@.strategy) \
     || @.strategy.lowerAscii() in ['', 'lowestprice']",
    "mixedInstancesPolicy.spotPools needs strategy LowestPrice"
))]
pub struct MixedInstancesPolicy {
    /// `CapacityOptimized` or `LowestPrice`, in any case.
    #[schemars(length(max = 64))]
    #[x_kube(validation = (
        "self.lowerAscii() in ['', 'capacityoptimized', 'lowestprice']",
        "mixedInstancesPolicy.strategy must be CapacityOptimized or LowestPrice",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub strategy: Option<String>,
    /// Number of spot pools for `LowestPrice`, 1 to 20; another number is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_pools: Option<i64>,
    /// On-demand instances below which no spot instance is used.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_capacity: Option<i64>,
    /// Share of spot instances above the base, in percent: a number or `N%`.
    #[x_kube(validation = (
        "type(self) == int ? self >= 0 && self <= 100 \
         : (!self.matches('^[0-9]+%$') || self.matches('^0*(100|[0-9]{1,2})%$'))",
        "mixedInstancesPolicy.spotRatio must be 0 to 100",
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_ratio: Option<IntOrString>,
    /// `SubFamilyFlexible`, in any case; not read when `instanceTypes` is given.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub instance_pool: Option<String>,
    /// The types to choose from besides the primary one.
    #[schemars(length(max = 100))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instance_types: Vec<InstanceTypeSpec>,
}

/// One instance type of a mixed group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct InstanceTypeSpec {
    /// EC2 instance type.
    #[schemars(length(max = 255))]
    #[serde(rename = "type")]
    pub type_: String,
    /// Capacity units that one instance counts for; absent or 0 means 1.
    #[schemars(range(min = 0, max = 999))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

/// Tenancy and host placement of the instances.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = unless_stored(
    "!has(@.hostResourceGroupArn) || @.hostResourceGroupArn == '' \
     || (has(@.tenancy) && @.tenancy.lowerAscii() == 'host')",
    "placement.hostResourceGroupArn needs placement.tenancy host"
))]
pub struct Placement {
    /// Availability zone of every instance.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub availability_zone: Option<String>,
    /// ARN of the host resource group; needs tenancy `host`.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = (
        "self == '' || self.matches('^arn:([^:]*:){4}')",
        "placement.hostResourceGroupArn must be an ARN",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub host_resource_group_arn: Option<String>,
    /// `default`, `dedicated` or `host`.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self.lowerAscii() in ['', 'default', 'dedicated', 'host']",
        "placement.tenancy must be default, dedicated or host",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub tenancy: Option<String>,
}

/// Instance metadata service of the instances.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `enabled` or `disabled`.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self in ['', 'enabled', 'disabled']",
        "metadataOptions.httpEndpoint must be enabled or disabled",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub http_endpoint: Option<String>,
    /// `optional` or `required`.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self in ['', 'optional', 'required']",
        "metadataOptions.httpTokens must be optional or required",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub http_tokens: Option<String>,
    /// Network hops that an answer may take, 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_put_hop_limit: Option<i64>,
}
