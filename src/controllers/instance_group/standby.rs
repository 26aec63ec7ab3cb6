//! Standing by: what a process does until it leads.
//!
//! Owns staying warm. Watches run as ever; here each change only renews what a group follows by its own words, so that the
//! shared pollers know their names and the first poll as a leader can cover all groups in a few pages. Must not write, and
//! makes no call for a single group.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::context::{Context, GuardedGroup};
use super::followers::Followed;
use super::orphans;
use crate::api::instance_group::InstanceGroup;
use crate::cluster::stores::find;
use crate::plan::group::{scaling_group_name, template_name};

/// How long a new leader waits for its first poll of AWS. Then it looks at groups one by one, as after a start.
const FIRST_POLL: Duration = Duration::from_secs(5);

/// Waits until this process leads; `false` if it is asked to end before that. Takes the wakes meanwhile, which would only
/// pile up: who takes over looks at every group.
pub async fn until_leading(
    context: &Context,
    wakes: &mut UnboundedReceiver<ObjectRef<GuardedGroup>>,
    stop: &CancellationToken,
) -> bool {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            () = context.fence.opened() => return true,
            woken = wakes.next() => match woken {
                Some(group) => stay_warm(context, &group.namespace.unwrap_or_default(), &group.name),
                None => return false,
            },
        }
    }
}

/// Has every group looked at on what is true now: the one who led before wrote until a moment ago.
pub async fn take_over(context: &Context) {
    for group in context.groups.state() {
        stay_warm(context, &group.namespace().unwrap_or_default(), &group.name_any());
    }
    context.inventory.renew(FIRST_POLL).await;
    info!(groups = context.groups.state().len(), "takes over");
    context.wake_all();
    orphans::look_at_all(context);
}

fn stay_warm(context: &Context, namespace: &str, name: &str) {
    let guarded = find(&context.groups, Some(namespace), name);
    let group = guarded.as_ref().and_then(|guarded| guarded.0.as_ref().ok());
    let follows = group.map(named_by).unwrap_or_default();
    context.follow(&(namespace.to_owned(), name.to_owned()), follows);
}

/// What a group names itself.
fn named_by(group: &InstanceGroup) -> BTreeSet<Followed> {
    let status = group.status.as_ref();
    let image = status.and_then(|status| status.image.as_ref()?.current.clone());
    let cluster = group.spec.eks.as_ref();
    let cluster = cluster.and_then(|eks| eks.configuration.cluster_name.clone());
    [
        Some(Followed::Namespace(group.namespace().unwrap_or_default())),
        scaling_group_name(group).map(Followed::ScalingGroup),
        template_name(group).map(Followed::Template),
        cluster.map(Followed::Cluster),
        image.filter(|id| id.starts_with("ami-")).map(Followed::Image),
    ]
    .into_iter()
    .flatten()
    .collect()
}
