//! The pollers of AWS and of our admission policies, and what hands their changes on.
//!
//! Owns which change wakes which groups. Must not read AWS itself.

use std::collections::{BTreeMap, BTreeSet};
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
use crate::plan::facts::FailureClass;

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
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("looks at admission policies", async move {
        shared.vouching.run(stopped.clone()).await;
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
    let mut before = Troubles::new();
    let mut ticks = tokio::time::interval(TROUBLE_LOOK);
    loop {
        ticks.tick().await;
        let now = troubled(&context);
        for changed in changed(&before, &now) {
            match changed {
                Some(parameter) => context.changed(&Followed::Parameter(parameter.clone())),
                None => context.wake_all(),
            }
        }
        before = now;
    }
}

/// What fails now, and how: parameters by name, `None` for the inventory.
type Troubles = BTreeMap<Option<String>, FailureClass>;

/// What began to fail, fails in another way, or works again.
fn changed<'a>(before: &'a Troubles, now: &'a Troubles) -> BTreeSet<&'a Option<String>> {
    let all = before.keys().chain(now.keys());
    all.filter(|what| before.get(*what) != now.get(*what)).collect()
}

fn troubled(context: &Context) -> Troubles {
    let followed = context.followers.all().into_iter();
    let parameters = followed.filter_map(|followed| match followed {
        Followed::Parameter(name) => Some(name),
        _ => None,
    });
    let mut troubled: Troubles = parameters
        .filter_map(|name| {
            let failure = context.catalogue.parameter_failure(&name)?;
            Some((Some(name), failure.class))
        })
        .collect();
    let polls = [context.inventory.groups_health(), context.inventory.templates_health()];
    if let Some(failure) = polls.into_iter().find_map(|health| health.failure) {
        troubled.insert(None, failure.class);
    }
    troubled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_another_kind_is_news_as_well() {
        let troubles = |class: Option<FailureClass>| class.map(|class| (None, class)).into_iter().collect::<Troubles>();
        let (none, denied) = (troubles(None), troubles(Some(FailureClass::Denied)));
        let unavailable = troubles(Some(FailureClass::Unavailable));
        assert!(changed(&denied, &denied).is_empty() && changed(&none, &none).is_empty());
        for (before, now) in [(&none, &denied), (&denied, &none), (&denied, &unavailable)] {
            assert_eq!(changed(before, now).len(), 1);
        }
    }
}
