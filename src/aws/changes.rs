//! Waking those who follow.
//!
//! Owns the hand-over of changed names from a store to its followers. Must not know what changed: a follower
//! that is woken looks again. A name that waits already is not queued twice, so a slow follower costs no
//! more than one entry per name and never misses one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::Stream;
use tokio::sync::Notify;

struct Follower<T> {
    waiting: Mutex<BTreeSet<T>>,
    arrived: Notify,
}

impl<T: Ord> Follower<T> {
    fn pop(&self) -> Option<T> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }
}

/// Hands changed names to any number of followers.
pub(super) struct Changes<T> {
    followers: Mutex<Vec<Weak<Follower<T>>>>,
}

impl<T> Default for Changes<T> {
    fn default() -> Self {
        Self {
            followers: Mutex::new(Vec::new()),
        }
    }
}

impl<T: Clone + Ord + Send + 'static> Changes<T> {
    /// Wakes every follower for each of the names.
    pub(super) fn publish(&self, names: impl IntoIterator<Item = T>) {
        let names: Vec<T> = names.into_iter().collect();
        if names.is_empty() {
            return;
        }
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|follower| {
            let Some(follower) = follower.upgrade() else {
                return false;
            };
            follower
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(names.iter().cloned());
            follower.arrived.notify_one();
            true
        });
    }

    /// A stream of the names that change from now on. It never ends; dropping it ends the following.
    pub(super) fn follow(&self) -> impl Stream<Item = T> + Send + Unpin + use<T> {
        let follower = Arc::new(Follower {
            waiting: Mutex::new(BTreeSet::new()),
            arrived: Notify::new(),
        });
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.push(Arc::downgrade(&follower));
        Box::pin(futures::stream::unfold(follower, |follower| async move {
            loop {
                if let Some(name) = follower.pop() {
                    return Some((name, follower));
                }
                follower.arrived.notified().await;
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use pretty_assertions::assert_eq;

    use super::*;

    #[tokio::test]
    async fn a_waiting_name_is_queued_once() {
        let changes = Changes::default();
        let mut stream = changes.follow();
        changes.publish(["b", "a"]);
        changes.publish(["a"]);
        assert_eq!(stream.next().await, Some("a"));
        assert_eq!(stream.next().await, Some("b"));
        assert_eq!(stream.next().now_or_never(), None);
        changes.publish(["a"]);
        assert_eq!(stream.next().await, Some("a"));
    }

    #[tokio::test]
    async fn a_follower_that_left_is_forgotten() {
        let changes = Changes::default();
        drop(changes.follow());
        changes.publish(["a"]);
        assert!(changes.followers.lock().unwrap().is_empty());
    }
}
