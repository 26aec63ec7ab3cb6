//! Owns the work of the simulated kubelets: a Node for each machine that runs, Ready in time, gone with it.
//!
//! It asks the simulated AWS at an interval; that is its clock. It must not change AWS or anything of the operator's,
//! and it leaves labels, taints and cordons of others as they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::aws::Aws;
use super::aws_administration::SimulatedInstance;
use super::aws_conduct::NodeFate;
use super::node_objects;
use super::nodes::{NodeOptions, Wishes};
use super::watchdog::locked;

const LEASE_RENEWAL: Duration = Duration::from_secs(5);
/// Requests at the same time.
const AT_ONCE: usize = 16;

pub struct Kubelets {
    nodes: Api<Node>,
    client: Client,
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
    /// The instance is still there.
    running: bool,
    /// The Node's uid, once it is registered.
    uid: Option<String>,
    reported: Option<bool>,
    /// Its kubelet has died.
    silent: bool,
    renewed: Option<Instant>,
}

impl Kubelets {
    pub fn new(client: Client, aws: &Aws, options: NodeOptions, wishes: &Arc<Mutex<Wishes>>) -> Result<Self> {
        Ok(Self {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), "kube-node-lease"),
            client,
            aws: aws.with_kept_connections()?,
            labels: json!(options.labels),
            options,
            wishes: Arc::clone(wishes),
        })
    }

    pub async fn run(self) {
        let mut machines = BTreeMap::new();
        let mut swept = false;
        let mut ticks = tokio::time::interval(self.options.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let round = async {
                if !swept {
                    self.sweep().await?;
                    swept = true;
                }
                self.round(&mut machines).await
            };
            let problem = round.await.err().map(|problem| format!("{problem:#}"));
            locked(&self.wishes).problem = problem;
        }
    }

    /// Remove nodes whose instances ended while nobody looked.
    async fn sweep(&self) -> Result<()> {
        // Nodes first: an instance that comes in between must not look gone.
        let nodes = self.nodes.list(&ListParams::default()).await.context("listing nodes")?;
        let instances = self.aws.instances().await?;
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

    async fn round(&self, machines: &mut BTreeMap<String, Machine>) -> Result<()> {
        let instances = self.aws.instances().await?;
        for machine in machines.values_mut() {
            machine.running = false;
        }
        for instance in instances {
            if let Some(machine) = machines.get_mut(&instance.instance_id) {
                machine.running = instance.instance_state != "terminated";
                machine.instance = instance;
            } else if joins(&instance) && instance.group_name.starts_with(&self.options.group_prefix) {
                machines.insert(instance.instance_id.clone(), Machine::new(instance));
            }
        }
        // Boxed: the compiler cannot see that borrowing futures in a stream may move between threads.
        let steps: Vec<_> = machines
            .values_mut()
            .map(|machine| self.step(machine).boxed())
            .collect();
        let results: Vec<_> = futures::stream::iter(steps).buffer_unordered(AT_ONCE).collect().await;
        machines.retain(|_, machine| machine.running || machine.uid.is_some());
        results.into_iter().collect()
    }

    async fn step(&self, machine: &mut Machine) -> Result<()> {
        let name = machine.instance.private_dns_name.clone();
        if !machine.running {
            if machine.uid.is_some() {
                self.deregister(&name).await?;
                machine.uid = None;
            }
            return Ok(());
        }
        if locked(&self.wishes).silent.contains(&machine.instance.instance_id) {
            if machine.uid.is_some() && !machine.silent {
                self.let_go_of_pods(&name).await?;
                machine.silent = true;
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
        let renews = self.options.renew_leases || self.options.workloads;
        if renews && machine.renewed.is_none_or(|at| at.elapsed() >= LEASE_RENEWAL) {
            self.renew(&name, machine.uid.as_deref().unwrap_or_default()).await?;
            machine.renewed = Some(Instant::now());
        }
        Ok(())
    }

    fn ready_now(&self, machine: &Machine) -> bool {
        let wishes = locked(&self.wishes);
        let instance = &machine.instance;
        if instance.instance_state != "running" {
            // A machine that shuts down stops its kubelet first.
            return false;
        }
        let good = instance.node_joins == NodeFate::Ready && !wishes.never_ready.contains(&instance.image_id);
        let by_itself = good && machine.seen.elapsed() >= wishes.delay;
        wishes.forced.get(&instance.instance_id).copied().unwrap_or(by_itself)
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
        let Some(node) = self
            .nodes
            .get_opt(name)
            .await
            .with_context(|| format!("getting node {name}"))?
        else {
            // Somebody deleted it; a kubelet registers only when it starts.
            return Ok(());
        };
        let taints = node_objects::wanted_taints(&node, ready);
        if let Some(taints) = taints.filter(|_| !self.options.workloads) {
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

    async fn renew(&self, name: &str, uid: &str) -> Result<()> {
        let parameters = PatchParams::apply("simulated-kubelet").force();
        let applied = self
            .leases
            .patch(name, &parameters, &Patch::Apply(node_objects::lease(name, uid)))
            .await;
        applied.with_context(|| format!("renewing the lease of node {name}"))?;
        Ok(())
    }

    async fn deregister(&self, name: &str) -> Result<()> {
        let deleted = gone_is_good(self.nodes.delete(name, &DeleteParams::default()).await);
        deleted.with_context(|| format!("deleting node {name}"))?;
        if self.options.workloads {
            self.collect_pods(name).await?;
        }
        Ok(())
    }

    /// What pod garbage collection does a minute later: pods of a node that is gone go without grace.
    async fn collect_pods(&self, node_name: &str) -> Result<()> {
        let bound = ListParams::default().fields(&format!("spec.nodeName={node_name}"));
        let pods = Api::<Pod>::all(self.client.clone()).list(&bound).await;
        for pod in pods.with_context(|| format!("listing the pods of node {node_name}"))? {
            let pods = Api::<Pod>::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            let at_once = DeleteParams::default().grace_period(0);
            let deleted = gone_is_good(pods.delete(&pod.name_any(), &at_once).await);
            deleted.with_context(|| format!("deleting pod {} of node {node_name}", pod.name_any()))?;
        }
        Ok(())
    }

    async fn let_go_of_pods(&self, name: &str) -> Result<()> {
        let patch = json!({"metadata": {"labels": {node_objects::SIMULATED_LABEL: null}}});
        let patched = self
            .nodes
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        gone_is_good(patched).with_context(|| format!("taking the label off node {name}"))
    }

    fn kubelet_version(&self, instance: &SimulatedInstance) -> String {
        let versions = &locked(&self.wishes).kubelet_versions;
        versions
            .get(&instance.image_id)
            .unwrap_or(&self.options.kubelet_version)
            .clone()
    }
}

impl Machine {
    fn new(instance: SimulatedInstance) -> Self {
        Self {
            instance,
            seen: Instant::now(),
            running: true,
            uid: None,
            reported: None,
            silent: false,
            renewed: None,
        }
    }
}

/// Whether a machine's kubelet registers its Node now. What state its group sees it in does not matter to it.
fn joins(instance: &SimulatedInstance) -> bool {
    instance.instance_state == "running" && instance.node_joins != NodeFate::Never && instance.node_join_due
}

/// What is gone already need not be deleted or changed.
fn gone_is_good<T>(answer: kube::Result<T>) -> kube::Result<()> {
    match answer {
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
        answer => answer.map(drop),
    }
}
