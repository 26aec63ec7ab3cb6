//! Taking surplus nodes out of a group for good: when its upper bound goes below its size.
//!
//! Owns which nodes go and that they are drained first. Must not lower the bound; the group's plan does once the size fits.

use super::drain::{after, seconds};
use super::fleet::{Limits, Member};
use super::hand::{self, Hand};
use super::steps::{Step, Steps};
use crate::api::NodeState;
use crate::plan::step::NodeEdit;
use jiff::Timestamp;

/// What the records of such nodes name.
pub const SCALE_IN: &str = "scale-in";

/// Takes `surplus` nodes further on their way out. A terminated one lowers the size by itself.
#[must_use]
pub fn scale_in(members: &[Member<'_>], surplus: usize, limits: &Limits, now: Timestamp) -> Steps {
    let mut steps = Steps::default();
    // What AWS may still count although it goes already.
    let leaving = members
        .iter()
        .filter(|member| member.leaving() && member.record(SCALE_IN).is_some())
        .count();
    let in_hand: Vec<&Member<'_>> = members.iter().filter(|member| member.in_hand(SCALE_IN)).collect();
    for (place, member) in in_hand.iter().enumerate() {
        if place >= surplus {
            if let Some(node) = member.node {
                steps.edit(&node.name, member.id(), NodeEdit::Release { keep: None });
            }
            continue;
        }
        let since = member.record(SCALE_IN).map_or(now, |record| record.since);
        match hand::work(member, after(since, limits.drain_timeout), limits, now, &mut steps) {
            Hand::Drained => steps.actions.push(Step::Terminate {
                instance: member.id().to_owned(),
            }),
            Hand::Going => {}
            Hand::Late(why) => hand::give_up(member, SCALE_IN, limits, now, &why, &mut steps),
        }
    }
    let mut free: Vec<&Member<'_>> = members
        .iter()
        .filter(|member| !member.leaving() && !member.in_standby() && !member.in_hand(SCALE_IN))
        .collect();
    free.sort_by_key(|member| (member.hosts_operator, member.ready(), gave_up(member), member.id()));
    for member in free.into_iter().take(surplus.saturating_sub(in_hand.len() + leaving)) {
        match member.node {
            Some(node) => steps.edit(
                &node.name,
                member.id(),
                NodeEdit::Take {
                    target: SCALE_IN.to_owned(),
                    since: seconds(now),
                },
            ),
            None => steps.actions.push(Step::Terminate {
                instance: member.id().to_owned(),
            }),
        }
    }
    steps
}

/// Since when a node rests after its drain was given up; those that were not tried come first.
fn gave_up(member: &Member<'_>) -> Option<Timestamp> {
    let record = member.record(SCALE_IN)?;
    (record.state == NodeState::GaveUp).then_some(record.since)
}
