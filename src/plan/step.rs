//! The plan of one reconcile, as a value that prints as text.
//!
//! Owns the actions, waits and notices that a decision can come to. Must not carry them out, and holds nothing
//! that could not be shown in a log: user data prints as a digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::facts::GroupTag;
use super::facts::workload::PodId;
use super::launch::LaunchInputs;
use super::naming::VersionMark;
use crate::api::instance_group::InstanceGroupStatus;
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestStatus};
use crate::api::{NodeRecord, Reason};

/// What a reconcile decided: actions in order, then one status write, then the notices.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Effects, in order; the first failure ends the pass.
    pub actions: Vec<Action>,
    /// The group's status after this pass. It holds only what is true whether or not the actions succeed: a
    /// record that must precede an effect is a pass of its own.
    pub status: InstanceGroupStatus,
    /// Events to publish once the status is written.
    pub notices: Vec<Notice>,
    /// Why nothing more is done now.
    pub waits: Vec<Wait>,
    /// When to look again.
    pub wake: Wake,
    /// Nodes whose pods the next look has to know.
    pub look_at_pods: BTreeSet<String>,
}

/// When a group is looked at again, if nothing happens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once: this pass made the next one possible.
    Now,
    /// At a time.
    At(Timestamp),
    /// On an event only.
    OnEvent,
}

impl Wake {
    /// The sooner of two.
    #[must_use]
    pub fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::At(left), Self::At(right)) => Self::At(left.min(right)),
            (at @ Self::At(_), Self::OnEvent) | (Self::OnEvent, at) => at,
        }
    }
}

/// Why a group stands still, and what ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why.
    pub reason: Reason,
    /// What it waits for and what a person can do.
    pub message: String,
    /// When that ends, or is looked at again, if that is known.
    pub until: Option<Timestamp>,
}

/// An Event to publish about the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it asks for attention.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// One effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the group, before anything is made for it.
    AddFinalizer,
    /// Take our finalizer off the group: nothing of it is left.
    RemoveFinalizer,
    /// Remove an annotation from the group that was acted on, if it still has this value.
    RemoveAnnotation {
        /// Annotation key.
        key: &'static str,
        /// The value that was acted on.
        value: String,
    },
    /// Create an upgrade request.
    OpenRequest(Box<InstanceGroupUpgradeRequest>),
    /// Write a request's status on the resourceVersion that was read; a claim is this with phase `InProgress`.
    MoveRequest(Box<RequestMove>),
    /// Let go of a request that a person deleted.
    ReleaseRequest(RequestRef),
    /// Delete a request: our finalizer first, then the object, both on what was read.
    RemoveRequest(RequestRef),
    /// Make the launch template with its first version.
    CreateTemplate {
        /// Template name.
        name: String,
        /// What the version carries as description.
        mark: VersionMark,
        /// What a node gets.
        inputs: Box<LaunchInputs>,
        /// Idempotency token.
        token: String,
        /// Tags of the template.
        tags: BTreeMap<String, String>,
    },
    /// Make a template version.
    CreateVersion {
        /// Template id.
        template_id: String,
        /// What the version carries as description.
        mark: VersionMark,
        /// What a node gets.
        inputs: Box<LaunchInputs>,
        /// Idempotency token.
        token: String,
    },
    /// Make a version the template's default: it is the approved one.
    SetDefaultVersion {
        /// Template id.
        template_id: String,
        /// Version number.
        number: i64,
    },
    /// Delete template versions that nothing needs any more.
    DeleteVersions {
        /// Template id.
        template_id: String,
        /// Version numbers.
        numbers: Vec<i64>,
    },
    /// Make the Auto Scaling group.
    CreateGroup {
        /// Group name.
        name: String,
        /// Template id.
        template_id: String,
        /// Version number to pin.
        version: i64,
        /// Lower bound, also the first desired capacity.
        min_size: i32,
        /// Upper bound.
        max_size: i32,
        /// Subnet ids.
        subnets: BTreeSet<String>,
        /// Tags.
        tags: BTreeMap<String, GroupTag>,
    },
    /// Change the Auto Scaling group.
    UpdateGroup {
        /// Group name.
        name: String,
        /// What changes.
        change: GroupChange,
    },
    /// Set tags on the Auto Scaling group.
    PutTags {
        /// Group name.
        name: String,
        /// Tags to set.
        tags: BTreeMap<String, GroupTag>,
    },
    /// Take tags off the Auto Scaling group that the manifest no longer has.
    DeleteTags {
        /// Group name.
        name: String,
        /// Tag keys.
        keys: BTreeSet<String>,
    },
    /// Terminate an instance; Auto Scaling launches another in its place.
    Terminate {
        /// Group name.
        group: String,
        /// Instance id.
        instance_id: String,
        /// Whether the desired capacity goes down with it, so that no other comes.
        shrink: bool,
    },
    /// Suspend a process of the Auto Scaling group.
    SuspendProcess {
        /// Group name.
        group: String,
        /// Process name, as `AZRebalance`.
        process: String,
    },
    /// Resume a process of the Auto Scaling group.
    ResumeProcess {
        /// Group name.
        group: String,
        /// Process name.
        process: String,
    },
    /// Change a Node object.
    EditNode {
        /// Node name.
        node: String,
        /// Instance that has to be behind it.
        instance_id: String,
        /// What changes.
        edit: NodeEdit,
    },
    /// Ask a pod to go. The answer is a fact of the next look.
    Evict {
        /// Node name.
        node: String,
        /// Which pod.
        pod: PodId,
    },
    /// Take one of the fleet's slots for rollouts, checked once more at the one place that grants them.
    TakeSlot,
    /// Delete the Auto Scaling group with its instances.
    DeleteGroup {
        /// Group name.
        name: String,
    },
    /// Delete the launch template.
    DeleteTemplate {
        /// Template id.
        id: String,
    },
}

