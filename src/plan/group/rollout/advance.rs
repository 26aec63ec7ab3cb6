//! A rollout's next step, told to the group: effects, progress, waits, Events.
//!
//! Owns the way from the group to a [`Fleet`] and from [`Steps`] to the plan. Must not choose nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::instance_group::{CurrentState, JoiningInstance, RolloutRecord, RolloutResult};
use crate::api::upgrade_request::NodeCounts;
use crate::api::{ConditionType, Reason, find_condition};
use crate::plan::facts::{AutoScalingGroup, LaunchTemplate};
use crate::plan::group::draft::Draft;
use crate::plan::group::turn::hold;
use crate::plan::group::{Standing, creation, requests};
use crate::plan::rollout::drain::seconds;
use crate::plan::rollout::{self, Counts, Fleet, Hold, Outcome, Step, Steps, resolve};
use crate::plan::step::{Action, NodeEdit};

use super::{Rollout, complete, end, launched, members, resume, version, zones_left};

/// Auto Scaling's process that would move instances between zones in the middle of a rollout, without a drain.
const REBALANCE: &str = "AZRebalance";
/// Auto Scaling's processes without which a terminated node would not be replaced.
const NEEDED: [&str; 2] = ["Launch", "Terminate"];

/// Takes a rollout a step further.
pub fn advance(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout) {
    let Some(template) = standing.template.found().filter(|template| template.complete) else {
        return creation::waits_for_versions(draft);
    };
    let Some(version) = rollout.version(template) else {
        // Asked to stop before anything was touched: nothing is made any more.
        if rollout.stopping(standing) {
            return stopped(draft, rollout);
        }
        return version::make(draft, standing, rollout, template);
    };
    note_who_is_there(draft, standing, version);
    let record = draft.status.rollout.clone().unwrap_or_default();
    if let Err(problem) = zones_left(draft, standing, rollout) {
        // Which nodes have to go is not known: those in hand are finished, and nothing else follows.
        let steps = look(draft, standing, rollout, version, &record, None, rollout::finish);
        if rollout.stopping(standing) && steps.outcome == Outcome::Idle {
            return stopped(draft, rollout);
        }
        draft.obstacle(&problem);
        return carry_out(draft, standing, steps);
    }
    if !rollout.stopping(standing) && has_to_hold_still(standing, rollout) {
        return hold_still(draft, standing);
    }
    let urgent = rollout.request.as_ref().is_some_and(|request| request.spec.urgent);
    let hold = hold(draft, standing, urgent, true);
    let mut steps = look(draft, standing, rollout, version, &record, hold, rollout::advance);
    remember(draft, &steps, version);
    let outcome = std::mem::take(&mut steps.outcome);
    if matches!(outcome, Outcome::Halt(_) | Outcome::Idle) {
        // What became Ready just now is noted before anything is taken back.
        let notes = std::mem::take(&mut steps.actions);
        for step in notes {
            draft.act(action(step, &standing.scaling_group.name));
        }
    }
    match outcome {
        Outcome::Done => return done(draft, standing, rollout, template, version),
        Outcome::Halt(halt) => {
            let message = format!("{}; new nodes boot what was approved before", halt.message);
            return end(
                draft,
                RolloutResult::Failed,
                halt.reason.as_str(),
                &message,
                halt.instance,
            );
        }
        Outcome::Idle => return stopped(draft, rollout),
        Outcome::Going => {}
    }
    tell(draft, rollout, &steps, rollout.stopping(standing));
    carry_out(draft, standing, steps);
}

/// Notes which instances run the target's version already, until the first look at the rollout is over.
fn note_who_is_there(draft: &mut Draft<'_>, standing: &Standing<'_>, version: i64) {
    let Some(record) = draft.status.rollout.as_mut().filter(|record| record.progress.is_none()) else {
        return;
    };
    let instances = standing.scaling_group.instances.iter();
    let there = instances.filter(|instance| launched(standing, instance, version));
    record.present_at_start = there.map(|instance| instance.id.clone()).collect();
}

