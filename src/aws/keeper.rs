//! The last known fact by name.
//!
//! Owns how facts that are followed for long are kept: what was known stays known when a later read fails, and
//! the failure is noted beside it. Must not decide what is followed or when it is refreshed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::coalescer::{Coalescer, Join};
use crate::plan::facts::{Fact, Failure, FailureClass};

/// A failure that may pass by itself is not tried again before this.
const RETRY: Duration = Duration::from_secs(30);

/// What the last read that succeeded said.
#[derive(Clone, PartialEq)]
enum Known<T> {
    /// None succeeded yet.
    Nothing,
    /// It exists.
    Found(T),
    /// It does not exist.
    Absent,
}

/// What is known of one name.
struct Kept<T> {
    known: Known<T>,
    /// The failure of the last read, if it failed.
    failure: Option<Failure>,
    /// When the last read ended.
    tried: Instant,
}

impl<T: Clone + PartialEq> Kept<T> {
    /// Takes over what a read said. Answers whether what is known changed.
    fn take(&mut self, fact: Fact<T>, now: Instant) -> bool {
        self.tried = now;
        let known = match fact {
            Fact::Found(value) => Known::Found(value),
            Fact::NotFound => Known::Absent,
            Fact::Unknown(failure) => {
                self.failure = Some(failure);
                return false;
            }
        };
        self.failure = None;
        let changed = self.known != known;
        self.known = known;
        changed
    }

    fn fact(&self) -> Option<Fact<T>> {
        match &self.known {
            Known::Found(value) => Some(Fact::Found(value.clone())),
            Known::Absent => Some(Fact::NotFound),
            Known::Nothing => self.failure.clone().map(Fact::Unknown),
        }
    }
}

type Facts<T> = BTreeMap<String, Fact<T>>;
type All<T> = Mutex<BTreeMap<String, Kept<T>>>;

fn lock<T>(all: &All<T>) -> MutexGuard<'_, BTreeMap<String, Kept<T>>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Facts by name, read in bundles, never twice at once for the same name.
pub(super) struct Keeper<T> {
    all: Arc<All<T>>,
    reads: Coalescer<String, Fact<T>>,
    interval: Duration,
}

