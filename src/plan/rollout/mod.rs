//! The rollout: which node goes next, how far, and when to stop.
//!
//! Owns rules R1 to R7 on a group whose pin was moved already: a [`Fleet`] goes in, [`Steps`] come out. Pure and repeatable:
//! a second look at the same fleet comes to the same. Must not know requests, locks or templates; the group's plan does.

mod choose;
pub mod drain;
pub mod fleet;
pub mod hand;
pub mod limits;
pub mod scale_in;
pub mod steps;
#[cfg(test)]
pub(in crate::plan) mod tests;
mod tidy;

pub use fleet::{Fleet, Hold, Limits, Member};
pub use hand::Hand;
pub use limits::resolve;
pub use steps::{Counts, Halt, Outcome, Step, Steps};
pub use tidy::tidy;

use jiff::Timestamp;

use crate::api::Reason;
use crate::plan::step::NodeEdit;
use drain::after;

/// Takes a rollout a step further.
#[must_use]
pub fn advance(fleet: &Fleet<'_>) -> Steps {
    let mut steps = Steps::default();
    watch_newcomers(fleet, &mut steps);
    watch_launches(fleet, &mut steps);
    count(fleet, &mut steps);
    let halts = matches!(steps.outcome, Outcome::Halt(_));
    if !halts && done(fleet) {
        steps.outcome = Outcome::Done;
        return steps;
    }
    forget_other_rollouts(fleet, &mut steps);
    steps.actions.extend(welcome(&fleet.members, fleet.target, fleet.now));
    if halts {
        return steps;
    }
    work_on_nodes_in_hand(fleet, &mut steps);
    if fleet.stopping {
        if !fleet.members.iter().any(|member| member.in_hand(fleet.target)) {
            steps.outcome = Outcome::Idle;
        }
        return steps;
    }
    avoid_old_nodes(fleet, &mut steps);
    choose::next(fleet, &mut steps);
    waits_for_newcomers(fleet, &mut steps);
    steps
}

/// Finishes what is in hand and does nothing else, for as long as it is not known what the fleet should become.
#[must_use]
pub fn finish(fleet: &Fleet<'_>) -> Steps {
    let mut steps = Steps::default();
    work_on_nodes_in_hand(fleet, &mut steps);
    if !fleet.members.iter().any(|member| member.in_hand(fleet.target)) {
        steps.outcome = Outcome::Idle;
    }
    steps
}

/// A newcomer that is not Ready in time means that the target does not work (promise P4). One that ends before, be it
/// terminated by a health check, hands its time on to the next: else a bad image would be tried without end.
fn watch_newcomers(fleet: &Fleet<'_>, steps: &mut Steps) {
    let mut lost = fleet.lost().into_iter();
    for member in fleet.newcomers() {
        let known = fleet.joining.get(member.id()).copied();
        let since = known.or_else(|| Some(lost.next()?.1)).unwrap_or(fleet.now);
        steps.joining.insert(member.id().to_owned(), since);
        let until = after(since, fleet.limits.ready_timeout);
        if fleet.now < until {
            steps.again(until);
            continue;
        }
        steps.counts.failed += 1;
        if steps.outcome == Outcome::Going {
            let node = match member.node {
                Some(node) => format!("node {} is not Ready", node.name),
                None => format!("no node registered ({})", member.instance.lifecycle_state),
            };
            steps.outcome = Outcome::Halt(Halt {
                reason: Reason::NodeNeverReady,
                message: format!(
                    "{} of the new version was not Ready within {:#}: {node}",
                    member.id(),
                    fleet.limits.ready_timeout
                ),
                instance: Some(member.id().to_owned()),
            });
        }
    }
    let gap = fleet.short() > 0 || fleet.members.iter().any(Member::leaving);
    let waiting = lost.filter(|_| gap).map(|(id, since)| (id.to_owned(), since));
    steps.joining.extend(waiting);
}

/// Instances that do not come at all mean the same. Not while somebody suspended launches: then it says nothing.
fn watch_launches(fleet: &Fleet<'_>, steps: &mut Steps) {
    if fleet.short() == 0 || !fleet.suspended.is_empty() {
        return;
    }
    let lost = fleet.lost().into_iter().next();
    let since = fleet.short_since.unwrap_or(fleet.now);
    let since = lost.map_or(since, |(_, lost_since)| since.min(lost_since));
    steps.short_since = Some(since);
    let until = after(since, fleet.limits.ready_timeout);
    if fleet.now < until {
        return steps.again(until);
    }
    if steps.outcome == Outcome::Going {
        let mut words = fleet.launch_failure.map_or_else(
            || "Auto Scaling gives no reason".to_owned(),
            |words| format!("Auto Scaling says: {words}"),
        );
        if let Some((id, _)) = lost {
            words = format!("{id} of the new version ended before it was Ready; {words}");
        }
        steps.outcome = Outcome::Halt(Halt {
            reason: Reason::LaunchFailed,
            message: format!("no instance came within {:#}; {words}", fleet.limits.ready_timeout),
            instance: None,
        });
    }
}

