//! How many nodes of a group served over a time, from a watch of the API server.
//!
//! Owns the record. Must not judge.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use tokio_util::task::AbortOnDropHandle;

use super::scene::{PATIENCE, Scene, is_cordoned, is_ready};

/// Watches until it is dropped.
pub struct Line {
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// Whether a node serves: Ready, and open to pods.
    nodes: BTreeMap<String, bool>,
    /// Numbers of nodes that served, each different from the one before.
    serving: Vec<usize>,
    /// Nodes in the order in which they were cordoned first.
    cordoned: Vec<String>,
    broken: Option<String>,
}

impl Line {
    /// Begins with the nodes that are there now.
    pub async fn start(scene: &Scene<'_>) -> Result<Self> {
        let nodes: Api<Node> = Api::all(scene.client());
        let of_group = watcher::Config::default().labels(&format!("sluice.test/group={}", scene.scaling_group()));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let writer = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let watched = watcher::watcher(nodes, of_group).try_for_each(|event| {
                locked(&writer).take(event);
                std::future::ready(Ok(()))
            });
            if let Err(problem) = watched.await {
                locked(&writer).broken = Some(problem.to_string());
            }
        });
        let line = Self {
            seen,
            _task: AbortOnDropHandle::new(task),
        };
        let first = scene.testbed.until(PATIENCE, "the first list of nodes", async || {
            Ok((!locked(&line.seen).serving.is_empty()).then_some(()))
        });
        first.await?;
        Ok(line)
    }

    /// The fewest nodes that served at any moment.
    pub fn fewest(&self) -> Result<usize> {
        let seen = self.whole()?;
        seen.serving.iter().min().copied().context("no node was seen")
    }

    /// Nodes in the order in which they were cordoned first.
    pub fn cordoned(&self) -> Result<Vec<String>> {
        Ok(self.whole()?.cordoned.clone())
    }

    fn whole(&self) -> Result<MutexGuard<'_, Seen>> {
        let seen = locked(&self.seen);
        let gap = seen.broken.as_deref().unwrap_or_default();
        ensure!(gap.is_empty(), "the watch of the nodes broke: {gap}");
        Ok(seen)
    }
}

impl Seen {
    fn take(&mut self, event: Event<Node>) {
        match event {
            Event::Init if !self.serving.is_empty() => self.broken = Some("it had to begin anew".to_owned()),
            Event::Init => {}
            Event::InitApply(node) => self.note(&node),
            Event::InitDone => self.count(),
            Event::Apply(node) => {
                self.note(&node);
                self.count();
            }
            Event::Delete(node) => {
                self.nodes.remove(&node.name_any());
                self.count();
            }
        }
    }

    fn note(&mut self, node: &Node) {
        let name = node.name_any();
        if is_cordoned(node) && !self.cordoned.contains(&name) {
            self.cordoned.push(name.clone());
        }
        self.nodes.insert(name, is_ready(node) && !is_cordoned(node));
    }

    fn count(&mut self) {
        let count = self.nodes.values().filter(|serves| **serves).count();
        if self.serving.last() != Some(&count) {
            self.serving.push(count);
        }
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
