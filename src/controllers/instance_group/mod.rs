//! The controller of instance groups: drift, requests, claims, rollouts, records.
//!
//! Owns the wiring: which changes wake which groups, and the four lines of a reconcile. Must not decide or write by itself.

pub mod apply;
pub mod context;
pub mod followers;
pub mod observe;
pub mod orphans;
pub mod standby;
pub mod status;
pub mod terminations;

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
use crate::clock;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::step::Wake;
use crate::plan::{Plan, plan_group};
use context::{Context, GuardedGroup};

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
    let mut observed = Box::pin(observe::observe(context, group)).await;
    let mut plan = plan_group(&observed);
    if plan.opens_request() {
        // What changes is shown against what is approved; only now is it worth a call.
        observe::add_approved_inputs(context, &mut observed).await;
        plan = plan_group(&observed);
    }
    let applied = apply::apply(context, group, &observed.requests, &plan.actions).await;
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

/// When to look again.
fn next_look(context: &Context, group: &InstanceGroup, plan: &Plan, failure: Option<&Failure>) -> Requeue {
    let key = format!("{}/{}", group.namespace().unwrap_or_default(), group.name_any());
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