impl<T: Clone + PartialEq + Send + Sync + 'static> Keeper<T> {
    /// `fetch` reads up to `batch` names in bundles; `changed` is told of every name of which something new is
    /// known, before anyone who waits for it gets the answer.
    pub(super) fn new(
        batch: usize,
        interval: Duration,
        fetch: impl Fn(Vec<String>) -> BoxFuture<'static, Facts<T>> + Send + Sync + 'static,
        changed: impl Fn(&str, &Fact<T>) + Send + Sync + 'static,
    ) -> Self {
        let all = Arc::new(All::default());
        let (fetch, changed) = (Arc::new(fetch), Arc::new(changed));
        let kept = Arc::clone(&all);
        let reads = Coalescer::new(batch, move |names| {
            let (kept, fetch, changed) = (Arc::clone(&kept), Arc::clone(&fetch), Arc::clone(&changed));
            async move {
                let answers = fetch(names).await;
                take_over(&kept, answers, &*changed)
            }
            .boxed()
        });
        Self { all, reads, interval }
    }

    /// What is known of a name; reads it now if nothing is. One that is not followed is read again once it is
    /// older than an interval.
    pub(super) async fn get(&self, name: &str, followed: bool) -> Option<Fact<T>> {
        if let Some(fact) = self.kept(name, followed) {
            return Some(fact);
        }
        self.reads.read(name.to_owned(), Join::InFlight).await
    }

    fn kept(&self, name: &str, followed: bool) -> Option<Fact<T>> {
        let all = lock(&self.all);
        let kept = all.get(name)?;
        let good_for = match (&kept.known, &kept.failure) {
            (Known::Nothing, Some(failure)) if !lasting(failure) => RETRY,
            (Known::Found(_) | Known::Absent, _) if followed => return kept.fact(),
            _ => self.interval,
        };
        if kept.tried.elapsed() < good_for {
            kept.fact()
        } else {
            None
        }
    }

    /// The failure of the last read of a name, if it failed.
    pub(super) fn failure(&self, name: &str) -> Option<Failure> {
        lock(&self.all).get(name)?.failure.clone()
    }

    /// Whether the last read of a name failed in a way that trying again in the same bundle would repeat.
    pub(super) fn refused(&self, name: &str) -> bool {
        self.failure(name).is_some_and(|failure| lasting(&failure))
    }

    /// Whether what was found of a name is such, without reading.
    pub(super) fn holds(&self, name: &str, such: impl FnOnce(&T) -> bool) -> bool {
        matches!(lock(&self.all).get(name), Some(Kept { known: Known::Found(value), .. }) if such(value))
    }

    /// What was found of a name, without reading.
    pub(super) fn found(&self, name: &str) -> Option<T> {
        match &lock(&self.all).get(name)?.known {
            Known::Found(value) => Some(value.clone()),
            Known::Nothing | Known::Absent => None,
        }
    }

    /// Reads all of these again.
    pub(super) async fn refresh(&self, names: BTreeSet<String>) {
        self.reads.read_all(names, Join::Next).await;
    }

    /// Reads those of which nothing is known and that were not just tried.
    pub(super) async fn fill(&self, names: BTreeSet<String>) {
        let unknown: Vec<String> = names
            .into_iter()
            .filter(|name| self.kept(name, true).is_none())
            .collect();
        self.reads.read_all(unknown, Join::InFlight).await;
    }

    /// Forgets all but these, and what was read within the last interval.
    pub(super) fn retain(&self, names: &BTreeSet<String>) {
        lock(&self.all).retain(|name, kept| names.contains(name) || kept.tried.elapsed() < self.interval);
    }
}

/// Whether a failure will not pass by itself: a missing permission, a malformed name.
fn lasting(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::Denied | FailureClass::Invalid)
}

/// Keeps the answers and turns each into what is known now.
fn take_over<T: Clone + PartialEq>(all: &All<T>, answers: Facts<T>, changed: &dyn Fn(&str, &Fact<T>)) -> Facts<T> {
    let now = Instant::now();
    answers
        .into_iter()
        .map(|(name, answer)| {
            let (known, news) = {
                let mut all = lock(all);
                let kept = all.entry(name.clone()).or_insert(Kept {
                    known: Known::Nothing,
                    failure: None,
                    tried: now,
                });
                let news = kept.take(answer.clone(), now);
                (kept.fact().unwrap_or(answer), news)
            };
            if news {
                changed(&name, &known);
            }
            (name, known)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn failure(class: FailureClass) -> Failure {
        Failure {
            class,
            action: "a:B".into(),
            code: None,
            message: String::new(),
        }
    }

    fn kept() -> Kept<u32> {
        Kept {
            known: Known::Nothing,
            failure: None,
            tried: Instant::now(),
        }
    }

    #[tokio::test]
    async fn a_failure_keeps_what_was_known() {
        let now = Instant::now();
        let mut kept = kept();
        assert!(kept.take(Fact::Found(1), now));
        assert!(!kept.take(Fact::Unknown(failure(FailureClass::Throttled)), now));
        assert_eq!((kept.fact(), kept.failure.is_some()), (Some(Fact::Found(1)), true));
        assert!(!kept.take(Fact::Found(1), now) && kept.failure.is_none());
        assert!(kept.take(Fact::NotFound, now));
        assert_eq!(kept.fact(), Some(Fact::NotFound));
    }

    #[tokio::test]
    async fn nothing_known_is_unknown() {
        let mut kept = kept();
        assert_eq!(kept.fact(), None);
        assert!(!kept.take(Fact::Unknown(failure(FailureClass::Denied)), Instant::now()));
        assert_eq!(kept.fact(), Some(Fact::Unknown(failure(FailureClass::Denied))));
    }
}
