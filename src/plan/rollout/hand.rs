//! One node in hand: its drain until it is drained or too late.
//!
//! Owns the step from a node in hand to evictions and waits, for rollouts, scale-ins and deletions alike. Must not take nodes
//! in hand, and must not terminate.

use jiff::{SignedDuration, Timestamp};

use super::drain::{self, after};
use super::fleet::{Limits, Member};
use super::steps::{Step, Steps};
use crate::api::{NodeRecord, NodeState, Reason};
use crate::plan::facts::Fact;
use crate::plan::step::NodeEdit;

/// Where the drain of a node in hand stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hand {
    /// Nothing is left on it that a drain waits for.
    Drained,
    /// It goes on.
    Going,
    /// Its time is over; holds what it waited for.
    Late(String),
}

/// Works on a node in hand until a time.
pub fn work(member: &Member<'_>, until: Timestamp, limits: &Limits, now: Timestamp, steps: &mut Steps) -> Hand {
    let Some(node) = member.node else {
        return Hand::Drained;
    };
    steps.look_at_pods.insert(node.name.clone());
    let late = now >= until;
    let Some(pods) = member.pods.and_then(Fact::found) else {
        if late {
            return Hand::Late("its pods could not be seen".to_owned());
        }
        looks_for_pods(member, now, steps);
        return Hand::Going;
    };
    let drain = drain::drain(pods, node.ready, limits, now);
    if drain.drained {
        // What the scheduler had decided before the cordon may still arrive.
        let settled = node.record.as_ref().map_or(now, |record| after(record.since, SETTLE));
        if now >= settled {
            return Hand::Drained;
        }
        steps.wait(
            Reason::Draining,
            format!("{} was just cordoned", node.name),
            Some(settled),
        );
        return Hand::Going;
    }
    if late {
        let first = drain.obstacles.into_iter().next();
        return Hand::Late(first.map_or_else(|| "its pods did not go".to_owned(), |obstacle| obstacle.message));
    }
    steps.again(until);
    if let Some(at) = drain.look_at {
        steps.again(at);
    }
    for pod in drain.evict {
        steps.actions.push(Step::Evict {
            node: node.name.clone(),
            pod,
        });
    }
    for obstacle in drain.obstacles {
        steps.wait(
            obstacle.reason,
            format!("{}: {}", node.name, obstacle.message),
            Some(until),
        );
    }
    Hand::Going
}

/// How long after the cordon an empty node is not believed: a binding under way would die with its instance. The record has
/// whole seconds, so this is one to two of them.
const SETTLE: SignedDuration = SignedDuration::from_secs(2);
/// How long pods may stay unknown before it is looked again without any news of them.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// Says that the pods of a node are not known, and why if they were asked for and did not come.
pub fn looks_for_pods(member: &Member<'_>, now: Timestamp, steps: &mut Steps) {
    let Some(node) = member.node else { return };
    let why = match member.pods {
        Some(Fact::Unknown(failure)) => format!(": {}", failure.message),
        Some(Fact::Found(_) | Fact::NotFound) | None => String::new(),
    };
    let message = format!("looks which pods run on {}{why}", node.name);
    steps.wait(Reason::Draining, message, Some(after(now, LOOK_AGAIN)));
}

/// Lets a node go whose drain took too long; others come first from now on (rule R4).
pub fn give_up(member: &Member<'_>, target: &str, limits: &Limits, now: Timestamp, why: &str, steps: &mut Steps) {
    let Some(node) = member.node else { return };
    let message = format!(
        "draining {} took longer than {:#} and was given up for now: {why}",
        node.name, limits.drain_timeout
    );
    steps.warnings.push(("DrainGivenUp", message));
    let record = NodeRecord::new(target, NodeState::GaveUp, drain::seconds(now));
    steps.edit(&node.name, member.id(), NodeEdit::Release { keep: Some(record) });
}
