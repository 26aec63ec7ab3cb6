//! Which nodes are taken next (rules R2 and R6).
//!
//! Owns order, budget, the first node's proof, and what keeps a node from being taken. Must not work on nodes that were
//! taken already.

use jiff::{SignedDuration, Timestamp};

use super::drain::{self, after};
use super::fleet::{Fleet, Hold, Member};
use super::hand;
use super::steps::{Step, Steps};
use crate::api::{NodeState, Reason};
use crate::plan::facts::Fact;
use crate::plan::step::NodeEdit;

/// How long a node rests after its drain was given up, unless the drain itself may not take as long.
const REST: SignedDuration = SignedDuration::from_mins(5);

/// Takes as many nodes as the budget allows, or says why none is taken.
pub fn next(fleet: &Fleet<'_>, steps: &mut Steps) {
    let mut candidates: Vec<&Member<'_>> = fleet.old().filter(|member| !member.in_hand(fleet.target)).collect();
    if candidates.is_empty() {
        return;
    }
    if let Some(hold) = &fleet.hold {
        return held(hold, steps);
    }
    if launches_suspended(fleet, steps) {
        return;
    }
    candidates.sort_by_key(|member| order(fleet, member));
    let proven = fleet.updated() > 0;
    if !proven && !alone(fleet) {
        return waits_for_proof(fleet, steps);
    }
    let limit = fleet.limits.max_unavailable;
    let mut unavailable = fleet.unavailable();
    let mut taken = 0;
    for member in candidates {
        if taken > 0 && !proven {
            break;
        }
        // One that is down already costs nothing more to take, as long as the others leave room for it (promise P3).
        let others = unavailable.saturating_sub(usize::from(!fleet.available(member)));
        if others >= limit {
            if taken == 0 && fleet.members.iter().all(|member| !member.in_hand(fleet.target)) {
                budget_spent(fleet, unavailable, steps);
            }
            break;
        }
        if take(fleet, member, steps) {
            taken += 1;
            unavailable = others + 1;
        }
    }
}

/// Nodes that are down first, then those that were not tried yet, then by id; the operator's own node last.
fn order(fleet: &Fleet<'_>, member: &Member<'_>) -> (bool, bool, Option<Timestamp>, String) {
    let gave_up = member
        .record(fleet.target)
        .filter(|record| record.state == NodeState::GaveUp)
        .map(|record| record.since);
    (member.hosts_operator, member.ready(), gave_up, member.id().to_owned())
}

/// Whether nothing of the target is on its way: the first node goes alone.
fn alone(fleet: &Fleet<'_>) -> bool {
    let in_hand = fleet.members.iter().any(|member| member.in_hand(fleet.target));
    let leaving = fleet.members.iter().any(Member::leaving);
    !in_hand && !leaving && fleet.newcomers().next().is_none() && fleet.short() == 0
}

/// Takes a node unless something stands in the way, which is then said.
pub(super) fn take(fleet: &Fleet<'_>, member: &Member<'_>, steps: &mut Steps) -> bool {
    if let Some((reason, message, until)) = unfit(fleet, member) {
        steps.wait(reason, message, until);
        return false;
    }
    let Some(node) = member.node else {
        // Nothing runs on an instance that never registered: there is nothing to drain.
        steps.actions.push(Step::Terminate {
            instance: member.id().to_owned(),
        });
        return true;
    };
    steps.look_at_pods.insert(node.name.clone());
    let Some(pods) = member.pods.and_then(Fact::found) else {
        hand::looks_for_pods(member, fleet.now, steps);
        // Its place is kept: no more nodes are looked at than could be taken.
        return true;
    };
    if let Some(obstacle) = drain::obstacle(pods, node.ready, &fleet.limits, fleet.now) {
        steps.wait(obstacle.reason, format!("{}: {}", node.name, obstacle.message), None);
        return false;
    }
    if let Some(pod) = drain::longer_grace(pods, &fleet.limits) {
        let message = format!(
            "pod {} may take {} s to end, longer than drainTimeout ({:#}): its drain may be given up",
            pod.id, pod.grace_seconds, fleet.limits.drain_timeout
        );
        steps.warnings.push(("GraceBeyondDrainTimeout", message));
    }
    let edit = NodeEdit::Take {
        target: fleet.target.to_owned(),
        since: drain::seconds(fleet.now),
    };
    steps.edit(&node.name, member.id(), edit);
    true
}

