//! Owns the handle of the simulated kubelets: how they start and stop, and what tests wish of them.
//!
//! It must not act on nodes itself; that is [`super::kubelets`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use kube::Client;

use super::aws::Aws;
use super::kubelets::Kubelets;
use super::watchdog::locked;

#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// From the first sight of an instance to its node turning Ready.
    pub delay: Duration,
    /// Only instances of groups whose names begin so: tests that share a testbed each simulate their own.
    pub group_prefix: String,
    pub kubelet_version: String,
    /// More labels that every node registers with.
    pub labels: BTreeMap<String, String>,
    /// Needed only where the node lifecycle controller runs.
    pub renew_leases: bool,
    /// Pods run here: leases are renewed, taints left to the node lifecycle controller, and pods go with their node.
    pub workloads: bool,
    /// How often the simulated AWS is asked for its instances.
    pub interval: Duration,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            group_prefix: String::new(),
            kubelet_version: "v1.33.0".into(),
            labels: BTreeMap::new(),
            renew_leases: false,
            workloads: false,
            interval: Duration::from_millis(100),
        }
    }
}

/// Runs until it is dropped; the nodes stay.
pub struct NodeSimulator {
    wishes: Arc<Mutex<Wishes>>,
    task: tokio::task::JoinHandle<()>,
}

/// What tests may change while it runs.
#[derive(Default)]
pub struct Wishes {
    pub delay: Duration,
    pub never_ready: BTreeSet<String>,
    pub kubelet_versions: BTreeMap<String, String>,
    pub forced: BTreeMap<String, bool>,
    pub silent: BTreeSet<String>,
    pub problem: Option<String>,
}

impl NodeSimulator {
    pub fn start(client: Client, aws: &Aws, options: NodeOptions) -> Result<Self> {
        let wishes = Arc::new(Mutex::new(Wishes {
            delay: options.delay,
            ..Wishes::default()
        }));
        let kubelets = Kubelets::new(client, aws, options, &wishes)?;
        Ok(Self {
            wishes,
            task: tokio::spawn(kubelets.run()),
        })
    }

    /// How long nodes take from now on, those that are not Ready yet included.
    pub fn set_delay(&self, delay: Duration) {
        locked(&self.wishes).delay = delay;
    }

    /// Nodes of this image register but are not Ready: a bad image.
    pub fn never_ready(&self, image_id: &str) {
        locked(&self.wishes).never_ready.insert(image_id.to_owned());
    }

    /// Take that back.
    pub fn heal(&self, image_id: &str) {
        locked(&self.wishes).never_ready.remove(image_id);
    }

    /// Nodes of this image report this version, from their next report on.
    pub fn set_kubelet_version(&self, image_id: &str, version: &str) {
        locked(&self.wishes)
            .kubelet_versions
            .insert(image_id.to_owned(), version.to_owned());
    }

    /// Decide about one instance, whatever its image and age.
    pub fn set_ready(&self, instance_id: &str, ready: bool) {
        locked(&self.wishes).forced.insert(instance_id.to_owned(), ready);
    }

    /// The kubelet of this instance is dead: it neither registers nor reports nor renews its lease, and its pods
    /// neither start nor go.
    pub fn silence(&self, instance_id: &str) {
        locked(&self.wishes).silent.insert(instance_id.to_owned());
    }

    /// What went wrong in the latest round; it is tried again in the next.
    pub fn problem(&self) -> Option<String> {
        locked(&self.wishes).problem.clone()
    }
}

impl Drop for NodeSimulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}
