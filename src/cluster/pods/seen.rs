//! One pod, as a fact.
//!
//! Owns the step from a Pod object to what decisions read, and what of a Pod is kept in memory. Must not decide whether it can
//! go.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};

use crate::cluster::budgets::BudgetIndex;
use crate::plan::facts::workload::{self, PodId, PodKind};

/// On a pod that a kubelet mirrors from a file of its own.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What the API server assumes where nothing is said, in seconds.
const DEFAULT_GRACE: i64 = 30;

/// What was seen of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPod {
    /// Which pod.
    pub id: PodId,
    /// Its labels, by which budgets select it.
    pub labels: BTreeMap<String, String>,
    /// Who would make it anew, if anybody.
    pub kind: PodKind,
    /// Whether its Ready condition is True.
    pub ready: bool,
    /// Set once it is being deleted: when its grace period ends. That is what `deletionTimestamp` says for a pod: the API
    /// server adds the grace period to the time of the request.
    pub ends_at: Option<Timestamp>,
    /// Its `terminationGracePeriodSeconds`, in seconds.
    pub grace_seconds: i64,
}

impl SeenPod {
    /// What there is to see of a pod; `None` for one without a name or uid, which the API server does not have.
    #[must_use]
    pub fn of(pod: &Pod) -> Option<Self> {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        Some(Self {
            id: PodId {
                namespace: pod.metadata.namespace.clone()?,
                name: pod.metadata.name.clone()?,
                uid: pod.metadata.uid.clone()?,
            },
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            kind: kind(pod),
            ready: conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            ends_at: pod.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            grace_seconds: spec
                .and_then(|spec| spec.termination_grace_period_seconds)
                .unwrap_or(DEFAULT_GRACE),
        })
    }

    /// The fact, with the budgets that select it. An eviction's answer is for others to fill in.
    #[must_use]
    pub fn fact(&self, budgets: &BudgetIndex) -> workload::Pod {
        workload::Pod {
            id: self.id.clone(),
            kind: self.kind,
            ready: self.ready,
            ends_at: self.ends_at,
            grace_seconds: self.grace_seconds,
            budgets: budgets.of(&self.id.namespace, &self.labels),
            answer: None,
        }
    }
}

fn kind(pod: &Pod) -> PodKind {
    let has_mirror = |annotations: &BTreeMap<_, _>| annotations.contains_key(MIRROR);
    if pod.metadata.annotations.as_ref().is_some_and(has_mirror) {
        return PodKind::Mirror;
    }
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    // By kind alone, as `kubectl drain`: the DaemonSets of other API groups put their pods back as well.
    if controller.is_some_and(|owner| owner.kind == "DaemonSet") {
        return PodKind::Daemon;
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return PodKind::Finished;
    }
    controller.map_or(PodKind::Bare, |_| PodKind::Owned)
}

/// Cuts a Pod down to what [`SeenPod::of`] reads, before it is stored.
pub fn trim(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    pod.metadata.finalizers = None;
    if let Some(annotations) = &mut pod.metadata.annotations {
        annotations.retain(|key, _| key == MIRROR);
    }
    if let Some(owners) = &mut pod.metadata.owner_references {
        owners.retain(|owner| owner.controller == Some(true));
    }
    pod.spec = pod.spec.take().map(|spec| PodSpec {
        termination_grace_period_seconds: spec.termination_grace_period_seconds,
        ..PodSpec::default()
    });
    pod.status = pod.status.take().map(|status| PodStatus {
        phase: status.phase,
        conditions: status.conditions.map(|mut conditions| {
            conditions.retain(|condition| condition.type_ == "Ready");
            for condition in &mut conditions {
                condition.message = None;
                condition.reason = None;
                condition.last_probe_time = None;
            }
            conditions
        }),
        ..PodStatus::default()
    });
}