/// Why an instance cannot be taken now whatever runs on it.
fn unfit(fleet: &Fleet<'_>, member: &Member<'_>) -> Option<(Reason, String, Option<Timestamp>)> {
    let state = &member.instance.lifecycle_state;
    if member.in_standby() {
        let message = format!("{} is in {state}; put it back in service or terminate it", member.id());
        return Some((Reason::InstanceInStandby, message, None));
    }
    if !member.instance.in_service() {
        return Some((
            Reason::NodesNotReady,
            format!("{} is still starting ({state})", member.id()),
            None,
        ));
    }
    // A note of an earlier rollout goes first; it says what of the node is ours.
    if let Some(node) = member.node
        && node.record.as_ref().is_some_and(|record| record.target != fleet.target)
    {
        return Some((Reason::Draining, format!("lets go of {} first", node.name), None));
    }
    if member.hosts_operator && !fleet.refuge {
        let message = format!(
            "{} hosts this operator, and no other Ready node takes pods; add a node, or run the operator elsewhere",
            member.id()
        );
        return Some((Reason::HostsOperator, message, None));
    }
    let record = member.record(fleet.target)?;
    let rests = after(record.since, fleet.limits.drain_timeout.min(REST));
    (record.state == NodeState::GaveUp && fleet.now < rests).then(|| {
        let message = format!(
            "the drain of {} was given up and is tried again at {}; Event DrainGivenUp says what held it",
            member.id(),
            drain::seconds(rests)
        );
        (Reason::DrainGivenUp, message, Some(rests))
    })
}

/// Says that nobody would replace a taken node. Returns whether that is so.
pub fn launches_suspended(fleet: &Fleet<'_>, steps: &mut Steps) -> bool {
    if fleet.suspended.is_empty() {
        return false;
    }
    let message = format!(
        "the Auto Scaling group's process {} is suspended, so that a terminated node would not be replaced; resume it",
        fleet.suspended.join(" and ")
    );
    steps.wait(Reason::LaunchSuspended, message, None);
    true
}

fn held(hold: &Hold, steps: &mut Steps) {
    let message = format!("{hold}; no further node is taken");
    steps.wait(hold.reason(), message, hold.until());
}

/// Something of the target is on its way already; what exactly is said where it is waited for.
fn waits_for_proof(fleet: &Fleet<'_>, steps: &mut Steps) {
    if fleet.members.iter().any(Member::leaving) && fleet.newcomers().next().is_none() && fleet.short() == 0 {
        steps.wait(
            Reason::NodesNotReady,
            "waits until terminating instances are replaced: the first node of a new version goes alone".to_owned(),
            None,
        );
    }
}

/// Nodes that are down and that the rollout did not take itself leave no room.
pub(super) fn budget_spent(fleet: &Fleet<'_>, unavailable: usize, steps: &mut Steps) {
    let newcomers: Vec<&str> = fleet.newcomers().map(Member::id).collect();
    let down: Vec<&str> = fleet
        .members
        .iter()
        .filter(|member| !member.leaving() && !fleet.available(member))
        .map(Member::id)
        .filter(|id| !newcomers.contains(id))
        .take(5)
        .collect();
    if down.is_empty() {
        return;
    }
    let names = format!(" ({})", down.join(", "));
    steps.wait(
        Reason::BudgetSpent,
        format!(
            "{unavailable} of {} nodes are unavailable{names}, and maxUnavailable allows {}; waits until they are Ready or replaced",
            fleet.desired, fleet.limits.max_unavailable
        ),
        None,
    );
}
