//! The controller of instance groups: drift, requests, claims, rollouts, records.
//!
//! Owns the wiring: which changes wake which groups, and the four lines of a reconcile. Must not decide or write by itself.

pub mod answers;
pub mod apply;
pub mod context;
pub mod followers;
pub mod observe;
pub mod orphans;
pub mod slots;
pub mod standby;
pub mod status;
pub mod terminations;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use futures::{Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Config, applier};
use tracing::{Instrument, debug, info, info_span, warn};

use crate::api::instance_group::InstanceGroup;
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};
use crate::api::{ConditionType, Reason, find_condition};
use crate::clock;
use crate::cluster::stores::find;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::group::TARGET_REVERTED;
use crate::plan::step::{Action, Wake};
use crate::plan::{Observed, Plan, plan_group};
use context::{Context, GuardedGroup};
use followers::{Followed, GroupName};
use slots::OfSchedule;

/// Name of the controller in flags, metrics and Events.
pub const NAME: &str = "instance-group";

/// How often a group at rest is looked at without any event.
const RESYNC: Duration = Duration::from_hours(10);

/// Runs reconciles for every group that is woken, until `stop` ends and what is under way is finished.
pub async fn run(
    context: Arc<Context>,
    wakes: UnboundedReceiver<ObjectRef<GuardedGroup>>,
    workers: u16,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    fill_slots(&context);
    let queue = wakes.map(Ok::<_, std::convert::Infallible>).take_until(Box::pin(stop));
    let config = Config::default().concurrency(workers);
    let store = context.groups.clone();
    let results = applier(
        |group, context| Box::pin(reconcile(group, context)),
        |_, failure: &Failure, _| {
            debug!(%failure, "reconcile failed");
            Requeue::requeue(Duration::from_secs(5))
        },
        context,
        store,
        queue,
        config,
    );
    drain(results).await;
}

/// Counts nothing and decides nothing: a group that is gone by the time its turn comes is no error.
async fn drain<T, E: std::fmt::Display>(results: impl Stream<Item = Result<T, E>>) {
    let mut results = std::pin::pin!(results);
    while let Some(result) = results.next().await {
        if let Err(error) = result {
            debug!(%error, "reconcile ended without a result");
        }
    }
}

/// One look at one group: observe, plan, apply, report.
async fn reconcile(guarded: Arc<GuardedGroup>, context: Arc<Context>) -> Result<Requeue, Failure> {
    // One that cannot be read is told of where it is watched; all others go on.
    let Ok(group) = &guarded.0 else {
        return Ok(Requeue::await_change());
    };
    let Some(group) = context.own_groups.newer(Arc::new(group.clone())) else {
        return Ok(Requeue::await_change());
    };
    // Not `name`: in JSON that is the span's own.
    let span = info_span!(
        "reconcile",
        controller = NAME,
        namespace = group.namespace(),
        group = group.name_any(),
        generation = group.metadata.generation,
    );
    Ok(Box::pin(look(&context, &group).instrument(span)).await)
}

async fn look(context: &Context, group: &InstanceGroup) -> Requeue {
    let timer = context.metrics.start();
    let (mut observed, follows) = Box::pin(observe::observe(context, group)).await;
    let mut plan = plan_group(&observed);
    if plan.opens_request() {
        // What changes is shown against what is approved; only now is it worth a call.
        observe::add_approved_inputs(context, &mut observed).await;
        plan = plan_group(&observed);
    }
    follow(context, group, &plan, follows);
    count(context, group, &plan);
    let applied = apply::apply(context, group, &observed.requests, &plan.actions).await;
    keep_slot(context, group, &observed, &plan);
    if applied.cut_short {
        info!("asked to stop, or not leading any more: the rest is left to whoever leads next");
        return Requeue::await_change();
    }
    let reported = status::report(context, &plan, &applied).await;
    let failure = applied.failure.or(reported.err());
    if failure
        .as_ref()
        .is_some_and(|failure| failure.class == FailureClass::NotLeading)
    {
        info!("not leading any more: the status is left to whoever leads next");
        return Requeue::await_change();
    }
    let requeue = next_look(context, group, &plan, failure.as_ref());
    timer.done(failure.as_ref().map(|failure| failure.class));
    requeue
}

/// Says what the group waits for, so that it is woken by exactly that. A pod or a budget may change while the plan is carried
/// out, so it is said before.
fn follow(context: &Context, group: &InstanceGroup, plan: &Plan, mut follows: BTreeSet<Followed>) {
    let name = (group.namespace().unwrap_or_default(), group.name_any());
    let in_force = context.settings.now();
    let schedule = OfSchedule::from(context.schedule(&in_force, group));
    let slot = Followed::Slot(schedule.name.to_owned());
    let waited = context.followers.follows(&name, &slot);
    follows.extend(plan.look_at_pods.iter().cloned().map(Followed::Pods));
    if !plan.look_at_pods.is_empty() {
        follows.insert(Followed::Budgets);
    }
    let waits = plan.waits.iter().any(|wait| wait.reason == Reason::WaitsForSlot);
    if waits {
        follows.insert(slot);
    }
    context.follow(&name, follows);
    // One may have become free while this look did not follow it yet.
    if waits && context.slots.free(schedule) > 0 {
        context.wakes.wake(&name.0, &name.1);
    }
    // One that does not want its turn any more lets the next have it.
    if waited && !waits {
        context.slot_freed();
    }
}

