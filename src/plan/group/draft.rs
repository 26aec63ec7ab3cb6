//! A plan under construction.
//!
//! Owns how a decision becomes actions, conditions, a headline and the time of the next look. Must not decide
//! anything itself.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::instance_group::{CurrentState, HistoryEntry, InstanceGroupStatus};
use crate::api::{ConditionType, Reason, set_condition};
use crate::plan::facts::Failure;
use crate::plan::observed::Observed;
use crate::plan::problem::{Problem, failure_condition, failure_reason};
use crate::plan::step::{Action, Notice, Plan, Wait, Wake};

/// Entries kept in `status.history`.
const HISTORY_LIMIT: usize = 10;

/// A plan under construction. Conditions that are not set in a pass are dropped at its end: each pass says
/// everything that holds.
pub struct Draft<'a> {
    /// What was seen.
    pub observed: &'a Observed,
    /// The status as it will be.
    pub status: InstanceGroupStatus,
    conditions: Vec<Condition>,
    keep_conditions: bool,
    actions: Vec<Action>,
    notices: Vec<Notice>,
    waits: Vec<Wait>,
    wake: Wake,
    look_at_pods: BTreeSet<String>,
}

impl<'a> Draft<'a> {
    /// An empty plan over what was seen.
    pub fn new(observed: &'a Observed) -> Self {
        let mut status = observed.group.status.clone().unwrap_or_default();
        status.observed_generation = observed.group.metadata.generation;
        Self {
            observed,
            status,
            conditions: Vec::new(),
            keep_conditions: false,
            actions: Vec::new(),
            notices: Vec::new(),
            waits: Vec::new(),
            wake: Wake::OnEvent,
            look_at_pods: BTreeSet::new(),
        }
    }

    /// The time of the look.
    pub fn now(&self) -> Timestamp {
        self.observed.now
    }

    /// The time of the look as the API writes it: whole seconds.
    pub fn time(&self) -> Time {
        Time(Timestamp::from_second(self.now().as_second()).unwrap_or(self.now()))
    }

    /// Adds an effect.
    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Whether an effect was added.
    pub fn acts(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Asks for the next pass at once.
    pub fn again(&mut self) {
        self.wake = Wake::Now;
    }

    /// Asks for the next look at a time, at the latest.
    pub fn look_at(&mut self, time: Timestamp) {
        self.wake = self.wake.sooner(Wake::At(time));
    }

    /// Asks for the next look after a number of seconds, at the latest.
    pub fn look_in(&mut self, seconds: i64) {
        self.look_at(
            self.now()
                .saturating_add(SignedDuration::from_secs(seconds))
                .unwrap_or(self.now()),
        );
    }

    /// An Event about the group, once the status is written.
    pub fn notice(&mut self, warning: bool, reason: &'static str, message: String) {
        self.notices.push(Notice {
            warning,
            reason,
            message,
        });
    }

    /// Says why nothing more is done now.
    pub fn wait(&mut self, reason: Reason, message: &str) {
        self.waits.push(Wait {
            reason,
            message: message.to_owned(),
            until: None,
        });
    }

    /// Says what a rollout waits for.
    pub fn waits_in_rollout(&mut self, waits: Vec<Wait>) {
        self.waits.extend(waits);
    }

    /// Asks that the next look knows the pods of these nodes.
    pub fn look_at_pods(&mut self, nodes: BTreeSet<String>) {
        self.look_at_pods.extend(nodes);
    }

    /// Sets a condition that holds, or does not.
    pub fn condition(&mut self, kind: ConditionType, holds: bool, reason: Reason, message: &str) {
        let condition = Condition {
            type_: kind.to_string(),
            status: if holds { "True" } else { "False" }.to_owned(),
            reason: reason.to_string(),
            message: message.to_owned(),
            observed_generation: self.observed.group.metadata.generation,
            last_transition_time: self.time(),
        };
        self.conditions.retain(|other| other.type_ != condition.type_);
        self.conditions.push(condition);
    }

    /// Keeps conditions that this pass says nothing about: it could not see.
    pub fn keep_the_rest(&mut self) {
        self.keep_conditions = true;
    }

    /// Sets the headline: state word, Ready condition, and the message in one sentence.
    pub fn headline(&mut self, state: CurrentState, reason: Reason, message: &str) {
        self.status.current_state = Some(state.to_string());
        self.status.message = Some(message.to_owned());
        self.condition(
            ConditionType::Ready,
            matches!(state, CurrentState::Ready | CurrentState::Locked),
            reason,
            message,
        );
    }

    /// Shows an obstacle: its condition, and the headline unless it only means that nothing could be learned, in
    /// which case the last known state stays.
    pub fn obstacle(&mut self, problem: &Problem) {
        let message = problem.to_string();
        self.condition(problem.condition(), true, problem.reason(), &message);
        self.wait(problem.reason(), &message);
        if problem.is_unknown() {
            self.keep_the_rest();
            self.status.message = Some(message);
            self.look_in(30);
        } else {
            self.headline(CurrentState::Failed, problem.reason(), &message);
            self.look_in(60);
        }
    }

    /// Shows a call that fails although what it told before still stands; the headline stays.
    pub fn trouble(&mut self, failure: &Failure) {
        let (kind, reason) = (failure_condition(failure.class), failure_reason(failure.class));
        self.condition(
            kind,
            true,
            reason,
            &format!("{failure}; what was known before still holds"),
        );
    }

    /// Adds an entry to the group's history.
    pub fn record(&mut self, entry: HistoryEntry) {
        self.status.history.insert(0, entry);
        self.status.history.truncate(HISTORY_LIMIT);
    }

    /// The finished plan.
    pub fn finish(mut self) -> Plan {
        let now = self.now();
        if !self.keep_conditions {
            let said: Vec<String> = self
                .conditions
                .iter()
                .map(|condition| condition.type_.clone())
                .collect();
            self.status
                .conditions
                .retain(|condition| said.contains(&condition.type_));
        }
        for condition in self.conditions {
            set_condition(&mut self.status.conditions, condition, now);
        }
        Plan {
            actions: self.actions,
            status: self.status,
            notices: self.notices,
            waits: self.waits,
            wake: self.wake,
            look_at_pods: self.look_at_pods,
        }
    }
}
