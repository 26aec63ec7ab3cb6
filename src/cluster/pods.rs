//! Pods of single nodes, watched only while somebody asks for them.
//!
//! Owns one watch for each such node, shared by all who ask, and the step from a Pod to what decisions read. Must not watch
//! all pods of a cluster, and must not write pods.

mod seen;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

pub use seen::{SeenPod, trim};

use super::budgets::BudgetIndex;
use super::stores::{WatchState, Watched};
use crate::plan::facts::workload;
use crate::plan::facts::{Fact, Failure, FailureClass};

/// How long what was seen still counts while a watch fails: it is tried again every few seconds, and only a longer silence
/// means that pods may have come or gone unseen.
const STALE: Duration = Duration::from_secs(30);

type Changed = Arc<dyn Fn(&str) + Send + Sync>;

/// The watches.
pub struct PodWatches {
    client: Client,
    changed: Changed,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_owner: HashMap<String, BTreeSet<String>>,
    by_node: HashMap<String, NodeWatch>,
}

struct NodeWatch {
    pods: Arc<NodePods>,
    task: AbortOnDropHandle<()>,
}

impl PodWatches {
    /// No watch yet. `changed` is called with a node's name whenever [`Self::on`] answers something else about it, on the task
    /// of its watch; it must not block.
    pub fn new(client: Client, changed: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            client,
            changed: Arc::new(changed),
            inner: Mutex::default(),
        }
    }

    /// Says whose pods an owner needs from now on, by node name, in place of before; none = the owner is gone. Starts the
    /// watches that are missing and ends those that nobody needs any more. Has to be called within the runtime.
    pub fn follow(&self, owner: &str, nodes: BTreeSet<String>) {
        let mut inner = self.lock();
        if nodes.is_empty() {
            inner.by_owner.remove(owner);
        } else {
            inner.by_owner.insert(owner.to_owned(), nodes);
        }
        let Inner { by_owner, by_node } = &mut *inner;
        let wanted: BTreeSet<&String> = by_owner.values().flatten().collect();
        // A watch has no end of its own; one that broke off is begun anew.
        by_node.retain(|node, watch| wanted.contains(node) && !watch.task.is_finished());
        for node in wanted {
            if !by_node.contains_key(node) {
                by_node.insert(node.clone(), self.start(node));
            }
        }
    }

    /// The pods on a node; unknown until all were listed once, and while the watch has failed for longer than what was seen
    /// can be relied on.
    #[must_use]
    pub fn on(&self, node: &str) -> Fact<Vec<SeenPod>> {
        match self.lock().by_node.get(node) {
            Some(watch) if watch.task.is_finished() => unknown("the watch broke off"),
            Some(watch) => watch.pods.all(),
            None => unknown("nobody asked for them yet"),
        }
    }

    /// The same as facts, with the budgets that select each pod. Whether it was asked to go is for others to fill in.
    #[must_use]
    pub fn facts(&self, node: &str, budgets: &BudgetIndex) -> Fact<Vec<workload::Pod>> {
        self.on(node)
            .map(|pods| pods.iter().map(|pod| pod.fact(budgets)).collect())
    }

    /// Names of the nodes that are watched now.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<String> {
        self.lock().by_node.keys().cloned().collect()
    }

    fn start(&self, node: &str) -> NodeWatch {
        let pods = Arc::new(NodePods::default());
        let watched = Watched::new().brief();
        let health = watched.state.clone();
        let store = watched.store.clone();
        let (seen, changed, name) = (Arc::clone(&pods), Arc::clone(&self.changed), node.to_owned());
        let touched = move |pod: &Pod, gone: bool| {
            if seen.touched(pod, gone) {
                changed(&name);
            }
        };
        let (seen, changed, name) = (Arc::clone(&pods), Arc::clone(&self.changed), node.to_owned());
        let relisted = move || {
            if seen.replace(store.state().iter().map(AsRef::as_ref)) {
                changed(&name);
            }
        };
        let api = Api::all(self.client.clone());
        let config = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
        let (seen, changed, name) = (Arc::clone(&pods), Arc::clone(&self.changed), node.to_owned());
        let task = async move {
            let noted = note_health(&seen, health, || changed(&name));
            tokio::join!(watched.follow(api, config, trim, touched, relisted), noted);
        };
        NodeWatch {
            pods,
            task: AbortOnDropHandle::new(tokio::spawn(task)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes since when a watch fails. Says so once what was seen counts no more, and once it does again.
async fn note_health(pods: &NodePods, mut state: watch::Receiver<WatchState>, changed: impl Fn()) {
    loop {
        let now = state.borrow_and_update().clone();
        let failing = matches!(now, WatchState::Failing(_));
        let was_stale = pods.note(now);
        if was_stale && !failing {
            changed();
        }
        let news = state.changed();
        let news = match pods.counts_until().filter(|end| *end > Instant::now()) {
            Some(end) => tokio::time::timeout_at(end, news).await.ok(),
            None => Some(news.await),
        };
        match news {
            None => changed(),
            Some(Ok(())) => {}
            Some(Err(_)) => return,
        }
    }
}

fn unknown(why: &str) -> Fact<Vec<SeenPod>> {
    Fact::Unknown(Failure {
        class: FailureClass::Unavailable,
        action: "kubernetes:watch pods".to_owned(),
        code: None,
        message: why.to_owned(),
    })
}

/// What was seen on one node.
#[derive(Default)]
struct NodePods {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// By uid. `None` until all were listed once.
    pods: Option<HashMap<String, SeenPod>>,
    /// Since when the watch fails, and why.
    failing: Option<(Instant, String)>,
}

impl Seen {
    fn is_stale(&self) -> bool {
        let failing = self.failing.as_ref();
        failing.is_some_and(|(since, _)| since.elapsed() >= STALE)
    }
}

impl NodePods {
    /// Takes in a pod that came, changed or went. Returns whether a fact is different by that; before the first list is
    /// complete there are none.
    fn touched(&self, pod: &Pod, gone: bool) -> bool {
        let mut seen = self.lock();
        let (Some(pods), Some(pod)) = (&mut seen.pods, SeenPod::of(pod)) else {
            return false;
        };
        if gone {
            return pods.remove(&pod.id.uid).is_some();
        }
        pods.insert(pod.id.uid.clone(), pod.clone()) != Some(pod)
    }

    /// Starts over from a complete list. Returns whether a fact is different by that.
    fn replace<'a>(&self, pods: impl IntoIterator<Item = &'a Pod>) -> bool {
        let listed = pods.into_iter().filter_map(SeenPod::of);
        let listed: HashMap<String, SeenPod> = listed.map(|pod| (pod.id.uid.clone(), pod)).collect();
        let mut seen = self.lock();
        let differs = seen.pods.as_ref() != Some(&listed);
        seen.pods = Some(listed);
        differs
    }

    /// Takes in how the watch does. Returns whether what was seen did not count any more before this.
    fn note(&self, state: WatchState) -> bool {
        let mut seen = self.lock();
        let was_stale = seen.is_stale();
        seen.failing = match state {
            WatchState::Failing(why) => {
                let since = seen.failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                Some((since, why))
            }
            WatchState::Starting | WatchState::Following => None,
        };
        was_stale
    }

    /// Until when what was seen counts, while the watch fails.
    fn counts_until(&self) -> Option<Instant> {
        self.lock().failing.as_ref().map(|(since, _)| *since + STALE)
    }

    fn all(&self) -> Fact<Vec<SeenPod>> {
        let seen = self.lock();
        match (&seen.pods, &seen.failing) {
            (_, Some((_, why))) if seen.is_stale() => unknown(why),
            (None, Some((_, why))) => unknown(why),
            (None, None) => unknown("the first list is under way"),
            (Some(pods), _) => {
                let mut pods: Vec<SeenPod> = pods.values().cloned().collect();
                pods.sort_by(|one, other| one.id.cmp(&other.id));
                Fact::Found(pods)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
