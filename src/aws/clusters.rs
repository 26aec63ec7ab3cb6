//! The EKS clusters of all groups.
//!
//! Owns what is known of each followed cluster: one `DescribeCluster` per cluster and interval. Must not decide
//! what a new version of a cluster means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, Stream};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::call::Service;
use super::changes::Changes;
use super::connection::Connection;
use super::error::failure;
use super::keeper::Keeper;
use crate::plan::facts::{Cluster, Fact, FailureClass};

/// Clusters described at the same time.
const AT_ONCE: usize = 4;

/// The clusters. Clones share everything.
#[derive(Clone)]
pub struct Clusters {
    shared: Arc<Shared>,
}

struct Shared {
    keeper: Keeper<Cluster>,
    followed: Mutex<BTreeSet<String>>,
    interval: Duration,
    newly_followed: Notify,
    changes: Arc<Changes<String>>,
}

impl Clusters {
    /// An empty store that reads each followed cluster once an interval.
    #[must_use]
    pub fn new(connection: &Connection, interval: Duration) -> Self {
        let connection = connection.clone();
        Self::with(interval, move |name| {
            let connection = connection.clone();
            async move { connection.cluster(&name).await }.boxed()
        })
    }

    fn with(
        interval: Duration,
        describe: impl Fn(String) -> BoxFuture<'static, Fact<Cluster>> + Send + Sync + 'static,
    ) -> Self {
        let changes = Arc::new(Changes::default());
        let publish = Arc::clone(&changes);
        let keeper = Keeper::new(
            AT_ONCE,
            interval,
            move |names| {
                let reads: Vec<_> = names
                    .into_iter()
                    .map(|name| describe(name.clone()).map(|fact| (name, fact)))
                    .collect();
                async move { join_all(reads).await.into_iter().collect::<BTreeMap<_, _>>() }.boxed()
            },
            move |name, _| publish.publish([name.to_owned()]),
        );
        let shared = Shared {
            keeper,
            followed: Mutex::default(),
            interval,
            newly_followed: Notify::new(),
            changes,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn followed(&self) -> BTreeSet<String> {
        self.shared
            .followed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Says which clusters to follow: these and no others. New ones are read at once.
    pub fn follow(&self, names: BTreeSet<String>) {
        *self.shared.followed.lock().unwrap_or_else(PoisonError::into_inner) = names;
        self.shared.newly_followed.notify_one();
    }

    /// A cluster by name: what is known of it, also if the last read failed; reads it now if nothing is known.
    pub async fn cluster(&self, name: &str) -> Fact<Cluster> {
        let followed = self.followed().contains(name);
        self.shared.keeper.get(name, followed).await.unwrap_or_else(|| {
            let message = "the read was cut short";
            Fact::Unknown(failure(
                Service::Eks,
                "DescribeCluster",
                FailureClass::Unavailable,
                None,
                message,
            ))
        })
    }

    /// Refreshes the followed clusters until cancelled.
    pub async fn run(&self, cancel: CancellationToken) {
        let interval = self.shared.interval;
        // The first round comes with the first that is followed.
        let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let refresh = tokio::select! {
                () = cancel.cancelled() => return,
                _ = ticks.tick() => true,
                () = self.shared.newly_followed.notified() => false,
            };
            let followed = self.followed();
            let read = async {
                if refresh {
                    self.shared.keeper.refresh(followed.clone()).await;
                    self.shared.keeper.retain(&followed);
                } else {
                    self.shared.keeper.fill(followed).await;
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = read => {}
            }
        }
    }

    /// A stream of the names of clusters that change from now on.
    pub fn watch_changes(&self) -> impl Stream<Item = String> + Send + Unpin + use<> {
        self.shared.changes.follow()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt as _;
    use pretty_assertions::assert_eq;

    use super::*;

    fn cluster(version: &str) -> Cluster {
        Cluster {
            name: "c".into(),
            kubernetes_version: version.into(),
            endpoint: String::new(),
            certificate_authority: String::new(),
            service_cidr: String::new(),
            vpc_id: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_an_interval_and_one_change() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let clusters = Clusters::with(Duration::from_mins(5), move |_| {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Fact::Found(cluster(if call < 2 { "1.33" } else { "1.34" }))).boxed()
        });
        let mut changes = clusters.watch_changes();
        clusters.follow(["c".to_owned()].into());
        let cancel = CancellationToken::new();
        let running = clusters.clone();
        let task = tokio::spawn({
            let cancel = cancel.clone();
            async move { running.run(cancel).await }
        });
        assert_eq!(changes.next().await.as_deref(), Some("c"));
        for _ in 0..10 {
            assert_eq!(clusters.cluster("c").await, Fact::Found(cluster("1.33")));
        }
        assert_eq!(changes.next().await.as_deref(), Some("c"));
        assert_eq!(clusters.cluster("c").await, Fact::Found(cluster("1.34")));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        cancel.cancel();
        task.await.unwrap();
    }
}
