//! The election: one Lease that at most one process holds, and the fence that follows from it.
//!
//! Owns the loop that looks, acquires, renews and gives back. Its writes are conditional on what was read; nothing else of
//! this process goes past the fence by them. Must not decide when a record counts as expired ([`crate::plan::leadership`]),
//! and must not outlive a loss: it ends, and the process with it.

mod record;

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::record::Seen;
pub use self::record::{KubeLease, LeaseStore};
use super::stores::WatchState;
use crate::fence::Keeper;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::leadership::{Candidate, Step, Timing, decide};

/// Why a leader does not lead any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// No renewal went well in time; the API server refused, or was silent.
    #[error("lost leadership: the Lease could not be renewed for {0:?}")]
    Deadline(Duration),
    /// Somebody else holds the Lease.
    #[error("lost leadership: the Lease is held by {0:?}")]
    Taken(String),
}

/// Is told how the election goes; metrics hang here, so that this layer need not know them.
pub trait ElectionObserver: Send + Sync {
    /// This process leads from now on, or does not any more.
    fn leads(&self, leads: bool);
    /// Another leader than before was seen.
    fn changed(&self);
}

/// One candidate.
pub struct Election<S> {
    /// Where the Lease is.
    pub store: S,
    /// Who we are.
    pub candidate: Candidate,
    /// How long everything takes.
    pub timing: Timing,
    /// Opens and closes what all other writes pass.
    pub keeper: Keeper,
    /// Is told how it goes.
    pub observer: Arc<dyn ElectionObserver>,
    /// How the calls go, for readiness.
    pub state: watch::Sender<WatchState>,
    /// The time of day, for people who read the Lease.
    pub clock: fn() -> Timestamp,
}

/// What a leader holds.
struct Held {
    lease: Lease,
    /// When the write began that won or renewed it last.
    began: Instant,
    until: Instant,
}

impl<S: LeaseStore> Election<S> {
    /// Takes part until `stop`; one that leads by then goes on leading until `release`, and gives the Lease back.
    ///
    /// # Errors
    /// [`Lost`] when this process led and does not any more. The fence is closed then for good.
    pub async fn run(self, stop: CancellationToken, release: CancellationToken) -> Result<(), Lost> {
        let Some(mut held) = self.win(&stop).await else {
            return Ok(());
        };
        let ended = self.hold(&mut held, &release).await;
        if ended.is_err() {
            self.keeper.close();
        } else {
            self.give_back(held).await;
        }
        self.observer.leads(false);
        ended
    }

    /// Looks until the Lease is won; `None` if it was asked to stop.
    async fn win(&self, stop: &CancellationToken) -> Option<Held> {
        let mut seen = Seen::new(Instant::now());
        while !stop.is_cancelled() {
            // Not cut short: a write whose answer nobody waits for would leave the Lease with one who is gone.
            if let Some(held) = self.look(&mut seen).await {
                return Some(held);
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(spread(self.timing.retry_period())) => {}
            }
        }
        None
    }

    /// One look, and a try if nobody leads.
    async fn look(&self, seen: &mut Seen) -> Option<Held> {
        let lease = match self.call(self.store.get()).await {
            Ok(lease) => lease,
            Err(failure) => {
                self.fails(&failure);
                return None;
            }
        };
        self.works();
        let now = Instant::now();
        if let Some(leader) = seen.saw(lease.as_ref(), now) {
            self.observer.changed();
            info!(leader, "leads; this process stands by");
        }
        let (record, observed) = seen.record();
        if decide(record.as_ref(), &self.candidate, observed, seen.since_start(now)) == Step::Wait {
            return None;
        }
        let before = record.map(|record| record.holder).unwrap_or_default();
        let began = Instant::now();
        let claim = record::claimed(lease, &self.candidate, (self.clock)());
        match self.call(self.store.put(claim)).await {
            Ok(lease) => {
                if before != self.candidate.identity {
                    self.observer.changed();
                }
                info!(leader = self.candidate.identity, before, "leads: this process");
                Some(self.held(lease, began))
            }
            Err(failure) => {
                debug!(%failure, "another one was faster, or no answer came; looked at again");
                None
            }
        }
    }

