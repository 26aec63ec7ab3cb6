//! The right to write: nothing is written at AWS or to the API server but by the process that leads.
//!
//! Owns the value that every write passes. It closes by time alone: once the renew deadline has passed by the clock that
//! never jumps, even if nobody had a chance to notice. Must not know how the right is won; that is the election's.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use crate::plan::facts::{Failure, FailureClass};

/// Whether this process may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Nobody else writes: there is no election.
    Always,
    /// Not yet.
    Waiting,
    /// Up to this moment.
    Until(Instant),
    /// Up to this moment for writes under way; no new ones.
    Ending(Instant),
    /// Not any more, for the rest of this process.
    Gone,
}

impl Right {
    fn begins(self, now: Instant) -> bool {
        match self {
            Self::Always => true,
            Self::Until(end) => now < end,
            Self::Waiting | Self::Ending(_) | Self::Gone => false,
        }
    }

    fn goes_on(self, now: Instant) -> bool {
        match self {
            Self::Ending(end) => now < end,
            right => right.begins(now),
        }
    }

    fn end(self) -> Option<Instant> {
        match self {
            Self::Until(end) | Self::Ending(end) => Some(end),
            Self::Always | Self::Waiting | Self::Gone => None,
        }
    }
}

/// What every write passes. Clones are the same fence.
#[derive(Clone)]
pub struct Fence {
    right: watch::Receiver<Right>,
    under_way: TaskTracker,
}

/// The other side: opens and closes the fence. Dropping it closes it for good.
pub struct Keeper {
    right: watch::Sender<Right>,
    under_way: TaskTracker,
}

/// A closed fence and its keeper.
#[must_use]
pub fn fence() -> (Keeper, Fence) {
    let (sender, right) = watch::channel(Right::Waiting);
    let under_way = TaskTracker::new();
    let keeper = Keeper {
        right: sender,
        under_way: under_way.clone(),
    };
    (keeper, Fence { right, under_way })
}

impl Fence {
    /// A fence that is always open, for a process that runs alone.
    #[must_use]
    pub fn always() -> Self {
        Self {
            right: watch::channel(Right::Always).1,
            under_way: TaskTracker::new(),
        }
    }

    /// Whether a write may begin now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.right().begins(Instant::now())
    }

    /// Waits until it opens; for ever if it never does.
    pub async fn opened(&self) {
        let mut right = self.right.clone();
        while !self.is_open() {
            if right.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Carries out a write while the right lasts: not begun without it, and dropped in the middle when it ends. The time is
    /// looked at with each step of the write, since a process that was stopped for a while runs on before its timers fire.
    ///
    /// # Errors
    /// Class `NotLeading` if there is no right to write, or it ended; the write may then have happened.
    pub async fn write<T>(&self, action: &str, write: impl Future<Output = T>) -> Result<T, Failure> {
        // Before the look: who closes the fence and then waits for what is under way must not miss this one.
        let _under_way = self.under_way.token();
        if !self.is_open() {
            return Err(not_leading(action, "not begun"));
        }
        let mut right = self.right.clone();
        let mut write = pin!(write);
        loop {
            let end = right.borrow_and_update().end();
            let step = poll_fn(|context| {
                if self.right().goes_on(Instant::now()) {
                    write.as_mut().poll(context).map(Some)
                } else {
                    Poll::Ready(None)
                }
            });
            tokio::select! {
                biased;
                answer = step => return answer.ok_or_else(|| not_leading(action, "cut short")),
                changed = right.changed(), if end.is_some() => if changed.is_err() {
                    return Err(not_leading(action, "cut short"));
                },
                () = passed(end) => return Err(not_leading(action, "cut short")),
            }
        }
    }

    fn right(&self) -> Right {
        // Without its keeper nobody renews; only a fence without an election has none from the start.
        let right = *self.right.borrow();
        if right != Right::Always && self.right.has_changed().is_err() {
            return Right::Gone;
        }
        right
    }
}

async fn passed(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

fn not_leading(action: &str, what: &str) -> Failure {
    Failure {
        class: FailureClass::NotLeading,
        action: action.to_owned(),
        code: None,
        message: format!("{what}: this process does not lead"),
    }
}

impl Keeper {
    /// Opens, or keeps open, up to a moment. Once it was closed, also if only by time, it never opens again: writes were
    /// turned away since. Answers whether it is open.
    #[must_use]
    pub fn open_until(&self, end: Instant) -> bool {
        let now = Instant::now();
        let mut open = false;
        self.right.send_modify(|right| {
            let opens = *right == Right::Waiting || matches!(right, Right::Until(before) if now < *before);
            *right = if opens && now < end {
                Right::Until(end)
            } else {
                Right::Gone
            };
            open = *right != Right::Gone;
        });
        open
    }

    /// Keeps what is under way going up to this moment, too.
    pub fn end_at(&self, end: Instant) {
        self.right.send_replace(Right::Ending(end));
    }

    /// Closes for good; what is under way is dropped.
    pub fn close(&self) {
        self.right.send_replace(Right::Gone);
    }

    /// Waits until no write is under way; [`Self::end_at`] first, or new ones may begin.
    pub async fn idle(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }
}

#[cfg(test)]
mod tests;
