//! Watches and what they keep in memory.
//!
//! Owns one reflector for each kind that the product reads, trimmed to the fields used, and says which objects changed.
//! Must not decide who is woken by a change: callers map it.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Store, store};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

/// First pause after a failure of a watch.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
/// Longest pause: a CRD that appears, or an API server that is back, is noticed within seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A watch that failed and is taken up again says nothing by itself while nothing changes. Without another failure
/// for this long it stands: the longest pause, the time to connect, and some more.
const QUIET: Duration = Duration::from_secs(15);

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
    brief: bool,
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
            brief: false,
        }
    }

    /// One of many that come and go: that it follows is no news.
    #[must_use]
    pub fn brief(mut self) -> Self {
        self.brief = true;
        self
    }

    /// Follows the API server until the process ends; `touched` is called with each object that came, changed or went:
    /// for a change the store has it by then, while a list comes in it has not. `relisted` is called after each complete
    /// list, which the store then holds; objects may have gone in it unseen.
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
        let Self {
            writer,
            reporter,
            brief,
            ..
        } = self;
        let kind = K::kind(&()).into_owned();
        let events = reflector(writer, watcher(api, config).backoff(Pauses::default()).modify(trim));
        let mut events = std::pin::pin!(events.into_stream());
        // The store holds a complete list, and the watch goes on from there.
        let mut listed = false;
        let follows = || {
            let before = reporter.send_replace(WatchState::Following);
            match before {
                WatchState::Following => {}
                WatchState::Starting if brief => debug!(kind, "watch follows"),
                WatchState::Starting | WatchState::Failing(_) => info!(kind, "watch follows"),
            }
        };
        loop {
            let event = if listed && matches!(*reporter.borrow(), WatchState::Failing(_)) {
                timeout(QUIET, events.next()).await
            } else {
                Ok(events.next().await)
            };
            match event {
                Ok(None) => return,
                Ok(Some(Ok(Event::Init))) => listed = false,
                Ok(Some(Ok(Event::InitApply(object)))) => touched(&object, false),
                Ok(Some(Ok(Event::InitDone))) => {
                    listed = true;
                    follows();
                    relisted();
                }
                Ok(Some(Ok(Event::Apply(object)))) => {
                    follows();
                    touched(&object, false);
                }
                Ok(Some(Ok(Event::Delete(object)))) => {
                    follows();
                    touched(&object, true);
                }
                Ok(Some(Err(error))) => {
                    let reason = in_full(&error);
                    let now = WatchState::Failing(reason.clone());
                    if reporter.send_replace(now.clone()) == now {
                        debug!(kind, reason, "watch failed again");
                    } else {
                        warn!(kind, reason, "watch failed; it is tried again");
                    }
                }
                Err(_) => follows(),
            }
        }
    }
}

/// The pauses between attempts of one watch: doubling, and from the start again after some quiet.
#[derive(Debug, Default)]
struct Pauses {
    last: Option<(Instant, Duration)>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let pause = self
            .last
            .filter(|(failed, pause)| now - *failed < *pause + QUIET)
            .map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_PAUSE));
        self.last = Some((now, pause));
        Some(pause)
    }
}

impl Backoff for Pauses {
    // Called for whatever is no error, such as the start of the next attempt; that is no success yet.
    fn reset(&mut self) {}
}

/// An error with its causes: the outermost one alone may only say that a request failed.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_few_seconds_and_start_over_after_quiet() {
        let mut pauses = Pauses::default();
        let mut seen = Vec::new();
        for _ in 0..6 {
            let pause = pauses.next().unwrap();
            // What the watcher does before each attempt.
            pauses.reset();
            tokio::time::advance(pause).await;
            seen.push(pause.as_millis());
        }
        assert_eq!(seen, [800, 1600, 3200, 5000, 5000, 5000]);
        tokio::time::advance(QUIET + Duration::from_secs(1)).await;
        assert_eq!(pauses.next(), Some(FIRST_PAUSE));
    }

    #[test]
    fn an_error_is_told_with_its_cause() {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let error = kube::Error::Service(Box::new(refused));
        let told = in_full(&watcher::Error::InitialListFailed(error));
        assert!(told.contains("connection refused"), "{told}");
    }
}