    fn held(&self, lease: Lease, began: Instant) -> Held {
        // From when the write began: the others count from when they saw it, which is later.
        let until = began + self.timing.renew_deadline();
        Held { lease, began, until }
    }

    /// Renews until `release`.
    async fn hold(&self, held: &mut Held, release: &CancellationToken) -> Result<(), Lost> {
        if !self.keeper.open_until(held.until) {
            return Err(self.deadline());
        }
        self.observer.leads(true);
        loop {
            let next = (held.began + self.timing.retry_period()).max(Instant::now());
            tokio::select! {
                biased;
                () = sleep_until(held.until) => return Err(self.deadline()),
                () = release.cancelled() => return Ok(()),
                () = sleep_until(next) => {}
            }
            let renewed = timeout_at(held.until, self.renew(held)).await;
            *held = renewed.map_err(|_| self.deadline())??;
            // A process that was stopped for a while comes by here with an answer that is too old.
            if !self.keeper.open_until(held.until) {
                return Err(self.deadline());
            }
        }
    }

    /// Tries until a renewal goes well; who waits for it sets the deadline.
    async fn renew(&self, held: &Held) -> Result<Held, Lost> {
        let mut lease = Some(held.lease.clone());
        loop {
            let began = Instant::now();
            let claim = record::claimed(lease.clone(), &self.candidate, (self.clock)());
            let failure = match self.call(self.store.put(claim)).await {
                Ok(lease) => {
                    self.works();
                    return Ok(self.held(lease, began));
                }
                Err(failure) => failure,
            };
            if !written_since(failure.class) {
                self.fails(&failure);
                sleep_until(began + self.timing.retry_period()).await;
                continue;
            }
            // Somebody wrote, or an earlier try of ours went through and its answer was lost.
            match self.call(self.store.get()).await {
                Ok(now) => {
                    let holder = now.as_ref().map(record::holder).unwrap_or_default();
                    if now.is_some() && holder != self.candidate.identity {
                        return Err(Lost::Taken(holder.to_owned()));
                    }
                    lease = now;
                }
                Err(failure) => self.fails(&failure),
            }
            sleep_until(began + self.timing.retry_period() / 10).await;
        }
    }

    /// Gives the Lease back once nothing is being written any more, so that the next one need not wait for it to expire.
    async fn give_back(&self, held: Held) {
        self.keeper.end_at(held.until);
        let idle = timeout_at(held.until, self.keeper.idle()).await;
        self.keeper.close();
        if idle.is_err() {
            warn!("something was still being written at the end: the Lease is left to expire");
            return;
        }
        let empty = record::released(held.lease, (self.clock)());
        match self.call(self.store.put(empty)).await {
            Ok(_) => info!("gave the Lease back"),
            Err(failure) => warn!(%failure, "the Lease could not be given back: it is left to expire"),
        }
    }

    fn deadline(&self) -> Lost {
        Lost::Deadline(self.timing.renew_deadline())
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let limit = self.timing.call_timeout();
        timeout(limit, call).await.unwrap_or_else(|_| {
            Err(Failure {
                class: FailureClass::Unavailable,
                action: "kubernetes:leases".to_owned(),
                code: None,
                message: format!("no answer within {limit:?}"),
            })
        })
    }

    fn works(&self) {
        self.state.send_if_modified(|state| {
            let news = *state != WatchState::Following;
            *state = WatchState::Following;
            news
        });
    }

    fn fails(&self, failure: &Failure) {
        let now = WatchState::Failing(failure.to_string());
        if self.state.send_replace(now.clone()) == now {
            debug!(%failure, "the Lease failed again");
        } else {
            warn!(%failure, "the Lease cannot be read or written; it is tried again");
        }
    }
}

/// Whether a failed write says that the Lease is not what we read.
fn written_since(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::Busy | FailureClass::NotFound | FailureClass::AlreadyExists
    )
}

/// Up to a fifth more, so that candidates that started together do not stay in step.
fn spread(pause: Duration) -> Duration {
    let part = u32::try_from(random() % 256).unwrap_or_default();
    pause + pause / 5 * part / 256
}

/// A number that the standard library draws anew for each of its hash maps.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// A name that no other process has: a host may start one process after another.
#[must_use]
pub fn identity(host: &str) -> String {
    format!("{host}_{:016x}", random())
}

#[cfg(test)]
mod tests;