/// What changes on an Auto Scaling group; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Lower and upper bound, together because AWS checks one against the other.
    pub sizes: Option<(i32, i32)>,
    /// Subnet ids, the whole set.
    pub subnets: Option<BTreeSet<String>>,
    /// Template id and version number.
    pub pin: Option<(String, i64)>,
}

impl GroupChange {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A change of a Node object. The record on the node says what of it is ours to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEdit {
    /// Takes it in hand in one write: the record, the cordon, and out of load balancers. What was so before is not noted as
    /// ours.
    Take {
        /// What for.
        target: String,
        /// Since when.
        since: Timestamp,
    },
    /// Undoes what the record says is ours and removes the record, or puts another in its place.
    Release {
        /// The record from now on; with one, our taint stays too.
        keep: Option<NodeRecord>,
    },
    /// Asks the scheduler to prefer other nodes.
    Avoid,
    /// Notes that it was Ready, and forbids cluster-autoscaler to remove it.
    Join {
        /// What for.
        target: String,
        /// Since when.
        since: Timestamp,
    },
}

/// Which request, and which state of it the decision was made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRef {
    /// Object name.
    pub name: String,
    /// Object uid.
    pub uid: String,
    /// The resourceVersion that was read.
    pub resource_version: String,
}

impl RequestRef {
    /// The reference to a request as it was read.
    #[must_use]
    pub fn of(request: &InstanceGroupUpgradeRequest) -> Self {
        Self {
            name: request.metadata.name.clone().unwrap_or_default(),
            uid: request.metadata.uid.clone().unwrap_or_default(),
            resource_version: request.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// A request's next status.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestMove {
    /// Which request.
    pub request: RequestRef,
    /// Its status from now on.
    pub status: InstanceGroupUpgradeRequestStatus,
    /// The Event of the transition, if it is one.
    pub notice: Option<Notice>,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer => f.write_str("add finalizer"),
            Self::RemoveFinalizer => f.write_str("remove finalizer"),
            Self::RemoveAnnotation { key, .. } => write!(f, "remove annotation {key}"),
            Self::OpenRequest(request) => {
                let name = request.metadata.name.as_deref().unwrap_or_default();
                write!(f, "open request {name} ({})", request.spec.reason)
            }
            Self::MoveRequest(step) => {
                let phase = step
                    .status
                    .phase
                    .map_or_else(|| "-".to_owned(), |phase| phase.to_string());
                write!(f, "request {} is {phase}", step.request.name)?;
                step.status
                    .message
                    .iter()
                    .try_for_each(|message| write!(f, ": {message}"))
            }
            Self::ReleaseRequest(request) => write!(f, "release request {}", request.name),
            Self::RemoveRequest(request) => write!(f, "remove request {}", request.name),
            Self::CreateTemplate { name, inputs, .. } => write!(f, "create template {name} with {}", inputs.image_id),
            Self::CreateVersion {
                template_id, inputs, ..
            } => {
                write!(f, "create version of {template_id} with {}", inputs.image_id)
            }
            Self::SetDefaultVersion { template_id, number } => {
                write!(f, "make version {number} the default of {template_id}")
            }
            Self::DeleteVersions { template_id, numbers } => write!(f, "delete versions {numbers:?} of {template_id}"),
            Self::CreateGroup {
                name,
                template_id,
                version,
                min_size,
                max_size,
                ..
            } => {
                write!(
                    f,
                    "create group {name} on {template_id}/{version}, size {min_size} to {max_size}"
                )
            }
            Self::UpdateGroup { name, change } => {
                write!(f, "update group {name}:")?;
                change
                    .sizes
                    .iter()
                    .try_for_each(|(min, max)| write!(f, " size {min} to {max}"))?;
                change
                    .subnets
                    .iter()
                    .try_for_each(|subnets| write!(f, " subnets {subnets:?}"))?;
                change
                    .pin
                    .iter()
                    .try_for_each(|(template, version)| write!(f, " pin {template}/{version}"))
            }
            Self::PutTags { name, tags } => write!(f, "tag group {name}: {:?}", tags.keys().collect::<Vec<_>>()),
            Self::DeleteTags { name, keys } => write!(f, "untag group {name}: {keys:?}"),
            Self::Terminate {
                instance_id, shrink, ..
            } => {
                write!(f, "terminate {instance_id}{}", if *shrink { " for good" } else { "" })
            }
            Self::SuspendProcess { group, process } => write!(f, "suspend {process} of group {group}"),
            Self::ResumeProcess { group, process } => write!(f, "resume {process} of group {group}"),
            Self::EditNode { instance_id, edit, .. } => write!(f, "{edit} {instance_id}"),
            Self::Evict { pod, node } => write!(f, "evict {pod} from {node}"),
            Self::TakeSlot => f.write_str("take a slot"),
            Self::DeleteGroup { name } => write!(f, "delete group {name}"),
            Self::DeleteTemplate { id } => write!(f, "delete template {id}"),
        }
    }
}

