//! The kind `InstanceGroup`.
//!
//! Owns its wire types and the few readings that belong to the wire shape alone: annotations,
//! words in any case, sizes with their meaning when absent. It must not know of AWS or of the
//! settings.

mod accessors;
mod configuration;
mod fargate;
mod launch;
mod managed;
mod node;
mod records;
mod spec;
mod status;
mod strategy;
mod tags;

pub use accessors::{ImageReference, Provisioner, StrategyKind};
pub use configuration::EksConfiguration;
pub use fargate::{EksFargateSpec, FargateSelector};
pub use launch::{InstanceTypeSpec, LifecycleHook, MetadataOptions, MixedInstancesPolicy, Placement};
pub use managed::{EksManagedConfiguration, EksManagedSpec};
pub use node::{BootstrapOptions, NodeVolume, UserDataStage, VolumeMountOptions};
pub use records::{
    BlockReason, BlockedTarget, HistoryEntry, HistoryResult, JoiningInstance, LockSource, LockStatus, RolloutEnding,
    RolloutRecord, RolloutResult,
};
pub use spec::{EksSpec, InstanceGroup, InstanceGroupSpec, WarmPool};
pub use status::{CurrentState, FingerprintStatus, ImageStatus, InstanceGroupStatus, LaunchTemplateStatus};
pub use strategy::{CrdStrategy, RollingUpdate, UpgradeStrategy};
pub use tags::{Tag, TagSpecification};

#[cfg(test)]
mod tests;