fn count(fleet: &Fleet<'_>, steps: &mut Steps) {
    let counts = &mut steps.counts;
    counts.total = fleet.desired;
    counts.updated = fleet.updated();
    counts.ready = fleet.members.iter().filter(|member| member.ready()).count();
    counts.draining = fleet
        .members
        .iter()
        .filter(|member| member.in_hand(fleet.target))
        .count();
}

/// All that is wanted is Ready on the target, nothing else is left (rule R7).
fn done(fleet: &Fleet<'_>) -> bool {
    fleet.old().next().is_none() && fleet.newcomers().next().is_none() && fleet.updated() == fleet.desired
}

/// Notes of a rollout that ended are taken back before this one begins.
fn forget_other_rollouts(fleet: &Fleet<'_>, steps: &mut Steps) {
    for member in fleet.members.iter().filter(|member| !member.leaving()) {
        if let Some(node) = member.node
            && node.record.as_ref().is_some_and(|record| record.target != fleet.target)
        {
            steps.edit(&node.name, member.id(), NodeEdit::Release { keep: None });
        }
    }
}

/// A new node that is Ready is noted as such, and kept from cluster-autoscaler while it is still empty. Also where a rollout
/// ends: what was Ready once is not taken back.
#[must_use]
pub fn welcome(members: &[Member<'_>], target: &str, now: Timestamp) -> Vec<Step> {
    let fresh = members.iter().filter(|member| member.on_target && member.ready());
    let fresh = fresh.filter(|member| member.record(target).is_none());
    fresh
        .filter_map(|member| {
            Some(Step::Edit {
                node: member.node?.name.clone(),
                instance: member.id().to_owned(),
                edit: NodeEdit::Join {
                    target: target.to_owned(),
                    since: drain::seconds(now),
                },
            })
        })
        .collect()
}

/// Drains what was taken, terminates what is drained, gives up what takes too long.
fn work_on_nodes_in_hand(fleet: &Fleet<'_>, steps: &mut Steps) {
    for member in fleet.members.iter().filter(|member| member.in_hand(fleet.target)) {
        let Some(record) = member.record(fleet.target) else {
            continue;
        };
        let until = after(record.since, fleet.limits.drain_timeout);
        let suspended = !fleet.suspended.is_empty();
        match hand::work(member, until, &fleet.limits, fleet.now, steps) {
            Hand::Drained if !suspended => steps.actions.push(Step::Terminate {
                instance: member.id().to_owned(),
            }),
            Hand::Drained if fleet.now < until => {
                steps.again(until);
                choose::launches_suspended(fleet, steps);
            }
            Hand::Drained => {
                let why = "launches are suspended".to_owned();
                hand::give_up(member, fleet.target, &fleet.limits, fleet.now, &why, steps);
            }
            Hand::Going => {}
            Hand::Late(why) => hand::give_up(member, fleet.target, &fleet.limits, fleet.now, &why, steps),
        }
    }
}

/// Once the target has shown that it works, pods had better not move to nodes that go later.
fn avoid_old_nodes(fleet: &Fleet<'_>, steps: &mut Steps) {
    if fleet.updated() == 0 {
        return;
    }
    for member in fleet.old().filter(|member| !member.in_hand(fleet.target)) {
        if let Some(node) = member.node.filter(|node| !node.avoided) {
            steps.edit(&node.name, member.id(), NodeEdit::Avoid);
        }
    }
}

/// Says what is still to come when nothing else can be done.
fn waits_for_newcomers(fleet: &Fleet<'_>, steps: &mut Steps) {
    let newcomers: Vec<&str> = fleet.newcomers().map(Member::id).collect();
    if let Some(first) = newcomers.first() {
        let until = steps
            .joining
            .get(*first)
            .map(|since| after(*since, fleet.limits.ready_timeout));
        let others = match newcomers.len() {
            1 => " is".to_owned(),
            more => format!(" and {} more are", more - 1),
        };
        steps.wait(
            Reason::NodesNotReady,
            format!("waits until the new instance {first}{others} Ready"),
            until,
        );
    }
    let mut lost = fleet
        .members
        .iter()
        .filter(|member| member.on_target && !member.leaving() && !member.ready() && fleet.served(member));
    if let Some(first) = lost.next() {
        steps.wait(
            Reason::NodesNotReady,
            format!(
                "waits until {}, which was Ready before, is Ready again or terminated",
                first.id()
            ),
            None,
        );
    }
    let short = fleet.short();
    if short > 0 && fleet.suspended.is_empty() {
        let words = fleet
            .launch_failure
            .map(|words| format!("; Auto Scaling says: {words}"))
            .unwrap_or_default();
        let until = steps.short_since.map(|since| after(since, fleet.limits.ready_timeout));
        steps.wait(
            Reason::NodesNotReady,
            format!("waits for {short} new {}{words}", instances(short)),
            until,
        );
    }
    let leaving = fleet.members.iter().filter(|member| member.leaving()).count();
    if leaving > 0 && steps.waits.is_empty() {
        steps.wait(
            Reason::NodesNotReady,
            format!("waits until {leaving} terminating {} gone", instances_are(leaving)),
            None,
        );
    }
}

fn instances(count: usize) -> &'static str {
    if count == 1 { "instance" } else { "instances" }
}

fn instances_are(count: usize) -> &'static str {
    if count == 1 { "instance is" } else { "instances are" }
}
