//! Facts about what runs on a node: pods, the budgets that guard them, and how evictions were answered.
//!
//! Owns the plain values. Must not hold a client, a clock or a decision.

use jiff::Timestamp;

use super::Failure;

/// A pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Which pod.
    pub id: PodId,
    /// Who would make it anew, if anybody.
    pub kind: PodKind,
    /// Whether its Ready condition is True.
    pub ready: bool,
    /// Set once it is being deleted: when its grace period ends.
    pub ends_at: Option<Timestamp>,
    /// Its `terminationGracePeriodSeconds`, in seconds.
    pub grace_seconds: i64,
    /// The `PodDisruptionBudget`s that select it.
    pub budgets: Vec<Budget>,
    /// The last answer to our eviction of it, if we asked.
    pub answer: Option<EvictionAnswer>,
}

/// Names a pod for good: the same name can come back as another pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Object uid.
    pub uid: String,
}

impl std::fmt::Display for PodId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Who would make a pod anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodKind {
    /// A controller, on any node.
    Owned,
    /// A `DaemonSet`: on this very node again.
    Daemon,
    /// The kubelet itself: a static pod's mirror.
    Mirror,
    /// It succeeded or failed and runs no more.
    Finished,
    /// Nobody.
    Bare,
}

/// A `PodDisruptionBudget`, as far as it matters to an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// How many of its pods may be evicted now (`status.disruptionsAllowed`).
    pub disruptions_allowed: i32,
    /// Whether it allows none even with every pod of it healthy (policy/v1: `desiredHealthy` is not below
    /// `expectedPods`).
    pub never: bool,
}

/// How an eviction was answered, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionAnswer {
    /// When the answer came.
    pub at: Timestamp,
    /// What it was.
    pub kind: EvictionKind,
}

/// What the API server answered to an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictionKind {
    /// Accepted: the pod is being deleted.
    Accepted,
    /// The pod is gone, or another one has its name.
    Gone,
    /// 429 with cause `DisruptionBudget`: not now. Holds the API server's words.
    Budget(String),
    /// 429 without that cause: the API server asks for patience.
    Throttled,
    /// 500: more than one budget selects the pod; nobody can evict it. Holds the API server's words.
    SeveralBudgets(String),
    /// 403 with cause `NamespaceTerminating`: its namespace goes, and the pod with it.
    NamespaceTerminating,
    /// Anything else.
    Failed(Failure),
}
