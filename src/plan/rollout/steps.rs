//! The output of a rollout step, as a value that prints as text.
//!
//! Owns what a step can come to. Must not decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::api::{NodeState, Reason};
use crate::plan::facts::workload::PodId;
use crate::plan::step::{NodeEdit, Wait};

/// What a look at a fleet came to.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Effects, in order.
    pub actions: Vec<Step>,
    /// Why nothing more is done now; the first is the headline.
    pub waits: Vec<Wait>,
    /// Instances of the target that have not been Ready yet, and since when they are known. Also those that ended before they
    /// were, until a successor is known.
    pub joining: BTreeMap<String, Timestamp>,
    /// Since when instances are missing that nothing on its way explains.
    pub short_since: Option<Timestamp>,
    /// Nodes whose pods the next look has to know.
    pub look_at_pods: BTreeSet<String>,
    /// Things that a person should know although nothing waits for them, each with the reason of its Event.
    pub warnings: Vec<(&'static str, String)>,
    /// How far it is.
    pub counts: Counts,
    /// How it goes on.
    pub outcome: Outcome,
    /// When to look again if nothing happens.
    pub look_at: Option<Timestamp>,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Change a Node object.
    Edit {
        /// Node name.
        node: String,
        /// Instance behind it.
        instance: String,
        /// What changes.
        edit: NodeEdit,
    },
    /// Ask a pod to go.
    Evict {
        /// Node name.
        node: String,
        /// Which pod.
        pod: PodId,
    },
    /// Terminate an instance; Auto Scaling launches another in its place.
    Terminate {
        /// Instance id.
        instance: String,
    },
}

/// How many nodes are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes wanted.
    pub total: usize,
    /// Nodes of the target that are Ready.
    pub updated: usize,
    /// Nodes that are Ready.
    pub ready: usize,
    /// Nodes in hand.
    pub draining: usize,
    /// Nodes of the target that were not Ready in time.
    pub failed: usize,
}

/// How a rollout goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// There is more to do, or to wait for.
    #[default]
    Going,
    /// All nodes that are wanted are Ready on the target, and no other is left (rule R7).
    Done,
    /// It was asked to stop, and no node is in hand any more.
    Idle,
    /// The target does not work: pin back (rule R5).
    Halt(Halt),
}

/// Why a target does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// `NodeNeverReady` or `LaunchFailed`.
    pub reason: Reason,
    /// What happened, in a sentence.
    pub message: String,
    /// The instance that showed it.
    pub instance: Option<String>,
}

impl Steps {
    pub(super) fn edit(&mut self, node: &str, instance: &str, edit: NodeEdit) {
        self.actions.push(Step::Edit {
            node: node.to_owned(),
            instance: instance.to_owned(),
            edit,
        });
    }

    pub(super) fn wait(&mut self, reason: Reason, message: String, until: Option<Timestamp>) {
        self.waits.push(Wait { reason, message, until });
        if let Some(until) = until {
            self.again(until);
        }
    }

    pub(super) fn again(&mut self, at: Timestamp) {
        self.look_at = Some(self.look_at.map_or(at, |other| other.min(at)));
    }
}

impl fmt::Display for NodeEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Take { .. } => f.write_str("cordon and drain"),
            Self::Release { keep: None } => f.write_str("let go of"),
            Self::Release { keep: Some(record) } if record.state == NodeState::GaveUp => {
                f.write_str("give up draining")
            }
            Self::Release { keep: Some(_) } => f.write_str("put back"),
            Self::Avoid => f.write_str("prefer others to"),
            Self::Join { .. } => f.write_str("welcome"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edit { instance, edit, .. } => write!(f, "{edit} {instance}"),
            Self::Evict { pod, .. } => write!(f, "evict {pod}"),
            Self::Terminate { instance } => write!(f, "terminate {instance}"),
        }
    }
}
