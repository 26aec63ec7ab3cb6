//! The pollers of AWS, and what hands their changes on.
//!
//! Owns which change wakes which groups. Must not read AWS itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::tasks::{Tasks, endless, until};
use crate::aws::catalogue::ChangedImage;
use crate::aws::inventory::ChangedName;
use crate::cli::RunArguments;
use crate::controllers::instance_group::context::Context;
use crate::controllers::instance_group::followers::Followed;

/// Starts the pollers of AWS, and what hands their changes on.
pub fn spawn(tasks: &mut Tasks, context: &Arc<Context>, arguments: &RunArguments, stop: &CancellationToken) {
    let interval = arguments.aws_poll_interval;
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of groups", async move {
        shared.inventory.run_groups(interval, stopped.clone()).await;
        until(&stopped).await
    });
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of templates", async move {
        shared.inventory.run_templates(interval, stopped.clone()).await;
        until(&stopped).await
    });
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of images", async move {
        shared.catalogue.run(stopped.clone()).await;
        until(&stopped).await
    });
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of clusters", async move {
        shared.clusters.run(stopped.clone()).await;
        until(&stopped).await
    });
    tasks.spawn("troubles of the pollers", endless(watch_troubles(Arc::clone(context))));
    let shared = Arc::clone(context);
    let mut changes = context.inventory.watch_changes();
    tasks.spawn(
        "changes of groups",
        endless(async move {
            while let Some(change) = changes.next().await {
                shared.changed(&match change {
                    ChangedName::Group(name) => Followed::ScalingGroup(name),
                    ChangedName::Template(name) => Followed::Template(name),
                });
            }
        }),
    );
    let shared = Arc::clone(context);
    let mut changes = context.catalogue.watch_changes();
    tasks.spawn(
        "changes of images",
        endless(async move {
            while let Some(change) = changes.next().await {
                shared.changed(&match change {
                    ChangedImage::Parameter(name) => Followed::Parameter(name),
                    ChangedImage::Image(id) => Followed::Image(id),
                });
            }
        }),
    );
    let shared = Arc::clone(context);
    let mut changes = context.clusters.watch_changes();
    tasks.spawn(
        "changes of clusters",
        endless(async move {
            while let Some(name) = changes.next().await {
                shared.changed(&Followed::Cluster(name));
            }
        }),
    );
}

/// How often it is looked whether a poller began to fail, or works again. Only our own memory is read.
const TROUBLE_LOOK: Duration = Duration::from_secs(2);

/// Wakes groups when what they rest on can no longer be read, and when it can again: a group at rest has no other reason to
/// look, and would stay Ready while new images are missed.
async fn watch_troubles(context: Arc<Context>) {
    let mut before: BTreeSet<Option<String>> = BTreeSet::new();
    let mut ticks = tokio::time::interval(TROUBLE_LOOK);
    loop {
        ticks.tick().await;
        let now = troubled(&context);
        for changed in before.symmetric_difference(&now) {
            match changed {
                Some(parameter) => context.changed(&Followed::Parameter(parameter.clone())),
                None => context.wake_all(),
            }
        }
        before = now;
    }
}

/// What fails now: parameters by name, `None` for the inventory.
fn troubled(context: &Context) -> BTreeSet<Option<String>> {
    let parameters = context
        .followers
        .all()
        .into_iter()
        .filter_map(|followed| match followed {
            Followed::Parameter(name) => Some(name),
            _ => None,
        });
    let mut troubled: BTreeSet<Option<String>> = parameters
        .filter(|name| context.catalogue.parameter_failure(name).is_some())
        .map(Some)
        .collect();
    let polls = [context.inventory.groups_health(), context.inventory.templates_health()];
    if polls.iter().any(|health| health.failure.is_some()) {
        troubled.insert(None);
    }
    troubled
}
