//! The drain of one node: which pods are asked to go, what is waited for, when it is given up (rules R3 and R4).
//!
//! Owns the reading of pods and of eviction answers. Must not choose nodes, and knows nothing of rollouts: a deletion or a
//! scale-in drains in the same way.

use jiff::{SignedDuration, Timestamp};

use super::fleet::Limits;
use crate::api::Reason;
use crate::plan::facts::workload::{Budget, EvictionKind, Pod, PodId, PodKind};

/// How long a budget's refusal stands before the same pod is asked again without any sign of change.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// The same once a budget shows room: its numbers and the answer may have crossed.
const ROOM: SignedDuration = SignedDuration::from_secs(1);
/// How long after its grace period a pod's end is believed in. On a node whose kubelet is silent nobody will confirm it; where
/// the kubelet speaks, something holds the pod.
const UNCONFIRMED: SignedDuration = SignedDuration::from_secs(30);

/// One thing in the way of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What it is.
    pub reason: Reason,
    /// What it is and what a person can do.
    pub message: String,
}

/// Where a drain stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// Pods to ask to go now.
    pub evict: Vec<PodId>,
    /// What is waited for, the first of each kind.
    pub obstacles: Vec<Obstacle>,
    /// Whether nothing is left that a drain waits for.
    pub drained: bool,
    /// When to look again if nothing happens.
    pub look_at: Option<Timestamp>,
}

impl Drain {
    fn waits(&mut self, reason: Reason, message: String) {
        if !self.obstacles.iter().any(|obstacle| obstacle.reason == reason) {
            self.obstacles.push(Obstacle { reason, message });
        }
    }

    fn again(&mut self, at: Timestamp) {
        self.look_at = Some(self.look_at.map_or(at, |other| other.min(at)));
    }
}

/// Whether a drain has to do with a pod at all.
fn concerns(pod: &Pod) -> bool {
    matches!(pod.kind, PodKind::Owned | PodKind::Bare)
}

/// Takes the drain of a node a step further.
#[must_use]
pub fn drain(pods: &[Pod], node_ready: bool, limits: &Limits, now: Timestamp) -> Drain {
    let mut drain = Drain::default();
    let mut left = 0;
    for pod in pods.iter().filter(|pod| concerns(pod)) {
        if let Some(ends_at) = pod.ends_at {
            let unconfirmed = after(ends_at, UNCONFIRMED);
            if !node_ready && now >= unconfirmed {
                continue;
            }
            left += 1;
            ending(&mut drain, pod, ends_at, now);
            if !node_ready {
                drain.again(unconfirmed);
            }
            continue;
        }
        left += 1;
        if pod.kind == PodKind::Bare && !limits.delete_bare_pods {
            drain.waits(Reason::BarePod, bare(pod));
            continue;
        }
        ask(&mut drain, pod, now);
    }
    drain.drained = left == 0;
    drain
}

/// A pod that is on its way.
fn ending(drain: &mut Drain, pod: &Pod, ends_at: Timestamp, now: Timestamp) {
    if now < ends_at {
        drain.waits(
            Reason::PodEnding,
            format!(
                "pod {} is ending; its grace period ends at {}",
                pod.id,
                seconds(ends_at)
            ),
        );
        drain.again(ends_at);
    } else {
        drain.waits(Reason::PodEnding, overdue(pod, ends_at));
    }
}

fn overdue(pod: &Pod, ends_at: Timestamp) -> String {
    format!(
        "pod {} should have ended at {} and is still there; look at its finalizers and its node",
        pod.id,
        seconds(ends_at)
    )
}

/// Asks a pod to go, or says what the last answer was.
fn ask(drain: &mut Drain, pod: &Pod, now: Timestamp) {
    let Some(answer) = &pod.answer else {
        drain.evict.push(pod.id.clone());
        return;
    };
    let room = pod.budgets.iter().all(|budget| budget.disruptions_allowed > 0);
    let pause = match &answer.kind {
        EvictionKind::Budget(_) if room => ROOM,
        EvictionKind::SeveralBudgets(_) if pod.budgets.len() < 2 => ROOM,
        _ => ASK_AGAIN,
    };
    let again = after(answer.at, pause);
    if now >= again {
        drain.evict.push(pod.id.clone());
    } else {
        drain.again(again);
    }
    match &answer.kind {
        EvictionKind::Accepted | EvictionKind::Gone => {
            drain.waits(Reason::PodEnding, format!("pod {} was asked to end", pod.id));
        }
        EvictionKind::Budget(words) => drain.waits(Reason::PodDisruptionBudget, refused(pod, words)),
        EvictionKind::Throttled => drain.waits(
            Reason::Throttled,
            format!("the API server asks for patience with the eviction of {}", pod.id),
        ),
        EvictionKind::SeveralBudgets(words) => drain.waits(Reason::SeveralBudgets, several(pod, Some(words))),
        EvictionKind::NamespaceTerminating => drain.waits(
            Reason::PodEnding,
            format!("the namespace of pod {} is being deleted, and the pod with it", pod.id),
        ),
        EvictionKind::Failed(failure) => drain.waits(
            Reason::EvictionFailed,
            format!("the eviction of {} failed and is tried again: {failure}", pod.id),
        ),
    }
}

