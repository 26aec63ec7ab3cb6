//! The input of a rollout step: the group's instances, what is known of each, and the limits.
//!
//! Owns the words in which a rollout is thought about: available, in hand, joining, leaving. Must not decide what is taken
//! next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::api::{NodeRecord, NodeState, Reason};
use crate::plan::facts::workload::Pod;
use crate::plan::facts::{Fact, Instance, Node};

/// Everything that a step of a rollout looks at.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// The time of the look.
    pub now: Timestamp,
    /// What nodes' records name the rollout by.
    pub target: &'a str,
    /// How many instances the group should have.
    pub desired: usize,
    /// Its instances, in any life-cycle state.
    pub members: Vec<Member<'a>>,
    /// What the strategy allows.
    pub limits: Limits,
    /// Why no further node may be taken for now, if so.
    pub hold: Option<Hold>,
    /// The rollout was cancelled or locked: nodes in hand are finished, then it ends.
    pub stopping: bool,
    /// Suspended processes of Auto Scaling without which a taken node would not be replaced.
    pub suspended: Vec<&'a str>,
    /// Whether the cluster has a Ready node that takes pods besides the one that hosts this operator.
    pub refuge: bool,
    /// Instances of the target that have not been Ready yet, and since when they are known. Also those that ended before they
    /// were, until a successor is known.
    pub joining: BTreeMap<String, Timestamp>,
    /// Instances that ran the target before the rollout began: whether they are Ready says nothing about the target.
    pub present: BTreeSet<&'a str>,
    /// Since when instances are missing that nothing on its way explains.
    pub short_since: Option<Timestamp>,
    /// Auto Scaling's own words on why no instance comes.
    pub launch_failure: Option<&'a str>,
}

/// An instance of the group.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The instance.
    pub instance: &'a Instance,
    /// Whether it is what the rollout wants.
    pub on_target: bool,
    /// Its node, once it registered.
    pub node: Option<&'a Node>,
    /// The node's pods, where they were asked for.
    pub pods: Option<&'a Fact<Vec<Pod>>>,
    /// Whether this operator runs on it.
    pub hosts_operator: bool,
}

/// What the strategy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many nodes may be unavailable at a time; at least 1.
    pub max_unavailable: usize,
    /// How long the drain of one node may take.
    pub drain_timeout: SignedDuration,
    /// How long a replacement may take to be Ready.
    pub ready_timeout: SignedDuration,
    /// Whether pods that nobody makes anew may be evicted.
    pub delete_bare_pods: bool,
}

/// Why no further node may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The fleet is frozen.
    Freeze {
        /// Why, in the words of who froze it.
        reason: String,
        /// Until when, if that is known.
        until: Option<Timestamp>,
    },
    /// No window is open.
    Window {
        /// Why: `outside every window`, or the reason of the one that denies.
        why: String,
        /// When the next one opens, if one does.
        opens: Option<Timestamp>,
        /// The same as people of its zone write it.
        shown: Option<String>,
    },
}

impl Hold {
    /// The reason in one word.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Freeze { .. } => Reason::Frozen,
            Self::Window { .. } => Reason::WindowClosed,
        }
    }

    /// When it ends, if that is known.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Freeze { until, .. } => *until,
            Self::Window { opens, .. } => *opens,
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Freeze { reason, .. } if reason.is_empty() => f.write_str("upgrades are frozen"),
            Self::Freeze { reason, .. } => write!(f, "upgrades are frozen: {reason}"),
            Self::Window { why, opens, shown } => match (shown, opens) {
                (Some(shown), _) => write!(f, "waits for {shown} ({why})"),
                (None, Some(opens)) => write!(f, "waits for the window at {opens} ({why})"),
                (None, None) => write!(f, "no window ever opens again ({why})"),
            },
        }
    }
}

