//! Watches and what they keep in memory.
//!
//! Owns one reflector for each kind that the product reads, trimmed to the fields used, and says which objects changed.
//! Must not decide who is woken by a change: callers map it.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Store, store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tracing::{info, warn};

/// How a watch is doing, for readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The first list is under way.
    Starting,
    /// The store is complete and follows.
    Following,
    /// The last attempt failed; it is tried again with growing pauses. Holds the reason.
    Failing(String),
}

/// One watched kind.
pub struct Watched<K: Resource<DynamicType = ()> + Clone + 'static> {
    /// What was seen.
    pub store: Store<K>,
    /// How the watch is doing.
    pub state: watch::Receiver<WatchState>,
    writer: Writer<K>,
    reporter: watch::Sender<WatchState>,
}

impl<K> Watched<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    /// A store that nothing fills yet.
    #[must_use]
    pub fn new() -> Self {
        let (store, writer) = store();
        let (reporter, state) = watch::channel(WatchState::Starting);
        Self {
            store,
            state,
            writer,
            reporter,
        }
    }

    /// Follows the API server until the process ends; `touched` is called with each object that came, changed or went,
    /// after the store has it, and `relisted` after each complete list, in which objects may have gone unseen.
    ///
    /// A kind that the API server does not know yet (its CRD is missing) is a failing watch, not a crash.
    pub async fn follow(
        self,
        api: Api<K>,
        config: watcher::Config,
        trim: fn(&mut K),
        touched: impl Fn(&K, bool) + Send,
        relisted: impl Fn() + Send,
    ) {
        let Self { writer, reporter, .. } = self;
        let kind = K::kind(&()).into_owned();
        let events = reflector(writer, watcher(api, config).default_backoff().modify(trim));
        let mut events = std::pin::pin!(events.into_stream());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => touched(&object, false),
                Ok(Event::Delete(object)) => touched(&object, true),
                Ok(Event::Init) => {}
                Ok(Event::InitDone) => {
                    info!(kind, "watch follows");
                    reporter.send_replace(WatchState::Following);
                    relisted();
                }
                Err(error) => {
                    let reason = error.to_string();
                    warn!(kind, %error, "watch failed; it is tried again");
                    reporter.send_replace(WatchState::Failing(reason));
                }
            }
        }
    }
}

impl<K> Default for Watched<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Hash + Eq + Clone,
{
    fn default() -> Self {
        Self::new()
    }
}

/// Drops what no decision reads and every object carries.
pub fn trim_metadata<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
}

/// The object in a store by namespace and name.
#[must_use]
pub fn find<K>(store: &Store<K>, namespace: Option<&str>, name: &str) -> Option<Arc<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let mut reference = reflector::ObjectRef::new(name);
    if let Some(namespace) = namespace {
        reference = reference.within(namespace);
    }
    store.get(&reference)
}
