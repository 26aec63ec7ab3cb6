//! The vocabulary of conditions: types, statuses and reasons.
//!
//! Owns the words that users and alerts match on; a word that was published does not change. It
//! must not decide which of them applies.

use strum::{AsRefStr, Display, EnumIter, EnumString, IntoStaticStr};

/// What a condition speaks of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, AsRefStr, Display, EnumIter, EnumString, IntoStaticStr,
)]
pub enum ConditionType {
    /// The group is as its spec says, and nothing waits.
    Ready,
    /// Every desired node is Ready.
    NodesReady,
    /// Nodes are being replaced.
    Progressing,
    /// Something newer than what runs is known.
    UpgradeAvailable,
    /// A request waits for a decision or for its turn.
    UpgradePending,
    /// The target is denied, failed or cancelled, and does not start by itself.
    UpgradeBlocked,
    /// The group has a field, or the settings a key, that is not built.
    Unsupported,
    /// The wanted image cannot be used.
    ImageUnusable,
    /// The wanted target cannot be launched, the image aside.
    TargetUnusable,
    /// What was approved cannot be rebuilt.
    ApprovedTemplateLost,
    /// The settings cannot be read.
    SettingsInvalid,
    /// The clock of the operator's machine differs from AWS's.
    ClockSkew,
    /// AWS refuses what the operator may not do.
    AccessDenied,
    /// AWS does not answer.
    #[strum(serialize = "AWSUnavailable")]
    AwsUnavailable,
    /// Another program writes the same AWS resources or objects.
    ForeignWriter,
}

impl ConditionType {
    /// The type as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumString, IntoStaticStr)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell.
    Unknown,
}

impl ConditionStatus {
    /// The status as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a condition has its status, a request waits or a rollout failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumIter, EnumString, IntoStaticStr)]
pub enum Reason {
    /// The group is as its spec says.
    AsWanted,
    /// Nothing has been read yet.
    NotObserved,
    /// AWS resources are being made.
    Creating,
    /// AWS resources are being changed.
    Updating,
    /// AWS resources are being removed.
    Deleting,
    /// Nodes are being replaced.
    RollingOut,
    /// Surplus nodes are being drained.
    Draining,
    /// Every desired node is Ready.
    NodesReady,
    /// Some desired nodes are not Ready.
    NodesNotReady,
    /// Nodes are wanted and no instance comes.
    NoInstances,
    /// A request waits for a decision.
    WaitsForApproval,
    /// A request waits for the time of its schedule.
    WaitsForSchedule,
    /// What was approved waits for a maintenance window.
    WaitsForWindow,
    /// As many groups roll out as may.
    WaitsForSlot,
    /// The next target waits for the rollout in hand.
    WaitsForRollout,
    /// A replacement has not become Ready yet.
    WaitsForNode,
    /// Pods are still leaving a node.
    WaitsForPods,
    /// Unavailable nodes use up the budget.
    WaitsForCapacity,
    /// AWS is still at work on what was asked, or does not show it yet.
    #[strum(serialize = "WaitsForAWS")]
    WaitsForAws,
    /// Upgrades of the fleet are frozen.
    Frozen,
    /// A `PodDisruptionBudget` keeps a node from being drained.
    DisruptionBudget,
    /// A pod is covered by several `PodDisruptionBudget`s and cannot be evicted at all.
    SeveralDisruptionBudgets,
    /// A node holds pods that no controller would make anew.
    BarePods,
    /// The last old node hosts the operator, and there is nowhere else for it.
    HostsOperator,
    /// Scaling process Launch or Terminate is suspended.
    LaunchSuspended,
    /// AWS cannot launch the instance that is asked for.
    LaunchImpossible,
    /// A replacement was not Ready in time.
    NodeDidNotBecomeReady,
    /// Somebody denied the target.
    Denied,
    /// The rollout of the target was halted.
    Failed,
    /// Somebody cancelled the rollout of the target.
    Cancelled,
    /// The target went back to what runs.
    TargetReverted,
    /// Another target took its place.
    TargetMoved,
    /// The group needs no approval any more.
    GroupUnlocked,
    /// The group was taken over and differs from what would be rendered.
    Adoption,
    /// The image does not exist, or may not be read.
    ImageNotFound,
    /// The image has gone since it was approved.
    ImageUnavailable,
    /// The image is deprecated or disabled.
    ImageDeprecated,
    /// The image does not fit the architecture of the instance type.
    ImageArchitecture,
    /// No operating system family is named, and the old default has no image for this version.
    ImageFamilyUnknown,
    /// The image parameter does not exist.
    ParameterNotFound,
    /// The value of the image parameter is no image id.
    ParameterUnusable,
    /// The image parameter may not be read.
    ParameterForbidden,
    /// The instance type is not offered in the group's zones.
    InstanceTypeNotOffered,
    /// The version is newer than the cluster's.
    VersionTooNew,
    /// The spec, with the settings applied, is incomplete or contradicts itself.
    SpecInvalid,
    /// Something that the spec names does not exist.
    NotFound,
    /// A name in the spec fits several things.
    Ambiguous,
    /// The group has a field that is not built.
    UnsupportedField,
    /// The settings hold a key that is not built.
    UnsupportedSetting,
    /// An AWS resource of that name is not ours.
    NotOurs,
    /// Another program writes the same AWS resources or objects.
    ForeignWriter,
    /// What was approved cannot be rebuilt.
    ApprovedTemplateLost,
    /// The settings are gone; what they locked stays locked.
    SettingsMissing,
    /// The settings cannot be read; the last good ones stay.
    SettingsInvalid,
    /// The settings have not been read yet.
    SettingsNotSynced,
    /// A lock annotation is neither true nor false, and locks.
    LockValueUnclear,
    /// The clock differs from AWS's by more than five minutes.
    ClockDiffers,
    /// AWS refuses what the operator may not do.
    AccessDenied,
    /// AWS asks for fewer calls.
    Throttled,
    /// AWS does not answer.
    #[strum(serialize = "AWSUnreachable")]
    AwsUnreachable,
    /// AWS answers with an error that has no better name.
    #[strum(serialize = "AWSError")]
    AwsError,
    /// The operator only looks.
    DryRun,
}

impl Reason {
    /// The reason as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
