//! Settings that have been understood: plain values without a text behind them.
//!
//! Owns the types, their defaults and the questions that they answer. Must not read text; `read` does.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::plan::windows::Window;

/// Everything under key `upgrades`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What locks groups. `None` = the text does not say, which is no unlock; an empty list is.
    pub locks: Option<Vec<LockRule>>,
    /// Nothing is claimed and no next batch starts while it holds.
    pub freeze: Freeze,
    /// Rollouts at the same time over the fleet; `None` = what the command line says.
    pub max_concurrent_rollouts: Option<usize>,
    /// Whether the auto-approver decides anything.
    pub auto_approver: bool,
    /// Schedules; the first that matches a group is the one for it.
    pub schedules: Vec<Schedule>,
    /// How long finished requests are kept.
    pub finished_kept: SignedDuration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            locks: None,
            freeze: Freeze::default(),
            max_concurrent_rollouts: None,
            auto_approver: true,
            schedules: Vec::new(),
            finished_kept: SignedDuration::from_hours(1),
        }
    }
}

impl Settings {
    /// The schedule for a group; none = its upgrades are approved by hand.
    #[must_use]
    pub fn schedule(&self, labels: &GroupLabels<'_>) -> Option<&Schedule> {
        self.schedules.iter().find(|schedule| schedule.scope.contains(labels))
    }

    /// A schedule by name.
    #[must_use]
    pub fn schedule_named(&self, name: &str) -> Option<&Schedule> {
        self.schedules.iter().find(|schedule| schedule.name == name)
    }

    /// The locks on a group that hold at this time.
    pub fn locks_on<'a>(
        &'a self,
        labels: &'a GroupLabels<'_>,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a LockRule> + use<'a> {
        let rules = self.locks.iter().flatten();
        rules.filter(move |rule| rule.until.is_none_or(|until| now < until) && rule.locks(labels))
    }
}

/// The labels that selectors look at.
#[derive(Clone, Copy, Debug)]
pub struct GroupLabels<'a> {
    /// Of the group's namespace, `kubernetes.io/metadata.name` among them.
    pub namespace: &'a BTreeMap<String, String>,
    /// Of the group.
    pub group: &'a BTreeMap<String, String>,
}

/// A set of groups, by labels of the group and of its namespace. Both have to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Which namespaces.
    pub namespace: Selector,
    /// Which groups.
    pub group: Selector,
}

impl Scope {
    /// Whether a group is in it.
    #[must_use]
    pub fn contains(&self, labels: &GroupLabels<'_>) -> bool {
        self.namespace.matches(labels.namespace) && self.group.matches(labels.group)
    }
}

/// A label selector, as in Kubernetes: all of its requirements have to hold, and none matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// What has to hold.
    pub requirements: Vec<Requirement>,
}

impl Selector {
    /// Whether labels meet every requirement.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }
}

/// One requirement on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label has one of these values.
    In(String, Vec<String>),
    /// The label has none of these values; an absent one has none.
    NotIn(String, Vec<String>),
    /// The label is there.
    Exists(String),
    /// The label is not there.
    DoesNotExist(String),
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            Self::Exists(key) => labels.contains_key(key),
            Self::DoesNotExist(key) => !labels.contains_key(key),
        }
    }
}

/// A lock on a set of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockRule {
    /// Which groups; no selector = the whole fleet.
    pub scope: Scope,
    /// Which of those are left out.
    pub except: Option<Exception>,
    /// Why, in the words of who locked.
    pub reason: String,
    /// When it lifts by itself.
    pub until: Option<Timestamp>,
}

impl LockRule {
    /// Whether it is for a group, be it over or not.
    #[must_use]
    pub fn locks(&self, labels: &GroupLabels<'_>) -> bool {
        self.scope.contains(labels) && !self.except.as_ref().is_some_and(|except| except.0.contains(labels))
    }
}

/// Groups that a lock leaves out. At least one selector is given: an empty exception would lift the lock for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception(pub Scope);

/// The fleet's freeze.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freeze {
    /// Whether it is on.
    pub enabled: bool,
    /// Why, in the words of who froze.
    pub reason: String,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

impl Freeze {
    /// Whether it holds at this time.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.enabled && self.until.is_none_or(|until| now < until)
    }
}

/// When upgrades of a set of groups are approved, and when their nodes may be replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Its name: what status and Events call it.
    pub name: String,
    /// Groups that it is for.
    pub scope: Scope,
    /// New images; `None` = by hand.
    pub image: Option<ImageRule>,
    /// Edits of the group.
    pub spec: Rule,
    /// Minor steps of Kubernetes.
    pub kubernetes_version: Rule,
    /// Groups taken over that differ.
    pub adoption: Rule,
    /// The parameter went back to an earlier image.
    pub rollback: Rule,
    /// When nodes may be replaced.
    pub windows: Vec<Window>,
    /// Whether what has started may go on when its window closes.
    pub overrun: bool,
    /// Rollouts at the same time of the schedule's groups.
    pub max_concurrent_rollouts: Option<usize>,
}

/// When one kind of change is approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// By hand only.
    #[default]
    Manual,
    /// This long after the request opened.
    After(SignedDuration),
}

/// When a new image is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRule {
    /// Age at which it is approved.
    pub after: SignedDuration,
    /// What its age counts from.
    pub basis: Basis,
    /// What becomes of a waiting request when a newer image appears.
    pub on_newer: OnNewer,
    /// How long a request has been open at least.
    pub settle: SignedDuration,
    /// Proof by another schedule's groups, wanted before.
    pub soak: Option<Soak>,
}

/// What the age of an image counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// When SSM got the value.
    #[default]
    SsmLastModified,
    /// When the image was made.
    ImageCreated,
    /// When the value was first seen here.
    FirstSeen,
}

/// What becomes of a waiting image request when a newer image appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNewer {
    /// It keeps its own date; the newer image is asked for when it ended.
    Keep,
    /// The newer image takes its place and starts to wait anew.
    Restart,
}

/// Proof that an image works, given by another schedule's groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Soak {
    /// Whose groups.
    pub schedule: String,
    /// How long one of them has to be fully on the image and Ready without a break.
    pub lasts: SignedDuration,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingsError {
    /// Line of the text, from 1.
    pub line: usize,
    /// Path of the field, as `schedules[1].image.after`; empty = the text as a whole.
    pub field: String,
    /// What is wrong, and how it would be right.
    pub message: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for SettingsError {}
