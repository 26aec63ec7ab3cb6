//! The inventory: one shared snapshot of Auto Scaling groups and launch templates.
//!
//! Owns who reads AWS and when, so that no reconcile lists by itself: a poller per API, reads of single items
//! only where a reconcile needs a fresh fact or a write of ours made the snapshot dirty. Must not write and
//! must not decide. What it cannot vouch for is unknown, never absent.

mod groups;
mod poll;
mod reads;
mod templates;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, Stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::groups::GroupStore;
use self::reads::Reads;
use self::templates::TemplateStore;
use super::autoscaling::GROUPS_A_CALL;
use super::call::Service;
use super::changes::Changes;
use super::coalescer::{Coalescer, Join};
use super::connection::Connection;
use super::error::failure;
use super::ledger::WriteLedger;
use crate::plan::facts::{AutoScalingGroup, Fact, Failure, FailureClass, LaunchTemplate};

pub use self::poll::PollHealth;

/// How fresh a fact has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// What the last poll or read said, unless a write of ours came after it or it is older than three poll
    /// intervals.
    Snapshot,
    /// A read that starts after this question.
    Fresh,
}

/// What changed, by name; a follower looks again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedName {
    /// An Auto Scaling group: anything about it or its instances.
    Group(String),
    /// A launch template: its default version, or that it exists.
    Template(String),
}

/// The shared snapshot. Clones share everything.
#[derive(Clone)]
pub struct Inventory {
    shared: Arc<Shared>,
}

struct Shared {
    groups: Arc<GroupStore>,
    templates: TemplateStore,
    ledger: Arc<WriteLedger>,
    fresh_groups: Coalescer<String, Fact<AutoScalingGroup>>,
    changes: Arc<Changes<ChangedName>>,
    /// `None` until somebody said which clusters there are.
    clusters: watch::Sender<Option<BTreeSet<String>>>,
}

impl Inventory {
    /// An empty inventory. It learns of the connection's writes by itself.
    #[must_use]
    pub fn new(connection: &Connection) -> Self {
        Self::with(Arc::new(connection.clone()), Arc::clone(connection.ledger()))
    }

    fn with(reads: Arc<dyn Reads>, ledger: Arc<WriteLedger>) -> Self {
        let changes = Arc::new(Changes::default());
        let groups = Arc::new(GroupStore::new(
            Arc::clone(&reads),
            Arc::clone(&ledger),
            Arc::clone(&changes),
        ));
        let store = Arc::clone(&groups);
        let fresh_groups = Coalescer::new(GROUPS_A_CALL, move |names| {
            let store = Arc::clone(&store);
            async move { store.read(names).await }.boxed()
        });
        let templates = TemplateStore::new(reads, Arc::clone(&ledger), Arc::clone(&changes));
        Self {
            shared: Arc::new(Shared {
                groups,
                templates,
                ledger,
                fresh_groups,
                changes,
                clusters: watch::Sender::new(None),
            }),
        }
    }

    /// Says for which clusters to poll. With none, nothing is polled; a new one is polled for at once.
    pub fn set_cluster_names(&self, names: BTreeSet<String>) {
        self.shared.clusters.send_if_modified(|current| {
            let changed = current.as_ref() != Some(&names);
            *current = Some(names);
            changed
        });
    }

    /// Believes nothing that was read up to now: another process wrote to AWS. Polls at once, if there is anything to poll,
    /// and waits for that, but no longer than `patience`; what is not polled by then is read by name where it is asked for.
    pub async fn renew(&self, patience: Duration) {
        let since = self.shared.ledger.others_wrote();
        if self.shared.clusters.borrow().is_none() {
            return;
        }
        self.shared.clusters.send_modify(|_| {});
        let both = futures::future::join(
            self.shared.groups.polled_since(since),
            self.shared.templates.polled_since(since),
        );
        let _ = tokio::time::timeout(patience, both).await;
    }

    /// Polls the groups until cancelled. The first poll starts at once.
    pub async fn run_groups(&self, interval: Duration, cancel: CancellationToken) {
        let groups = &self.shared.groups;
        groups.set_interval(interval);
        let clusters = self.shared.clusters.subscribe();
        poll::run(interval, clusters, cancel, &**groups).await;
    }

    /// Polls the default template versions until cancelled. The first poll starts at once.
    pub async fn run_templates(&self, interval: Duration, cancel: CancellationToken) {
        let templates = &self.shared.templates;
        templates.set_interval(interval);
        let clusters = self.shared.clusters.subscribe();
        poll::run(interval, clusters, cancel, templates).await;
    }

    /// An Auto Scaling group by name. `NotFound` only on a read by name; the polled list is filtered by tags
    /// and proves nothing. Within a minute of our own create it is unknown (`Lagging`) instead.
    pub async fn group(&self, name: &str, freshness: Freshness) -> Fact<AutoScalingGroup> {
        if freshness == Freshness::Snapshot
            && let Some(fact) = self.shared.groups.snapshot(name)
        {
            return fact;
        }
        let answer = self.shared.fresh_groups.read(name.to_owned(), Join::Next).await;
        answer.unwrap_or_else(|| {
            let action = "DescribeAutoScalingGroups";
            let failure = failure(
                Service::AutoScaling,
                action,
                FailureClass::Unavailable,
                None,
                "the read was cut short",
            );
            Fact::Unknown(failure)
        })
    }

    /// A launch template by name. `complete` asks for all its versions, which costs a call of its own unless
    /// a complete list is kept from before.
    pub async fn template(&self, name: &str, freshness: Freshness, complete: bool) -> Fact<LaunchTemplate> {
        if freshness == Freshness::Snapshot
            && let Some(fact) = self.shared.templates.snapshot(name, complete)
        {
            return fact;
        }
        self.shared.templates.read(name).await
    }

    /// The name of the group that has this instance, from the snapshot.
    #[must_use]
    pub fn group_of_instance(&self, instance_id: &str) -> Option<String> {
        self.shared.groups.of_instance(instance_id)
    }

    /// A stream of what changes from now on. What the very first poll finds is no change.
    pub fn watch_changes(&self) -> impl Stream<Item = ChangedName> + Send + Unpin + use<> {
        self.shared.changes.follow()
    }

    /// How the polling of groups fares.
    #[must_use]
    pub fn groups_health(&self) -> PollHealth {
        self.shared.groups.health()
    }

    /// How the polling of templates fares.
    #[must_use]
    pub fn templates_health(&self) -> PollHealth {
        self.shared.templates.health()
    }

    /// Waits until both APIs were polled once, or were found to need no polling.
    pub async fn first_sync(&self) {
        self.shared.groups.synced().await;
        self.shared.templates.synced().await;
    }
}

/// The answer within a minute of our own create.
fn lagging(service: Service, action: &str, message: &str) -> Failure {
    failure(service, action, FailureClass::Lagging, None, message)
}