/// What the rollout rules make of the group.
fn look(
    draft: &Draft<'_>,
    standing: &Standing<'_>,
    rollout: &Rollout,
    version: i64,
    record: &RolloutRecord,
    hold: Option<Hold>,
    rules: fn(&Fleet<'_>) -> Steps,
) -> Steps {
    let group = standing.scaling_group;
    let desired = usize::try_from(group.desired_capacity).unwrap_or_default();
    let strategy = draft.observed.group.spec.strategy.as_ref();
    let resolved = resolve(strategy.and_then(|strategy| strategy.rolling_update.as_ref()), desired);
    let target = rollout.key();
    let joining: BTreeMap<String, Timestamp> = record
        .joining
        .iter()
        .map(|joining| (joining.instance_id.clone(), joining.since.0))
        .collect();
    let fleet = Fleet {
        now: draft.now(),
        target: &target,
        desired,
        members: members(draft, standing, Some((rollout, version))),
        limits: resolved.limits,
        hold,
        stopping: rollout.stopping(standing),
        suspended: NEEDED
            .into_iter()
            .filter(|process| group.suspended_processes.contains(*process))
            .collect(),
        refuge: draft.observed.refuge,
        joining,
        present: record.present_at_start.iter().map(String::as_str).collect(),
        short_since: record.short_since.as_ref().map(|time| time.0),
        launch_failure: draft
            .observed
            .failed_activity
            .as_ref()
            .map(|activity| activity.message.as_str()),
    };
    let mut steps = rules(&fleet);
    // Said once, at the start.
    let starts = record.progress.is_none() && steps.outcome == Outcome::Going;
    if let Some(warning) = resolved.warning.filter(|_| starts) {
        steps.warnings.push(("StrategyAdjusted", warning));
    }
    steps
}

/// Keeps what must outlive a restart.
fn remember(draft: &mut Draft<'_>, steps: &Steps, version: i64) {
    let Some(record) = &mut draft.status.rollout else {
        return;
    };
    record.launch_template_version = Some(version.to_string());
    record.progress = Some(progress(steps.counts));
    record.joining = steps
        .joining
        .iter()
        .map(|(instance, since)| JoiningInstance {
            instance_id: instance.clone(),
            since: Time(seconds(*since)),
        })
        .collect();
    record.short_since = steps.short_since.map(|since| Time(seconds(since)));
}

fn progress(counts: Counts) -> String {
    format!("{}/{}", counts.updated, counts.total)
}

/// The end, once nothing of the rollout is left at the Auto Scaling group.
fn done(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout, template: &LaunchTemplate, version: i64) {
    let total = standing.scaling_group.desired_capacity;
    let message = format!("all {total} nodes run image {}", rollout.image_id);
    draft.condition(ConditionType::Progressing, true, Reason::RollingOut, &message);
    draft.headline(CurrentState::InitUpgrade, Reason::RollingOut, &message);
    if resume(draft, standing) {
        complete::complete(draft, standing, rollout, template, version);
    }
}

/// Asked to stop, and no node is in hand any more.
fn stopped(draft: &mut Draft<'_>, rollout: &Rollout) {
    if rollout.request.is_some() {
        let message = "cancelled; nodes replaced so far stay, new nodes boot what was approved before";
        end(
            draft,
            RolloutResult::Cancelled,
            Reason::Cancelled.as_str(),
            message,
            None,
        );
    } else {
        let message = "the group was locked during a rollout: stopped; the rest waits for a request";
        end(
            draft,
            RolloutResult::Locked,
            Reason::RolloutLocked.as_str(),
            message,
            None,
        );
    }
}

/// Shows how far it is and what it waits for.
fn tell(draft: &mut Draft<'_>, rollout: &Rollout, steps: &Steps, stopping: bool) {
    let counts = steps.counts;
    let mut message = format!(
        "{} of {} nodes run image {}",
        counts.updated, counts.total, rollout.image_id
    );
    if counts.draining > 0 {
        message = format!("{message}, {} in hand", counts.draining);
    }
    if stopping {
        message = format!("{message}; asked to stop, it ends when no node is in hand any more");
    }
    if let Some(wait) = steps.waits.first() {
        message = format!("{message}; {}", wait.message);
    }
    draft.condition(ConditionType::Progressing, true, Reason::RollingOut, &message);
    draft.headline(CurrentState::InitUpgrade, Reason::RollingOut, &message);
    // With no node in hand, a pod that is waited for is one that keeps a node from being begun.
    let blocks = |reason| blocks(reason) || (reason == Reason::PodEnding && counts.draining == 0);
    let blocked = steps.waits.iter().find(|wait| blocks(wait.reason));
    if let Some(wait) = blocked {
        let known = draft.observed.group.status.as_ref().is_some_and(|status| {
            find_condition(&status.conditions, ConditionType::Blocked)
                .is_some_and(|condition| condition.reason == wait.reason.as_str())
        });
        if !known {
            draft.notice(true, "RolloutBlocked", wait.message.clone());
        }
        draft.condition(ConditionType::Blocked, true, wait.reason, &wait.message);
    }
    let shown = NodeCounts {
        total: number(counts.total),
        updated: number(counts.updated),
        ready: number(counts.ready),
        draining: number(counts.draining),
        failed: number(counts.failed),
    };
    let wait = blocked.or(steps.waits.first());
    requests::progress(
        draft,
        rollout.request.as_ref(),
        &progress(counts),
        shown,
        &message,
        wait,
    );
}

fn number(count: usize) -> Option<i64> {
    i64::try_from(count).ok()
}

/// Whether a wait only ends when something outside changes.
fn blocks(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::PodDisruptionBudget
            | Reason::SeveralBudgets
            | Reason::BarePod
            | Reason::EvictionFailed
            | Reason::DrainGivenUp
            | Reason::BudgetSpent
            | Reason::LaunchSuspended
            | Reason::HostsOperator
            | Reason::InstanceInStandby
    )
}

