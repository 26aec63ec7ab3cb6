//! The controller that approves requests by schedule.
//!
//! Owns the wiring: which changes wake which requests, and the steps of a reconcile. It talks to the other controllers
//! through objects only, and can be left out: then a person, or a program of theirs, decides. Must not decide by itself;
//! `plan::approval` does.

pub mod apply;
pub mod context;
pub mod observe;
pub mod soak;
pub mod status;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use kube::ResourceExt;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Config, applier};
use tracing::{Instrument, debug, info_span, warn};

use crate::cluster::stores::find;
use crate::controllers::instance_group::context::GuardedRequest;
use crate::plan::approval::{self, Answer};
use crate::plan::facts::{Failure, FailureClass};
use context::Context;

/// Name of the controller in flags, metrics and Events.
pub const NAME: &str = "auto-approver";

/// How often a request is looked at without any event.
const RESYNC: Duration = Duration::from_hours(10);

/// How soon it is looked again whether AWS's clock is known.
const CLOCK_LOOK: Duration = Duration::from_secs(1);

/// Runs until `stop` ends and what is under way is finished.
pub async fn run(
    context: Arc<Context>,
    wakes: UnboundedReceiver<ObjectRef<GuardedRequest>>,
    workers: u16,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let queue = wakes.map(Ok::<_, std::convert::Infallible>).take_until(Box::pin(stop));
    let store = context.requests.clone();
    let results = applier(
        |request, context| Box::pin(reconcile(request, context)),
        |_, failure: &Failure, _| {
            debug!(%failure, "reconcile failed");
            Requeue::requeue(Duration::from_secs(5))
        },
        context,
        store,
        queue,
        Config::default().concurrency(workers),
    );
    let mut results = std::pin::pin!(results);
    while let Some(result) = results.next().await {
        if let Err(error) = result {
            debug!(%error, "reconcile ended without a result");
        }
    }
}

/// One look at one request: observe, plan, apply, report.
async fn reconcile(guarded: Arc<GuardedRequest>, context: Arc<Context>) -> Result<Requeue, Failure> {
    let Ok(request) = &guarded.0 else {
        return Ok(Requeue::await_change());
    };
    let span = info_span!(
        "reconcile",
        controller = NAME,
        namespace = request.namespace(),
        request = request.name_any(),
    );
    let timer = context.metrics.start();
    let result = look(&context, request).instrument(span).await;
    let failure = result.as_ref().err();
    timer.done(failure.map(|failure| failure.class));
    let key = format!("{}/{}", request.namespace().unwrap_or_default(), request.name_any());
    match result {
        Ok(requeue) => {
            context.backoff.rested(&key);
            Ok(requeue)
        }
        // What somebody else wrote comes back by the watch; the pause is for the case that it does not.
        Err(failure) if failure.class == FailureClass::NotLeading => Ok(Requeue::await_change()),
        Err(failure) => {
            let pause = context.backoff.failed(&key, failure.class);
            if failure.class == FailureClass::Busy {
                debug!(%failure, ?pause, "somebody wrote in between; looked at again");
            } else {
                warn!(request = key, %failure, ?pause, "tried again after the pause");
            }
            Ok(Requeue::requeue(pause))
        }
    }
}

async fn look(context: &Context, request: &crate::api::InstanceGroupUpgradeRequest) -> Result<Requeue, Failure> {
    // Ages count by AWS's clock, and nobody knows yet how far ours is off.
    if !context.server_clock.is_known() {
        return Ok(Requeue::requeue(CLOCK_LOOK));
    }
    let Some(observed) = observe::observe(context, request) else {
        return Ok(Requeue::await_change());
    };
    let Some(verdict) = approval::verdict(&observed.question(request)) else {
        context.soaking.forget(request);
        return Ok(Requeue::await_change());
    };
    context.soaking.follow(request, &verdict.answer);
    if !context.goes_on() {
        return Ok(Requeue::await_change());
    }
    status::report(context, request, &verdict).await?;
    match verdict.answer {
        Answer::Approve(_) => {
            apply::approve(context, request, &verdict).await?;
            Ok(Requeue::await_change())
        }
        Answer::At(time) => {
            let wait = Duration::try_from(time.duration_since(observed.now)).unwrap_or_default();
            Ok(Requeue::requeue(wait.min(RESYNC)))
        }
        Answer::Waits(..) | Answer::Manual(..) => Ok(Requeue::requeue(RESYNC)),
    }
}

/// Wakes every request that may have something to decide.
pub fn wake_all(context: &Context) {
    for guarded in context.requests.state() {
        if let Ok(request) = &guarded.0
            && !request.is_terminal()
        {
            context
                .wakes
                .wake(&guarded.namespace().unwrap_or_default(), &guarded.name_any());
        }
    }
}

/// Wakes the open requests of a group, or of all groups of a namespace.
pub fn wake_requests_of(context: &Context, namespace: &str, group: Option<&str>) {
    for guarded in context.requests.state() {
        if let Ok(request) = &guarded.0
            && !request.is_terminal()
            && request.metadata.namespace.as_deref() == Some(namespace)
            && group.is_none_or(|group| request.spec.instance_group_ref.name == group)
        {
            context.wakes.wake(namespace, &guarded.name_any());
        }
    }
}

/// The group of a request, as watched.
fn group_of(context: &Context, request: &crate::api::InstanceGroupUpgradeRequest) -> Option<crate::api::InstanceGroup> {
    let namespace = request.namespace()?;
    let guarded = find(&context.groups, Some(&namespace), &request.spec.instance_group_ref.name)?;
    let group = guarded.0.as_ref().ok()?;
    request.is_about(group).then(|| group.clone())
}
