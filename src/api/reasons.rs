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
    /// An upgrade has waited much longer than its schedule says.
    UpgradeOverdue,
    /// The rollout in hand cannot go on until something outside changes.
    Blocked,
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

/// Why a condition is as it is: one word that alerts can match on. Only words that something says are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumIter, EnumString, IntoStaticStr)]
pub enum Reason {
    /// Everything is as wanted.
    AsWanted,
    /// AWS resources are being made.
    Creating,
    /// The Auto Scaling group is being put right.
    Updating,
    /// AWS resources are being deleted.
    Deleting,
    /// The Auto Scaling group is on its way out.
    ScalingGroupDeleting,
    /// A lost launch template version is made again.
    TemplateRebuilt,
    /// Nodes are being replaced.
    RollingOut,
    /// A lock stopped a rollout that needed no approval.
    RolloutLocked,
    /// Surplus nodes are drained before the upper bound goes down.
    ScalingIn,
    /// A rollout stopped, and what it left is cleared up.
    Retreating,
    /// A node in hand waits for something that takes its time.
    Draining,
    /// A pod was asked to end, and has not yet.
    PodEnding,
    /// A `PodDisruptionBudget` lets no pod go.
    PodDisruptionBudget,
    /// Two `PodDisruptionBudget`s select one pod, which nobody can evict then.
    SeveralBudgets,
    /// A pod has no controller that would make it anew.
    BarePod,
    /// An eviction was refused for another reason.
    EvictionFailed,
    /// A drain took too long, and its node rests before it is tried again.
    DrainGivenUp,
    /// As many nodes are unavailable as the strategy allows.
    BudgetSpent,
    /// Auto Scaling's own processes are suspended, so that a node would not be replaced.
    LaunchSuspended,
    /// The last nodes to go include the one that the operator runs on.
    HostsOperator,
    /// An instance was put in standby by a person.
    InstanceInStandby,
    /// Upgrades are frozen.
    Frozen,
    /// No maintenance window is open.
    WindowClosed,
    /// As many groups are rolled out at a time as the fleet's cap allows.
    WaitsForSlot,
    /// A node of the new version was not Ready in time.
    NodeNeverReady,
    /// No instance of the new version came in time.
    LaunchFailed,
    /// Every desired node is Ready.
    NodesReady,
    /// Nodes are missing or not Ready.
    NodesNotReady,
    /// An upgrade request waits for a decision.
    WaitsForApproval,
    /// The schedule wants to see the image run elsewhere first.
    WaitsForSoak,
    /// No schedule is for the group.
    NoSchedule,
    /// The schedule leaves this kind of change to a person.
    ManualRule,
    /// The group's own annotation leaves it to a person.
    ManualByAnnotation,
    /// The settings switch the auto-approver off.
    AutoApproverOff,
    /// A person asked for a blocked target again.
    AskedAgain,
    /// The target is older than what runs.
    GoesBack,
    /// An upgrade has waited more than twice as long as its schedule says.
    Overdue,
    /// The settings have mistakes.
    SettingsInvalid,
    /// The settings are missing or empty.
    SettingsMissing,
    /// The clock of the operator's machine differs from AWS's.
    ClockSkew,
    /// AWS does not show our last write yet, or something there is under way.
    #[strum(serialize = "WaitsForAWS")]
    WaitsForAws,
    /// The target was denied.
    Denied,
    /// The target failed.
    Failed,
    /// The target was cancelled.
    Cancelled,
    /// The image does not exist, or not for this account.
    ImageNotFound,
    /// The image exists and cannot be launched.
    ImageUnavailable,
    /// The image is deprecated.
    ImageDeprecated,
    /// The image is built for another processor.
    ImageArchitecture,
    /// No image is published for the operating system family.
    ImageFamilyUnknown,
    /// The image parameter does not exist.
    ParameterNotFound,
    /// The image parameter holds no image id.
    ParameterUnusable,
    /// The instance type is not offered in a zone of the group.
    InstanceTypeNotOffered,
    /// The wanted Kubernetes version is newer than the cluster's.
    VersionTooNew,
    /// A field makes no sense or is missing.
    SpecInvalid,
    /// Something that the spec names does not exist.
    NotFound,
    /// Something that the spec names exists and cannot serve.
    Unusable,
    /// The group has a field that is not built.
    UnsupportedField,
    /// The settings have a key that is not built.
    UnsupportedSetting,
    /// The AWS resource belongs to somebody else.
    NotOurs,
    /// What was approved cannot be rebuilt.
    ApprovedTemplateLost,
    /// AWS refuses what the operator may not do.
    AccessDenied,
    /// AWS asks to slow down.
    Throttled,
    /// AWS does not answer.
    #[strum(serialize = "AWSUnreachable")]
    AwsUnreachable,
    /// AWS refuses the call.
    #[strum(serialize = "AWSError")]
    AwsError,
}

impl Reason {
    /// The reason as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