impl Action {
    /// Whether it changes something at AWS.
    #[must_use]
    pub fn is_aws(&self) -> bool {
        !matches!(
            self,
            Self::AddFinalizer
                | Self::RemoveFinalizer
                | Self::RemoveAnnotation { .. }
                | Self::OpenRequest(_)
                | Self::MoveRequest(_)
                | Self::ReleaseRequest(_)
                | Self::RemoveRequest(_)
                | Self::EditNode { .. }
                | Self::Evict { .. }
                | Self::TakeSlot
        )
    }
}

impl Plan {
    /// Whether a request opens, which should say what changes.
    #[must_use]
    pub fn opens_request(&self) -> bool {
        self.actions
            .iter()
            .any(|action| matches!(action, Action::OpenRequest(_)))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in &self.actions {
            writeln!(f, "do    {action}")?;
        }
        for wait in &self.waits {
            writeln!(f, "wait  {}: {}", wait.reason, wait.message)?;
        }
        for notice in &self.notices {
            writeln!(f, "event {}: {}", notice.reason, notice.message)?;
        }
        match self.wake {
            Wake::Now => writeln!(f, "look again now"),
            Wake::At(time) => writeln!(f, "look again at {time}"),
            Wake::OnEvent => writeln!(f, "look again on an event"),
        }
    }
}