/// Whether Auto Scaling moves no instances between zones by itself.
pub fn holds_still(group: &AutoScalingGroup) -> bool {
    group.suspended_processes.contains(REBALANCE)
}

/// Whether a subnet is still to leave the group: only once nothing else than the rollout empties its zone.
fn has_to_hold_still(standing: &Standing<'_>, rollout: &Rollout) -> bool {
    let Ok(ground) = &standing.ground else { return false };
    let group = standing.scaling_group;
    let wanted = |id: &String| ground.subnets.iter().any(|subnet| subnet.id == *id);
    let mut leaving = rollout.removed_subnets.intersection(&group.subnets);
    !holds_still(group) && leaving.any(|id| !wanted(id))
}

/// Has it hold still, before anything else of the rollout.
fn hold_still(draft: &mut Draft<'_>, standing: &Standing<'_>) {
    let message = "suspends AZRebalance before a subnet leaves the group";
    draft.condition(ConditionType::Progressing, true, Reason::RollingOut, message);
    draft.headline(CurrentState::InitUpgrade, Reason::RollingOut, message);
    if suspend_rebalancing(draft, standing.scaling_group) {
        draft.look_in(1);
    } else {
        draft.again();
    }
}

/// Suspends the rebalancing. That it is ours to resume is recorded a pass before, for whoever takes over; returns whether
/// it was.
fn suspend_rebalancing(draft: &mut Draft<'_>, group: &AutoScalingGroup) -> bool {
    let Some(record) = &mut draft.status.rollout else {
        return false;
    };
    if !record.suspended_processes.iter().any(|process| process == REBALANCE) {
        record.suspended_processes.push(REBALANCE.to_owned());
        return false;
    }
    draft.act(Action::SuspendProcess {
        group: group.name.clone(),
        process: REBALANCE.to_owned(),
    });
    true
}

/// Turns the steps into effects and Events.
fn carry_out(draft: &mut Draft<'_>, standing: &Standing<'_>, steps: Steps) {
    let group = standing.scaling_group;
    let takes = steps.actions.iter().any(|step| {
        matches!(
            step,
            Step::Terminate { .. }
                | Step::Edit {
                    edit: NodeEdit::Take { .. },
                    ..
                }
        )
    });
    for (reason, message) in &steps.warnings {
        draft.notice(true, reason, message.clone());
    }
    if takes && !holds_still(group) && !suspend_rebalancing(draft, group) {
        return draft.again();
    }
    events(draft, &steps);
    draft.waits_in_rollout(steps.waits);
    draft.look_at_pods(steps.look_at_pods);
    if let Some(at) = steps.look_at {
        draft.look_at(at);
    }
    if !steps.actions.is_empty() {
        draft.again();
    }
    for step in steps.actions {
        draft.act(action(step, &group.name));
    }
}

/// One Event a pass for all nodes of a kind.
fn events(draft: &mut Draft<'_>, steps: &Steps) {
    let names = |wanted: fn(&Step) -> bool| {
        let picked = steps.actions.iter().filter(|step| wanted(step)).map(|step| match step {
            Step::Edit { instance, node, .. } => format!("{node} ({instance})"),
            Step::Terminate { instance } => instance.clone(),
            Step::Evict { pod, .. } => pod.to_string(),
        });
        picked.collect::<Vec<_>>().join(", ")
    };
    let draining = names(|step| {
        matches!(
            step,
            Step::Edit {
                edit: NodeEdit::Take { .. },
                ..
            }
        )
    });
    if !draining.is_empty() {
        draft.notice(false, "NodesDraining", format!("cordons and drains {draining}"));
    }
    let terminated = names(|step| matches!(step, Step::Terminate { .. }));
    if !terminated.is_empty() {
        draft.notice(
            false,
            "NodesTerminated",
            format!("terminates {terminated}; Auto Scaling launches successors"),
        );
    }
}

/// The effect of a step.
pub fn action(step: Step, group: &str) -> Action {
    match step {
        Step::Edit { node, instance, edit } => Action::EditNode {
            node,
            instance_id: instance,
            edit,
        },
        Step::Evict { node, pod } => Action::Evict { node, pod },
        Step::Terminate { instance } => Action::Terminate {
            group: group.to_owned(),
            instance_id: instance,
            shrink: false,
        },
    }
}
