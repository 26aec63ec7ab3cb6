//! Polling: when, and how it fares.
//!
//! Owns the loop of a poller and the age of what it learned. Must not know what is polled.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::aws::ledger::Moment;
use crate::plan::facts::{Failure, FailureClass};

/// The interval assumed until a poller runs.
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);

/// A fact older than this many intervals is not vouched for any more.
const TRUSTED_INTERVALS: u32 = 3;

/// A failed poll is repeated after this part of the interval, so that two more tries fit well before what is
/// known grows too old.
const RETRY_PART: u32 = 6;

/// How the polling of one API fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollHealth {
    /// Whether a first poll succeeded, or none is needed.
    pub synced: bool,
    /// Age of the last successful poll.
    pub age: Option<Duration>,
    /// The last poll's failure, if it failed.
    pub failure: Option<Failure>,
}

/// What a store keeps about its polling.
pub(super) struct Poll {
    pub interval: Duration,
    pub last_success: Option<Moment>,
    failure: Option<Failure>,
    /// Whether anything is polled at all; if not, facts are read one by one.
    pub active: bool,
    synced: watch::Sender<bool>,
    /// Where in the order the last successful poll began; the end of it where nothing is to be polled.
    polled: watch::Sender<u64>,
}

impl Default for Poll {
    fn default() -> Self {
        Self {
            interval: DEFAULT_INTERVAL,
            last_success: None,
            failure: None,
            active: false,
            synced: watch::Sender::new(false),
            polled: watch::Sender::new(0),
        }
    }
}

impl Poll {
    /// Notes a poll that began at `began`. Answers whether it was the first to succeed.
    pub fn succeeded(&mut self, began: Moment) -> bool {
        let first = self.last_success.is_none();
        self.last_success = Some(began);
        self.failure = None;
        self.synced.send_replace(true);
        self.polled.send_replace(began.sequence);
        first
    }

    pub fn failed(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    /// Nothing is to be polled.
    pub fn idle(&mut self) {
        self.active = false;
        self.failure = None;
        self.synced.send_replace(true);
        self.polled.send_replace(u64::MAX);
    }

    /// Whether something read at this time is too old to be vouched for.
    pub fn too_old(&self, read: Instant) -> bool {
        read.elapsed() > self.interval * TRUSTED_INTERVALS
    }

    /// Why what was read then is unknown now: what stopped the polls, or else their silence.
    pub fn stale(&self, action: &str, read: Instant) -> Failure {
        let age = read.elapsed().as_secs();
        let mut failure = self.failure.clone().unwrap_or_else(|| Failure {
            class: FailureClass::Unavailable,
            action: action.to_owned(),
            code: None,
            message: String::new(),
        });
        let reason = if failure.message.is_empty() {
            String::new()
        } else {
            format!("; {}", failure.message)
        };
        failure.message = format!("last seen {age} s ago{reason}");
        failure
    }

    pub fn health(&self) -> PollHealth {
        PollHealth {
            synced: *self.synced.borrow(),
            age: self.last_success.map(|moment| moment.at.elapsed()),
            failure: self.failure.clone(),
        }
    }

    pub fn watch_polled(&self) -> watch::Receiver<u64> {
        self.polled.subscribe()
    }

    pub fn watch_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }
}

/// A store that can be polled.
pub(super) trait Polled {
    /// Reads everything of these clusters; with none, nothing. Answers whether that succeeded.
    fn poll(&self, clusters: &[String]) -> impl Future<Output = bool> + Send;
}

/// Polls at once, then once an interval, and at once for a changed set of clusters, until cancelled.
pub(super) async fn run(
    interval: Duration,
    mut clusters: watch::Receiver<Option<BTreeSet<String>>>,
    cancel: CancellationToken,
    polled: &impl Polled,
) {
    loop {
        let names: Option<Vec<String>> = clusters
            .borrow_and_update()
            .as_ref()
            .map(|names| names.iter().cloned().collect());
        let nothing = names.as_ref().is_none_or(Vec::is_empty);
        let succeeded = match names {
            None => true,
            Some(names) => {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    succeeded = polled.poll(&names) => succeeded,
                }
            }
        };
        let wait = if succeeded {
            interval
        } else {
            (interval / RETRY_PART).max(Duration::from_secs(1))
        };
        tokio::select! {
            () = cancel.cancelled() => return,
            changed = clusters.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait), if !nothing => {}
        }
    }
}
