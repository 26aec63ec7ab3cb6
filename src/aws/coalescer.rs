//! Bundling reads.
//!
//! Owns the rule that while one call is in flight the next questions wait and go out together. Must not keep
//! answers: what is worth remembering is the stores' business.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::oneshot;

type Fetch<K, V> = Box<dyn Fn(Vec<K>) -> BoxFuture<'static, BTreeMap<K, V>> + Send + Sync>;

/// Whether an answer that was asked for before this question will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// A call in flight will do.
    InFlight,
    /// Only a call that starts after this question.
    Next,
}

struct Queue<K, V> {
    waiting: BTreeMap<K, Vec<oneshot::Sender<V>>>,
    in_flight: BTreeMap<K, Vec<oneshot::Sender<V>>>,
    running: bool,
}

struct Shared<K, V> {
    fetch: Fetch<K, V>,
    batch: usize,
    queue: Mutex<Queue<K, V>>,
}

impl<K, V> Shared<K, V> {
    fn queue(&self) -> MutexGuard<'_, Queue<K, V>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bundles questions into calls of up to `batch` keys, one call at a time.
pub(super) struct Coalescer<K, V> {
    shared: Arc<Shared<K, V>>,
}

impl<K, V> Coalescer<K, V>
where
    K: Clone + Ord + Send + Sync + 'static,
    V: Clone + Send + 'static,
{
    /// `fetch` answers for all the keys it is given.
    pub(super) fn new(
        batch: usize,
        fetch: impl Fn(Vec<K>) -> BoxFuture<'static, BTreeMap<K, V>> + Send + Sync + 'static,
    ) -> Self {
        let queue = Queue {
            waiting: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            running: false,
        };
        Self {
            shared: Arc::new(Shared {
                fetch: Box::new(fetch),
                batch: batch.max(1),
                queue: Mutex::new(queue),
            }),
        }
    }

    /// Asks for one key. `None` if the call ended without an answer for it.
    pub(super) async fn read(&self, key: K, join: Join) -> Option<V> {
        self.ask([key], join).pop()?.1.await.ok()
    }

    /// Asks for several keys at once; those without an answer are left out.
    pub(super) async fn read_all(&self, keys: impl IntoIterator<Item = K>, join: Join) -> BTreeMap<K, V> {
        let mut answers = BTreeMap::new();
        for (key, answer) in self.ask(keys, join) {
            if let Ok(value) = answer.await {
                answers.insert(key, value);
            }
        }
        answers
    }

    fn ask(&self, keys: impl IntoIterator<Item = K>, join: Join) -> Vec<(K, oneshot::Receiver<V>)> {
        let mut queue = self.shared.queue();
        let mut answers = Vec::new();
        for key in keys {
            let (sender, receiver) = oneshot::channel();
            match queue.in_flight.get_mut(&key) {
                Some(askers) if join == Join::InFlight => askers.push(sender),
                _ => queue.waiting.entry(key.clone()).or_default().push(sender),
            }
            answers.push((key, receiver));
        }
        if !queue.running && !queue.waiting.is_empty() {
            queue.running = true;
            // A task of its own: the one who asked first may give up while others still wait.
            tokio::spawn(run(Arc::clone(&self.shared)));
        }
        answers
    }
}

/// Sends call after call until nobody waits.
async fn run<K, V>(shared: Arc<Shared<K, V>>)
where
    K: Clone + Ord + Send + Sync + 'static,
    V: Clone + Send + 'static,
{
    let running = Running { shared: &shared };
    loop {
        let keys: Vec<K> = {
            let mut queue = shared.queue();
            // Those who gave up need no answer.
            queue.waiting.retain(|_, askers| {
                askers.retain(|asker| !asker.is_closed());
                !askers.is_empty()
            });
            let keys: Vec<K> = queue.waiting.keys().take(shared.batch).cloned().collect();
            for key in &keys {
                if let Some(askers) = queue.waiting.remove(key) {
                    queue.in_flight.insert(key.clone(), askers);
                }
            }
            if keys.is_empty() {
                queue.running = false;
                std::mem::forget(running);
                return;
            }
            keys
        };
        let answers = (shared.fetch)(keys).await;
        for (key, askers) in std::mem::take(&mut shared.queue().in_flight) {
            if let Some(answer) = answers.get(&key) {
                for asker in askers {
                    // An asker that gave up meanwhile misses nothing.
                    let _ = asker.send(answer.clone());
                }
            }
        }
    }
}

/// Frees the askers if the task dies in a call (a panic, the runtime's end): they get no answer rather than
/// waiting for ever.
struct Running<'a, K, V> {
    shared: &'a Shared<K, V>,
}

impl<K, V> Drop for Running<'_, K, V> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.running = false;
        queue.in_flight.clear();
        queue.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pretty_assertions::assert_eq;

    use super::*;

    type Sent = Arc<Mutex<Vec<Vec<u32>>>>;

    /// Answers after a second with the number of the call.
    fn slow(batch: usize) -> (Arc<Coalescer<u32, usize>>, Sent) {
        let sent = Sent::default();
        let log = Arc::clone(&sent);
        let coalescer = Coalescer::new(batch, move |keys: Vec<u32>| {
            log.lock().unwrap().push(keys.clone());
            let call = log.lock().unwrap().len();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(!keys.contains(&13), "a read that panics");
                keys.into_iter().map(|key| (key, call)).collect()
            }) as BoxFuture<'static, BTreeMap<u32, usize>>
        });
        (Arc::new(coalescer), sent)
    }

    #[tokio::test(start_paused = true)]
    async fn questions_wait_for_the_call_in_flight_and_go_together() {
        let (reads, sent) = slow(2);
        let mut tasks = tokio::task::JoinSet::new();
        for key in [1, 2, 3, 4, 2] {
            let reads = Arc::clone(&reads);
            tasks.spawn(async move { reads.read(key, Join::Next).await });
            tokio::task::yield_now().await;
        }
        let answers = tasks.join_all().await;
        assert_eq!(answers.len(), 5);
        assert_eq!(*sent.lock().unwrap(), vec![vec![1], vec![2, 3], vec![4]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fresh_question_never_joins_a_call_in_flight() {
        let (reads, _) = slow(10);
        let first = reads.read(1, Join::Next);
        let later = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            tokio::join!(reads.read(1, Join::Next), reads.read(1, Join::InFlight))
        };
        let (first, (fresh, joined)) = tokio::join!(first, later);
        assert_eq!((first, fresh, joined), (Some(1), Some(2), Some(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_dies_frees_its_askers() {
        let (reads, _) = slow(10);
        assert_eq!(reads.read(13, Join::Next).await, None);
        assert_eq!(reads.read(1, Join::Next).await, Some(2));
    }
}
