//! Taking surplus nodes out of a group for good: when its upper bound goes below its size.
//!
//! Owns which nodes go and that they are drained first, within the same limits as a rollout. Must not lower the bound; the
//! group's plan does.

use jiff::Timestamp;

use super::choose;
use super::drain::after;
use super::fleet::{Fleet, Member};
use super::hand::{self, Hand};
use super::steps::{Step, Steps};
use crate::api::NodeState;
use crate::plan::step::NodeEdit;

/// What the records of such nodes name.
pub const SCALE_IN: &str = "scale-in";

/// Takes `surplus` nodes further on their way out. A terminated one lowers the size by itself; one goes at a time, and the
/// next look reads the size again.
#[must_use]
pub fn scale_in(fleet: &Fleet<'_>, surplus: usize) -> Steps {
    let mut steps = Steps::default();
    super::forget_other_rollouts(fleet, &mut steps);
    // What AWS may still count although it goes already.
    let leaving = fleet
        .members
        .iter()
        .filter(|member| member.leaving() && member.record(SCALE_IN).is_some())
        .count();
    let in_hand: Vec<&Member<'_>> = fleet.members.iter().filter(|member| member.in_hand(SCALE_IN)).collect();
    for (place, member) in in_hand.iter().enumerate() {
        if place >= surplus {
            if let Some(node) = member.node {
                steps.edit(&node.name, member.id(), NodeEdit::Release { keep: None });
            }
            continue;
        }
        let since = member.record(SCALE_IN).map_or(fleet.now, |record| record.since);
        let until = after(since, fleet.limits.drain_timeout);
        match hand::work(member, until, &fleet.limits, fleet.now, &mut steps) {
            Hand::Drained => terminate(member, &mut steps),
            Hand::Going => {}
            Hand::Late(why) => hand::give_up(member, SCALE_IN, &fleet.limits, fleet.now, &why, &mut steps),
        }
    }
    take(fleet, surplus.saturating_sub(in_hand.len() + leaving), &mut steps);
    steps
}

/// Takes further nodes, as far as the budget goes.
fn take(fleet: &Fleet<'_>, more: usize, steps: &mut Steps) {
    let mut free: Vec<&Member<'_>> = fleet
        .members
        .iter()
        .filter(|member| !member.leaving() && !member.in_standby() && !member.in_hand(SCALE_IN))
        .collect();
    free.sort_by_key(|member| (member.hosts_operator, member.ready(), gave_up(member), member.id()));
    let mut unavailable = fleet.unavailable();
    let mut taken = 0;
    for member in free {
        if taken >= more {
            return;
        }
        // One that is down already costs nothing more to take, as long as the others leave room for it (promise P3).
        let others = unavailable.saturating_sub(usize::from(!fleet.available(member)));
        if others >= fleet.limits.max_unavailable {
            if taken == 0 && fleet.members.iter().all(|member| !member.in_hand(SCALE_IN)) {
                choose::budget_spent(fleet, unavailable, steps);
            }
            return;
        }
        let went = if member.node.is_none() {
            // Nothing runs on an instance that never registered, started or not.
            terminate(member, steps);
            true
        } else {
            choose::take(fleet, member, steps)
        };
        if went {
            taken += 1;
            unavailable = others + 1;
        }
    }
}

fn terminate(member: &Member<'_>, steps: &mut Steps) {
    if !steps.actions.iter().any(|step| matches!(step, Step::Terminate { .. })) {
        steps.actions.push(Step::Terminate {
            instance: member.id().to_owned(),
        });
    }
}

/// Since when a node rests after its drain was given up; those that were not tried come first.
fn gave_up(member: &Member<'_>) -> Option<Timestamp> {
    let record = member.record(SCALE_IN)?;
    (record.state == NodeState::GaveUp).then_some(record.since)
}
