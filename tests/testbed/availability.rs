//! Owns the record of how many pods of a workload were available over a time, from a watch of the API server.
//!
//! It must not judge. A pod counts as in a disruption budget: Ready and not on its way out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};

use super::Testbed;
use super::deployment::{Workload, is_available};
use super::wait;
use super::watchdog::locked;

const START: Duration = Duration::from_secs(30);

/// Watches until it is dropped.
pub struct Availability {
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// Name and whether it is available.
    pods: BTreeMap<String, bool>,
    /// Each count that differed from the one before; empty before the first listing is whole.
    counts: Vec<usize>,
    /// The watch was broken: counts in between are unknown.
    broken: Option<String>,
}

impl Availability {
    /// Begins with what is there now.
    pub async fn start(testbed: &Testbed, workload: &Workload) -> Result<Self> {
        let pods: Api<Pod> = Api::namespaced(testbed.admin(), workload.namespace());
        let configuration = watcher::Config::default().labels(&workload.selector());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let writer = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let watched = watcher::watcher(pods, configuration).try_for_each(|event| {
                locked(&writer).take(event);
                std::future::ready(Ok(()))
            });
            if let Err(problem) = watched.await {
                locked(&writer).broken = Some(problem.to_string());
            }
        });
        let record = Self { seen, task };
        let first = wait::until(START, "the first listing of the pods", async || {
            Ok((!locked(&record.seen).counts.is_empty()).then_some(()))
        });
        first.await?;
        Ok(record)
    }

    /// The lowest count since the start; an error if the watch had a gap.
    pub fn lowest(&self) -> Result<usize> {
        self.counts()?.into_iter().min().context("no count was seen")
    }

    /// Every count in its order, each different from the one before.
    pub fn counts(&self) -> Result<Vec<usize>> {
        let seen = locked(&self.seen);
        let gap = seen.broken.as_deref().unwrap_or_default();
        ensure!(gap.is_empty(), "the watch of the pods broke: {gap}");
        Ok(seen.counts.clone())
    }
}

impl Drop for Availability {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init if !self.counts.is_empty() => self.broken = Some("it had to begin anew".into()),
            Event::Init => {}
            Event::InitApply(pod) => drop(self.pods.insert(pod.name_any(), is_available(&pod))),
            Event::InitDone => self.count(),
            Event::Apply(pod) => {
                self.pods.insert(pod.name_any(), is_available(&pod));
                self.count();
            }
            Event::Delete(pod) => {
                self.pods.remove(&pod.name_any());
                self.count();
            }
        }
    }

    fn count(&mut self) {
        let count = self.pods.values().filter(|available| **available).count();
        if self.counts.last() != Some(&count) {
            self.counts.push(count);
        }
    }
}