/// What stands in the way of a drain before it is begun; a node is only cordoned when there is nothing (scenario C39). A pod
/// that does not end although it should have is such a thing: else the node would be emptied of all others time and again.
#[must_use]
pub fn obstacle(pods: &[Pod], node_ready: bool, limits: &Limits, now: Timestamp) -> Option<Obstacle> {
    let mut worst: Option<Obstacle> = None;
    for pod in pods.iter().filter(|pod| concerns(pod)) {
        let found = if let Some(ends_at) = pod.ends_at {
            let held = node_ready && now >= after(ends_at, UNCONFIRMED);
            held.then(|| (Reason::PodEnding, overdue(pod, ends_at)))
        } else if pod.kind == PodKind::Bare && !limits.delete_bare_pods {
            Some((Reason::BarePod, bare(pod)))
        } else if pod.budgets.len() > 1 {
            Some((Reason::SeveralBudgets, several(pod, None)))
        } else if let Some(budget) = pod.budgets.iter().find(|budget| budget.never) {
            Some((Reason::PodDisruptionBudget, never(pod, budget)))
        } else {
            // A pod that is not Ready may go although its budget has no room (policy/v1 unhealthyPodEvictionPolicy).
            pod.budgets
                .iter()
                .find(|budget| budget.disruptions_allowed <= 0 && pod.ready)
                .map(|budget| (Reason::PodDisruptionBudget, exhausted(pod, budget)))
        };
        if let Some((reason, message)) = found
            && worst.as_ref().is_none_or(|worst| rank(reason) > rank(worst.reason))
        {
            worst = Some(Obstacle { reason, message });
        }
    }
    worst
}

/// What never goes away by itself is told first.
fn rank(reason: Reason) -> u8 {
    match reason {
        Reason::SeveralBudgets => 2,
        Reason::BarePod => 1,
        _ => 0,
    }
}

/// The longest grace period among the pods to evict, in seconds, if it is longer than a drain may take.
#[must_use]
pub fn longer_grace<'a>(pods: &'a [Pod], limits: &Limits) -> Option<&'a Pod> {
    pods.iter()
        .filter(|pod| concerns(pod))
        .filter(|pod| pod.grace_seconds > limits.drain_timeout.as_secs())
        .max_by_key(|pod| pod.grace_seconds)
}

fn bare(pod: &Pod) -> String {
    format!(
        "pod {} has no controller, nobody would make it anew; delete it, or set \
         spec.strategy.rollingUpdate.deleteBarePods: true",
        pod.id
    )
}

fn several(pod: &Pod, words: Option<&str>) -> String {
    let names: Vec<&str> = pod.budgets.iter().map(|budget| budget.name.as_str()).collect();
    let which = if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    };
    let mut message = format!(
        "pod {} is selected by several PodDisruptionBudgets ({which}); nobody can evict it until only one does",
        pod.id
    );
    if let Some(words) = words.filter(|_| names.len() < 2) {
        message = format!("{message}: {words}");
    }
    message
}

fn never(pod: &Pod, budget: &Budget) -> String {
    format!(
        "PodDisruptionBudget {}/{} never lets pod {} go, even with all its pods Ready; relax it or add replicas",
        pod.id.namespace, budget.name, pod.id.name
    )
}

fn exhausted(pod: &Pod, budget: &Budget) -> String {
    format!(
        "PodDisruptionBudget {}/{} lets no pod go now, and pod {} is one of its; waits until more of them are Ready",
        pod.id.namespace, budget.name, pod.id.name
    )
}

fn refused(pod: &Pod, words: &str) -> String {
    match pod.budgets.as_slice() {
        [budget] if budget.never => never(pod, budget),
        [budget] => format!(
            "PodDisruptionBudget {}/{} holds pod {}: {words}",
            pod.id.namespace, budget.name, pod.id.name
        ),
        _ => format!("a PodDisruptionBudget holds pod {}: {words}", pod.id),
    }
}

/// A later time, in no danger of running over.
#[must_use]
pub fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// A time as people read it: whole seconds.
#[must_use]
pub fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
