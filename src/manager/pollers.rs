//! The pollers of AWS, and what hands their changes on.
//!
//! Owns which change wakes which groups. Must not read AWS itself.

use std::sync::Arc;

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
