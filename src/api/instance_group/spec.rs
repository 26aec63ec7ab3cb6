//! The `spec` of an instance group, down to the provisioner's own section.
//!
//! Owns the choice of provisioner, the sizes and the warm pool. It must not demand what the
//! settings `ConfigMap` may still supply: a group that leaves `provisioner`, `strategy` or parts of
//! the configuration to the fleet's defaults is a valid object. Whether the merged result is
//! complete is decided elsewhere.

#![expect(
    clippy::duplicated_attributes,
    reason = "columns share a type; the lint takes that for a repetition"
)]

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::configuration::EksConfiguration;
use super::fargate::EksFargateSpec;
use super::managed::EksManagedSpec;
use super::status::InstanceGroupStatus;
use super::strategy::UpgradeStrategy;
use crate::api::schema::{absent_not_null, filled, unless_stored};

/// What a group of worker nodes should look like.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "instancemgr.keikoproj.io",
    version = "v1alpha1",
    kind = "InstanceGroup",
    plural = "instancegroups",
    singular = "instancegroup",
    shortname = "ig",
    category = "instancemgr",
    namespaced,
    status = "InstanceGroupStatus",
    doc = "A group of worker nodes of an EKS cluster.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.currentState",
        description = "where the group stands"
    ),
    printcolumn(
        name = "Min",
        type_ = "integer",
        json_path = ".status.currentMin",
        description = "minimum size in force"
    ),
    printcolumn(
        name = "Max",
        type_ = "integer",
        json_path = ".status.currentMax",
        description = "maximum size in force"
    ),
    printcolumn(
        name = "Group Name",
        type_ = "string",
        json_path = ".status.activeScalingGroupName",
        description = "name of the Auto Scaling group"
    ),
    printcolumn(
        name = "Provisioner",
        type_ = "string",
        json_path = ".status.provisioner",
        description = "who makes the nodes"
    ),
    printcolumn(
        name = "Strategy",
        type_ = "string",
        json_path = ".status.strategy",
        description = "how nodes are replaced"
    ),
    printcolumn(
        name = "Lifecycle",
        type_ = "string",
        json_path = ".status.lifecycle",
        description = "normal, spot or mixed"
    ),
    printcolumn(
        name = "Locked",
        type_ = "boolean",
        json_path = ".status.lock.locked",
        description = "whether upgrades need an approval"
    ),
    printcolumn(
        name = "Upgrade",
        type_ = "string",
        json_path = ".status.upgradeRequest",
        description = "the upgrade request that is open"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        description = "what is going on or waited for",
        priority = 1
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.image.current",
        description = "image that the nodes run",
        priority = 1
    ),
    printcolumn(
        name = "Pending",
        type_ = "string",
        json_path = ".status.image.pending",
        description = "image that is wanted next",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = unless_stored(
    "!has(@.provisioner) || @.provisioner.lowerAscii() != 'eks' || has(@.eks)",
    "spec.eks is required when spec.provisioner is eks"
))]
#[x_kube(validation = unless_stored(
    "!has(@.provisioner) || @.provisioner.lowerAscii() != 'eks-managed' \
     || has(@.eks__dash__managed)",
    "spec.eks-managed is required when spec.provisioner is eks-managed"
))]
#[x_kube(validation = unless_stored(
    "!has(@.provisioner) || @.provisioner.lowerAscii() != 'eks-fargate' \
     || has(@.eks__dash__fargate)",
    "spec.eks-fargate is required when spec.provisioner is eks-fargate"
))]
#[x_kube(validation = Rule::new(
    "!has(self.provisioner) || self.provisioner.lowerAscii() != 'eks-fargate' \
     || !has(self.strategy) || !has(self.strategy.type) \
     || self.strategy.type.lowerAscii() in ['', 'managed'] \
     || oldSelf.optMap(old, has(old.provisioner) && old.provisioner == self.provisioner \
     && has(old.strategy) && has(old.strategy.type) \
     && old.strategy.type == self.strategy.type).orValue(false)"
).message("spec.strategy.type must be managed when spec.provisioner is eks-fargate").optional_old_self(true))]
#[schemars(transform = absent_not_null)]
pub struct InstanceGroupSpec {
    /// Who makes the nodes: `eks`, `eks-managed` or `eks-fargate`, in any case.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self.lowerAscii() in ['', 'eks', 'eks-managed', 'eks-fargate']",
        "provisioner must be eks, eks-managed or eks-fargate",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub provisioner: Option<String>,
    /// An EC2 Auto Scaling group; read when the provisioner is `eks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eks: Option<EksSpec>,
    /// A managed node group; read when the provisioner is `eks-managed`.
    #[serde(rename = "eks-managed", skip_serializing_if = "Option::is_none")]
    pub eks_managed: Option<EksManagedSpec>,
    /// A Fargate profile; read when the provisioner is `eks-fargate`.
    #[serde(rename = "eks-fargate", skip_serializing_if = "Option::is_none")]
    pub eks_fargate: Option<EksFargateSpec>,
    /// How running nodes are replaced when what a new node boots changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<UpgradeStrategy>,
}

/// An EC2 Auto Scaling group of worker nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = unless_stored(
    "!has(@.minSize) || !has(@.maxSize) || @.minSize <= @.maxSize",
    "eks.minSize must not exceed eks.maxSize"
))]
#[x_kube(validation = unless_stored(
    "!has(@.warmPool) || !has(@.configuration.mixedInstancesPolicy) \
     || (has(@.type) && @.type == 'LaunchConfiguration')",
    "eks.warmPool cannot be used with eks.configuration.mixedInstancesPolicy"
))]
#[x_kube(validation = unless_stored(
    "!has(@.warmPool) || !has(@.configuration.spotPrice) \
     || @.configuration.spotPrice == ''",
    "eks.warmPool cannot be used with eks.configuration.spotPrice"
))]
#[x_kube(validation = unless_stored(
    "!has(@.type) || @.type != 'LaunchConfiguration' \
     || !has(@.configuration.licenseSpecifications) \
     || @.configuration.licenseSpecifications.size() == 0",
    "eks.configuration.licenseSpecifications needs eks.type LaunchTemplate"
))]
#[x_kube(validation = unless_stored(
    "!has(@.type) || @.type != 'LaunchConfiguration' || !has(@.configuration.placement) \
     || (!has(@.configuration.placement.hostResourceGroupArn) \
     || @.configuration.placement.hostResourceGroupArn == '') \
     && (!has(@.configuration.placement.availabilityZone) \
     || @.configuration.placement.availabilityZone == '')",
    "eks.configuration.placement may set no more than tenancy when eks.type is LaunchConfiguration"
))]
pub struct EksSpec {
    /// Most nodes the group may have.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<i64>,
    /// Fewest nodes the group may have; also the desired size at creation.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<i64>,
    /// Stopped instances kept ready for a fast scale-out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_pool: Option<WarmPool>,
    /// `LaunchTemplate` or `LaunchConfiguration`; any other word means the operator's default.
    #[schemars(length(max = 255))]
    #[serde(
        default,
        rename = "type",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "filled"
    )]
    pub type_: Option<String>,
    /// What the nodes are made of.
    pub configuration: EksConfiguration,
}

/// Sizes of a warm pool.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WarmPool {
    /// Most instances prepared, running and warm together; -1 follows the group's maximum.
    #[schemars(range(min = -1, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<i64>,
    /// Fewest instances kept warm.
    #[schemars(range(min = 0, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<i64>,
}
