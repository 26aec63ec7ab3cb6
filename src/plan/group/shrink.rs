//! Nodes that go for good: the surplus of a lowered upper bound, and all of a group that is deleted.
//!
//! Owns that they are drained before (design section 2). Must not decide on sizes or on the order of a deletion.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::instance_group::CurrentState;
use crate::api::{InstanceGroup, Reason};
use crate::plan::facts::{AutoScalingGroup, Instance};
use crate::plan::rollout::drain::{after, seconds};
use crate::plan::rollout::scale_in::{SCALE_IN, scale_in};
use crate::plan::rollout::steps::Steps;
use crate::plan::rollout::{Fleet, Hand, Limits, Member, Step, hand, resolve};
use crate::plan::step::{Action, NodeEdit};
use crate::plan::wanted::Wanted;

use super::draft::Draft;

/// What the records of a deleted group's nodes name.
const DELETION: &str = "deletion";

/// Whether the sizes of the Auto Scaling group will be written. An upper bound below the size has AWS terminate what it
/// likes, and others change the size: that must be decided on what AWS says now.
#[must_use]
pub fn resizes(group: &InstanceGroup, scaling_group: &AutoScalingGroup) -> bool {
    Wanted::parse(group).is_ok_and(|wanted| {
        (wanted.min_size, wanted.max_size) != (scaling_group.min_size, scaling_group.max_size)
            || scaling_group.desired_capacity > wanted.max_size
    })
}

/// What the group's strategy allows.
fn limits(group: &InstanceGroup, size: i32) -> Limits {
    let strategy = group.spec.strategy.as_ref();
    let size = usize::try_from(size).unwrap_or_default();
    resolve(strategy.and_then(|strategy| strategy.rolling_update.as_ref()), size).limits
}

/// The instances with what is known of each.
fn members<'a>(draft: &Draft<'a>, scaling_group: &'a AutoScalingGroup) -> Vec<Member<'a>> {
    let observed = draft.observed;
    let member = |instance: &'a crate::plan::facts::Instance| {
        let node = observed.nodes.get(&instance.id);
        Member {
            instance,
            on_target: false,
            node,
            pods: observed.pods.get(&instance.id),
            hosts_operator: node.is_some_and(|node| Some(&node.name) == observed.own_node.as_ref()),
        }
    };
    scaling_group.instances.iter().map(member).collect()
}

/// The upper bound to have now. One below the number of instances has AWS terminate whatever it likes: as long as there are
/// more than wanted, the bound follows them down, so that nothing else makes the group grow again. Where a gap is about to
/// be filled, in a rollout or after a termination, it counts as filled.
pub fn upper_bound(scaling_group: &AutoScalingGroup, wanted: i32, rolls_out: bool) -> i32 {
    let standby = |instance: &&Instance| matches!(instance.lifecycle_state.as_str(), "Standby" | "EnteringStandby");
    let there = scaling_group
        .instances
        .iter()
        .filter(|instance| !standby(instance))
        .count();
    let there = i32::try_from(there).unwrap_or(i32::MAX);
    let desired = scaling_group.desired_capacity;
    wanted.max(if rolls_out { desired } else { desired.min(there) })
}

/// Drains and terminates what the group has above `max_size`, lowering its size with each.
pub fn surplus(draft: &mut Draft<'_>, scaling_group: &AutoScalingGroup, max_size: i32) {
    let surplus = usize::try_from(scaling_group.desired_capacity - max_size).unwrap_or_default();
    let fleet = Fleet {
        now: draft.now(),
        target: SCALE_IN,
        desired: usize::try_from(scaling_group.desired_capacity).unwrap_or_default(),
        members: members(draft, scaling_group),
        limits: limits(&draft.observed.group, scaling_group.desired_capacity),
        hold: None,
        stopping: false,
        suspended: Vec::new(),
        refuge: draft.observed.refuge,
        joining: BTreeMap::new(),
        present: BTreeSet::new(),
        short_since: None,
        launch_failure: None,
    };
    let steps = scale_in(&fleet, surplus);
    let message = format!(
        "maxSize is {max_size}, and the Auto Scaling group wants {} nodes: drains {surplus} of them first",
        scaling_group.desired_capacity
    );
    tell(
        draft,
        CurrentState::ReconcileModifying,
        Reason::ScalingIn,
        &message,
        &steps,
    );
    carry_out(draft, scaling_group, steps, true);
}

/// Drains the nodes of a group that is being deleted. Returns whether that is over: all are drained, or their time is up.
pub fn drained(draft: &mut Draft<'_>, scaling_group: &AutoScalingGroup) -> bool {
    let group = &draft.observed.group;
    let strategy = group.spec.strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    if rolling.and_then(|rolling| rolling.drain_on_delete) == Some(false) {
        return true;
    }
    let limits = limits(group, scaling_group.desired_capacity);
    let deleted_at = group
        .metadata
        .deletion_timestamp
        .as_ref()
        .map_or(draft.now(), |time| time.0);
    let until = after(deleted_at, limits.drain_timeout);
    if draft.now() >= until {
        return true;
    }
    let members = members(draft, scaling_group);
    let mut steps = Steps::default();
    let mut left = BTreeSet::new();
    for member in members.iter().filter(|member| !member.leaving()) {
        let Some(node) = member.node else { continue };
        if member.in_hand(DELETION) {
            if hand::work(member, until, &limits, draft.now(), &mut steps) == Hand::Drained {
                continue;
            }
        } else {
            let edit = NodeEdit::Take {
                target: DELETION.to_owned(),
                since: seconds(draft.now()),
            };
            steps.actions.push(Step::Edit {
                node: node.name.clone(),
                instance: member.id().to_owned(),
                edit,
            });
        }
        left.insert(node.name.clone());
    }
    if left.is_empty() {
        return true;
    }
    let message = format!(
        "drains {} nodes before they go, until {} at the latest",
        left.len(),
        seconds(until)
    );
    tell(draft, CurrentState::Deleting, Reason::Deleting, &message, &steps);
    carry_out(draft, scaling_group, steps, false);
    draft.look_at(until);
    false
}

/// Says what goes on and what it waits for.
fn tell(draft: &mut Draft<'_>, state: CurrentState, reason: Reason, message: &str, steps: &Steps) {
    let message = match steps.waits.first() {
        Some(wait) => format!("{message}; {}", wait.message),
        None => message.to_owned(),
    };
    draft.headline(state, reason, &message);
}

fn carry_out(draft: &mut Draft<'_>, scaling_group: &AutoScalingGroup, steps: Steps, shrink: bool) {
    for (reason, message) in steps.warnings {
        draft.notice(true, reason, message);
    }
    draft.waits_in_rollout(steps.waits);
    draft.look_at_pods(steps.look_at_pods);
    if let Some(at) = steps.look_at {
        draft.look_at(at);
    }
    if !steps.actions.is_empty() {
        draft.again();
    }
    for step in steps.actions {
        draft.act(match step {
            Step::Edit { node, instance, edit } => Action::EditNode {
                node,
                instance_id: instance,
                edit,
            },
            Step::Evict { node, pod } => Action::Evict { node, pod },
            Step::Terminate { instance } => Action::Terminate {
                group: scaling_group.name.clone(),
                instance_id: instance,
                shrink,
            },
        });
    }
}
