//! Owns the simulated kubelets: a Node for each instance in service, Ready in time, gone with its instance.
//!
//! It reads the simulated AWS ten times a second; that is its clock. It must not change AWS or anything of the
//! operator's, and it leaves labels, taints and cordons of others as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::aws::{Aws, SimulatedInstance};
use super::node_objects;
use super::watchdog::locked;

const TICK: Duration = Duration::from_millis(100);
const LEASE_RENEWAL: Duration = Duration::from_secs(5);
/// Requests at the same time.
const AT_ONCE: usize = 16;

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
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            group_prefix: String::new(),
            kubelet_version: "v1.33.0".into(),
            labels: BTreeMap::new(),
            renew_leases: false,
        }
    }
}

/// Runs until it is dropped; the nodes stay.
pub struct NodeSimulator {
    wishes: Arc<Mutex<Wishes>>,
    task: tokio::task::JoinHandle<()>,
}

/// What tests may change while it runs.
struct Wishes {
    delay: Duration,
    never_ready: BTreeSet<String>,
    kubelet_versions: BTreeMap<String, String>,
    forced: BTreeMap<String, bool>,
    problem: Option<String>,
}

impl NodeSimulator {
    pub fn start(client: Client, aws: &Aws, options: NodeOptions) -> Result<Self> {
        let wishes = Arc::new(Mutex::new(Wishes {
            delay: options.delay,
            never_ready: BTreeSet::new(),
            kubelet_versions: BTreeMap::new(),
            forced: BTreeMap::new(),
            problem: None,
        }));
        let kubelets = Kubelets {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client, "kube-node-lease"),
            aws: aws.with_kept_connections()?,
            labels: json!(options.labels),
            options,
            wishes: Arc::clone(&wishes),
        };
        Ok(Self {
            wishes,
            task: tokio::spawn(kubelets.run()),
        })
    }

    /// How long nodes take from now on, those that are not Ready yet included.
    pub fn set_delay(&self, delay: Duration) {
        locked(&self.wishes).delay = delay;
    }

    /// Nodes of this image register but never turn Ready: a bad image.
    pub fn never_ready(&self, image_id: &str) {
        locked(&self.wishes).never_ready.insert(image_id.to_owned());
    }

    /// Take that back.
    pub fn heal(&self, image_id: &str) {
        locked(&self.wishes).never_ready.remove(image_id);
    }

    /// Nodes of this image that register from now on report this version.
    pub fn set_kubelet_version(&self, image_id: &str, version: &str) {
        locked(&self.wishes)
            .kubelet_versions
            .insert(image_id.to_owned(), version.to_owned());
    }

    /// Decide about one instance, whatever its image and age.
    pub fn set_ready(&self, instance_id: &str, ready: bool) {
        locked(&self.wishes).forced.insert(instance_id.to_owned(), ready);
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

struct Kubelets {
    nodes: Api<Node>,
    leases: Api<Lease>,
    aws: Aws,
    labels: Value,
    options: NodeOptions,
    wishes: Arc<Mutex<Wishes>>,
}

/// One machine as its kubelet knows it.
struct Machine {
    instance: SimulatedInstance,
    seen: Instant,
    in_service: bool,
    /// The Node's uid, once it is registered.
    uid: Option<String>,
    reported: Option<bool>,
    renewed: Option<Instant>,
}

impl Kubelets {
    async fn run(self) {
        let mut machines = BTreeMap::new();
        let mut swept = false;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let round = self.round(&mut machines, &mut swept).await;
            locked(&self.wishes).problem = round.err().map(|problem| format!("{problem:#}"));
        }
    }

    async fn round(&self, machines: &mut BTreeMap<String, Machine>, swept: &mut bool) -> Result<()> {
        let instances = self.aws.instances().await?;
        if !*swept {
            self.sweep(&instances).await?;
            *swept = true;
        }
        for machine in machines.values_mut() {
            machine.in_service = false;
        }
        for instance in instances {
            if instance.lifecycle_state != "InService" || !instance.group_name.starts_with(&self.options.group_prefix) {
                continue;
            }
            let id = instance.instance_id.clone();
            let machine = machines.entry(id).or_insert_with(|| Machine {
                instance,
                seen: Instant::now(),
                in_service: true,
                uid: None,
                reported: None,
                renewed: None,
            });
            machine.in_service = true;
        }
        // Boxed: the compiler cannot see that borrowing futures in a stream may move between threads.
        let steps: Vec<_> = machines
            .values_mut()
            .map(|machine| self.step(machine).boxed())
            .collect();
        let results: Vec<_> = futures::stream::iter(steps).buffer_unordered(AT_ONCE).collect().await;
        // A machine leaves the list once its node is gone.
        machines.retain(|_, machine| machine.in_service || machine.uid.is_some());
        results.into_iter().collect()
    }

    /// Nodes whose instances ended while nobody looked.
    async fn sweep(&self, instances: &[SimulatedInstance]) -> Result<()> {
        let nodes = self.nodes.list(&ListParams::default()).await.context("listing nodes")?;
        for node in nodes {
            let id = node
                .spec
                .as_ref()
                .and_then(|spec| spec.provider_id.as_deref()?.strip_prefix("aws:///"));
            let id = id.and_then(|id| id.split_once('/')).map(|(_, id)| id);
            if id.is_some_and(|id| instances.iter().all(|instance| instance.instance_id != id)) {
                self.deregister(&node.name_any()).await?;
            }
        }
        Ok(())
    }

    async fn step(&self, machine: &mut Machine) -> Result<()> {
        if !machine.in_service {
            if machine.uid.is_some() {
                self.deregister(&machine.instance.private_dns_name).await?;
                machine.uid = None;
            }
            return Ok(());
        }
        if machine.uid.is_none() {
            machine.uid = Some(self.register(&machine.instance).await?);
        }
        let ready = self.ready_now(machine);
        if machine.reported != Some(ready) {
            self.report(&machine.instance, ready).await?;
            machine.reported = Some(ready);
        }
        if self.options.renew_leases && machine.renewed.is_none_or(|at| at.elapsed() >= LEASE_RENEWAL) {
            self.renew(machine).await?;
            machine.renewed = Some(Instant::now());
        }
        Ok(())
    }

    fn ready_now(&self, machine: &Machine) -> bool {
        let wishes = locked(&self.wishes);
        let by_itself =
            !wishes.never_ready.contains(&machine.instance.image_id) && machine.seen.elapsed() >= wishes.delay;
        wishes
            .forced
            .get(&machine.instance.instance_id)
            .copied()
            .unwrap_or(by_itself)
    }

    async fn register(&self, instance: &SimulatedInstance) -> Result<String> {
        let name = &instance.private_dns_name;
        let node = node_objects::registration(instance, &self.kubelet_version(instance), &self.labels)?;
        let node = match self.nodes.create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => self.nodes.get(name).await,
            answer => answer,
        };
        let node = node.with_context(|| format!("registering node {name}"))?;
        node.uid().context("a node without a uid")
    }

    async fn report(&self, instance: &SimulatedInstance, ready: bool) -> Result<()> {
        let name = &instance.private_dns_name;
        let parameters = PatchParams::default();
        let node = self
            .nodes
            .get(name)
            .await
            .with_context(|| format!("getting node {name}"))?;
        if let Some(taints) = node_objects::wanted_taints(&node, ready) {
            // The version: a list is replaced as a whole, and others write taints too.
            let patch = json!({"metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": taints}});
            let patched = self.nodes.patch(name, &parameters, &Patch::Merge(patch)).await;
            patched.with_context(|| format!("tainting node {name}"))?;
        }
        let status = json!({"status": node_objects::status(instance, &self.kubelet_version(instance), ready)});
        let patched = self
            .nodes
            .patch_status(name, &parameters, &Patch::Strategic(status))
            .await;
        patched.with_context(|| format!("reporting the status of node {name}"))?;
        Ok(())
    }

    async fn renew(&self, machine: &Machine) -> Result<()> {
        let name = &machine.instance.private_dns_name;
        let lease = node_objects::lease(name, machine.uid.as_deref().unwrap_or_default());
        let parameters = PatchParams::apply("simulated-kubelet").force();
        let applied = self.leases.patch(name, &parameters, &Patch::Apply(lease)).await;
        applied.with_context(|| format!("renewing the lease of node {name}"))?;
        Ok(())
    }

    async fn deregister(&self, name: &str) -> Result<()> {
        match self.nodes.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
            answer => answer.map(drop).with_context(|| format!("deleting node {name}")),
        }
    }

    fn kubelet_version(&self, instance: &SimulatedInstance) -> String {
        let versions = &locked(&self.wishes).kubelet_versions;
        versions
            .get(&instance.image_id)
            .unwrap_or(&self.options.kubelet_version)
            .clone()
    }
}