/// Counts targets that went back to what runs while they waited, and groups that have waited for too long.
fn count(context: &Context, group: &InstanceGroup, plan: &Plan) {
    let late = find_condition(&plan.status.conditions, ConditionType::UpgradeOverdue).is_some();
    context.upgrades.overdue(&name_of(group), late);
    let flaps = plan.actions.iter().any(|action| match action {
        Action::MoveRequest(step) => step.status.superseded_by.as_deref() == Some(TARGET_REVERTED),
        _ => false,
    });
    if flaps {
        context.upgrades.flapped();
    }
}

/// Keeps the group's slot while it rolls out or is about to, and gives it back otherwise.
fn keep_slot(context: &Context, group: &InstanceGroup, observed: &Observed, plan: &Plan) {
    let name = (group.namespace().unwrap_or_default(), group.name_any());
    let about_to = plan.actions.iter().any(|action| match action {
        Action::TakeSlot => true,
        Action::MoveRequest(step) => step.status.phase == Some(Phase::InProgress),
        _ => false,
    });
    if about_to || plan.status.rollout.is_some() || rolls(&observed.requests) {
        if observed.slots.held || context.slots.holds(&name) || plan.status.rollout.is_some() {
            let in_force = context.settings.now();
            context.slots.rolls(&name, context.schedule(&in_force, group).into());
        }
    } else if context.slots.release(&name) {
        context.slot_freed();
    }
}

fn rolls(requests: &[InstanceGroupUpgradeRequest]) -> bool {
    requests.iter().any(|request| request.phase() == Phase::InProgress)
}

/// Fills the slots from what is being rolled out: no other group may start before that is known.
fn fill_slots(context: &Context) {
    let groups = context.groups.state();
    let rolling = groups.iter().filter_map(|guarded| guarded.0.as_ref().ok());
    let rolling = rolling.filter(|group| group.status.as_ref().is_some_and(|status| status.rollout.is_some()));
    let mut names: BTreeSet<GroupName> = rolling
        .map(|group| (group.namespace().unwrap_or_default(), group.name_any()))
        .collect();
    for guarded in context.requests.state() {
        if let Ok(request) = &guarded.0
            && request.phase() == Phase::InProgress
        {
            let group = request.spec.instance_group_ref.name.clone();
            names.insert((request.namespace().unwrap_or_default(), group));
        }
    }
    let in_force = context.settings.now();
    context
        .slots
        .allow(in_force.binding().and_then(|settings| settings.max_concurrent_rollouts));
    // A request whose group is gone rolls nothing.
    let held = names.into_iter().filter_map(|name| {
        let guarded = find(&context.groups, Some(&name.0), &name.1)?;
        let group = guarded.0.as_ref().ok();
        let schedule = group.and_then(|group| context.schedule(&in_force, group));
        Some((name, schedule.map(|schedule| schedule.name.clone()).unwrap_or_default()))
    });
    context.slots.fill(held);
}

/// A group's namespace and name.
fn name_of(group: &InstanceGroup) -> String {
    format!("{}/{}", group.namespace().unwrap_or_default(), group.name_any())
}

/// When to look again.
fn next_look(context: &Context, group: &InstanceGroup, plan: &Plan, failure: Option<&Failure>) -> Requeue {
    let key = name_of(group);
    if let Some(failure) = failure {
        let pause = context.backoff.failed(&key, failure.class);
        if failure.class == FailureClass::Busy {
            debug!(%failure, ?pause, "somebody wrote in between; planned again");
        } else {
            warn!(%failure, ?pause, "an effect failed; tried again after the pause");
        }
        return Requeue::requeue(pause);
    }
    if plan.actions.is_empty() {
        debug!(plan = %plan, "looked");
    } else {
        info!(state = plan.status.current_state, message = plan.status.message, "done");
    }
    match plan.wake {
        Wake::Now => {
            let pause = context.backoff.stepped(&key);
            if !pause.is_zero() {
                warn!(plan = %plan, "too many steps without a pause");
            }
            Requeue::requeue(pause)
        }
        Wake::At(time) => {
            context.backoff.rested(&key);
            let wait = Duration::try_from(time.duration_since(clock::now())).unwrap_or_default();
            Requeue::requeue(wait.min(RESYNC))
        }
        Wake::OnEvent => {
            context.backoff.rested(&key);
            Requeue::requeue(RESYNC)
        }
    }
}