impl Member<'_> {
    /// Instance id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.instance.id
    }

    /// Whether it is on its way out.
    #[must_use]
    pub fn leaving(&self) -> bool {
        self.instance.terminating() || self.instance.lifecycle_state.starts_with("Detach")
    }

    /// Whether a person took it out of service without terminating it.
    #[must_use]
    pub fn in_standby(&self) -> bool {
        matches!(self.instance.lifecycle_state.as_str(), "Standby" | "EnteringStandby")
    }

    /// Whether it serves: in service, and its node Ready.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.instance.in_service() && self.node.is_some_and(|node| node.ready)
    }

    /// What this rollout noted on its node.
    #[must_use]
    pub fn record(&self, target: &str) -> Option<&NodeRecord> {
        let record = self.node?.record.as_ref()?;
        (record.target == target).then_some(record)
    }

    /// Whether it is being drained for this rollout.
    #[must_use]
    pub fn in_hand(&self, target: &str) -> bool {
        !self.leaving()
            && self
                .record(target)
                .is_some_and(|record| record.state == NodeState::Draining)
    }

    /// Whether it was Ready once since it was made for this rollout.
    #[must_use]
    pub fn joined(&self, target: &str) -> bool {
        self.record(target)
            .is_some_and(|record| record.state == NodeState::Joined)
    }
}

impl Fleet<'_> {
    /// Whether a member can be counted on.
    #[must_use]
    pub fn available(&self, member: &Member<'_>) -> bool {
        member.ready() && !member.in_hand(self.target)
    }

    /// Nodes that are missing or cannot be counted on, of any cause, those in hand among them (promise P3). An instance that
    /// is there and does not serve counts even where the group has more than it wants.
    #[must_use]
    pub fn unavailable(&self) -> usize {
        let available = self.members.iter().filter(|member| self.available(member)).count();
        let down = self
            .members
            .iter()
            .filter(|member| !member.leaving() && !member.in_standby() && !self.available(member))
            .count();
        self.desired.saturating_sub(available).max(down)
    }

    /// Instances of the target that have not been Ready yet.
    pub fn newcomers(&self) -> impl Iterator<Item = &Member<'_>> {
        self.members.iter().filter(|member| {
            member.on_target && !member.leaving() && !member.in_standby() && !member.ready() && !self.served(member)
        })
    }

    /// Whether a member of the target was Ready once, or was there before the rollout.
    #[must_use]
    pub fn served(&self, member: &Member<'_>) -> bool {
        member.joined(self.target) || self.present.contains(member.id())
    }

    /// Instances of the target that ended, or are about to, before they were Ready, the one known for the longest first. None
    /// once a new node of the target became Ready: then the target works.
    #[must_use]
    pub fn lost(&self) -> Vec<(&str, Timestamp)> {
        let fresh = |member: &&Member<'_>| {
            let expected = self.joining.contains_key(member.id()) || !self.served(member);
            member.on_target && member.ready() && expected
        };
        if self.members.iter().any(|member| fresh(&member)) {
            return Vec::new();
        }
        let here = |id: &str| self.members.iter().any(|member| member.id() == id && !member.leaving());
        let gone = self.joining.iter().filter(|(id, _)| !here(id));
        let mut lost: Vec<(&str, Timestamp)> = gone.map(|(id, since)| (id.as_str(), *since)).collect();
        lost.sort_by_key(|(_, since)| *since);
        lost
    }

    /// Instances that still have to go.
    pub fn old(&self) -> impl Iterator<Item = &Member<'_>> {
        self.members
            .iter()
            .filter(|member| !member.on_target && !member.leaving())
    }

    /// Instances that are wanted, missing, and not explained by one on its way out.
    #[must_use]
    pub fn short(&self) -> usize {
        let there = self.members.iter().filter(|member| !member.in_standby()).count();
        self.desired.saturating_sub(there)
    }

    /// Instances of the target that serve.
    #[must_use]
    pub fn updated(&self) -> usize {
        self.members
            .iter()
            .filter(|member| member.on_target && member.ready())
            .count()
    }
}
