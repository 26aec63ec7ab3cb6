//! Owns what teams run on the nodes of a test: a Deployment of plain pods and its disruption budget.
//!
//! It must not place pods or make them Ready; that is done by the real scheduler and by kwok.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::Testbed;
use super::node_objects::{GROUP_LABEL, as_label};
use super::workloads::{GONE_AFTER, NEVER_ENDS, READY_AFTER};

const READY: Duration = Duration::from_mins(1);

/// A Deployment with pods that are Ready at once and end within a second, unless told otherwise.
///
/// ```ignore
/// let web = Workload::new("shop", "web").replicas(3).max_unavailable(1).on_group("demo-shop-web");
/// web.create(testbed).await?;
/// ```
#[derive(Clone, Debug)]
pub struct Workload {
    namespace: String,
    name: String,
    replicas: u32,
    grace_seconds: u32,
    annotations: BTreeMap<String, String>,
    node_selector: BTreeMap<String, String>,
    spread: bool,
    budget: Option<Value>,
}

impl Workload {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            replicas: 1,
            grace_seconds: 1,
            annotations: BTreeMap::new(),
            node_selector: BTreeMap::new(),
            spread: false,
            budget: None,
        }
    }

    #[must_use]
    pub fn replicas(mut self, count: u32) -> Self {
        self.replicas = count;
        self
    }

    /// A budget by `maxUnavailable`.
    #[must_use]
    pub fn max_unavailable(mut self, count: u32) -> Self {
        self.budget = Some(json!({"maxUnavailable": count}));
        self
    }

    /// A budget by `minAvailable`.
    #[must_use]
    pub fn min_available(mut self, count: u32) -> Self {
        self.budget = Some(json!({"minAvailable": count}));
        self
    }

    /// Slow readiness: a pod runs so long before it is Ready.
    #[must_use]
    pub fn ready_after(self, delay: Duration) -> Self {
        self.annotation(READY_AFTER, &milliseconds(delay))
    }

    /// A slow end: a deleted pod stays so long, whatever its grace.
    #[must_use]
    pub fn gone_after(self, delay: Duration) -> Self {
        self.annotation(GONE_AFTER, &milliseconds(delay))
    }

    /// Deleted pods stay Terminating.
    #[must_use]
    pub fn never_ends(self) -> Self {
        self.annotation(NEVER_ENDS, "true")
    }

    /// An annotation on each pod.
    #[must_use]
    pub fn annotation(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Only on the nodes of this Auto Scaling group.
    #[must_use]
    pub fn on_group(self, group_name: &str) -> Self {
        self.on_nodes(GROUP_LABEL, as_label(group_name))
    }

    /// Only on nodes with this label.
    #[must_use]
    pub fn on_nodes(mut self, label: &str, value: &str) -> Self {
        self.node_selector.insert(label.to_owned(), value.to_owned());
        self
    }

    /// At most one pod a node.
    #[must_use]
    pub fn one_a_node(mut self) -> Self {
        self.spread = true;
        self
    }

    #[must_use]
    pub fn grace(mut self, seconds: u32) -> Self {
        self.grace_seconds = seconds;
        self
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The selector of its pods.
    pub fn selector(&self) -> String {
        format!("app={}", self.name)
    }

    /// [`Self::apply`] and [`Self::ready`].
    pub async fn create(&self, testbed: &Testbed) -> Result<Vec<Pod>> {
        self.apply(testbed).await?;
        self.ready(testbed).await
    }

    /// Write namespace, Deployment and budget; again with other settings to change them.
    pub async fn apply(&self, testbed: &Testbed) -> Result<()> {
        let client = testbed.admin();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        apply(&client, namespace).await?;
        apply(&client, self.deployment()).await?;
        match &self.budget {
            Some(budget) => apply(&client, self.disruption_budget(budget)).await,
            None => Ok(()),
        }
    }

    /// Wait until exactly the wanted pods are there, all Ready and none on its way out; answers them.
    pub async fn ready(&self, testbed: &Testbed) -> Result<Vec<Pod>> {
        let what = format!("{} Ready pods of {}/{}", self.replicas, self.namespace, self.name);
        let waiting = testbed.until(READY, &what, async || {
            let pods = self.pods(testbed).await?;
            let ready = pods.iter().filter(|pod| is_available(pod)).count();
            let all = pods.len();
            ensure!(
                ready == self.replicas as usize && all == ready,
                "{ready} of {all} pods are Ready"
            );
            Ok(Some(pods))
        });
        waiting.await
    }

    /// All its pods, those on their way out included.
    pub async fn pods(&self, testbed: &Testbed) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(testbed.admin(), &self.namespace);
        let selected = ListParams::default().labels(&self.selector());
        Ok(pods.list(&selected).await?.items)
    }

    fn deployment(&self) -> Value {
        let labels = json!({"app": self.name});
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"},
        ]}});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": self.annotations},
                    "spec": {
                        "terminationGracePeriodSeconds": self.grace_seconds,
                        "nodeSelector": self.node_selector,
                        "affinity": if self.spread { apart } else { json!({}) },
                        "containers": [{"name": "main", "image": "example/main:1"}],
                    },
                },
            },
        })
    }

    fn disruption_budget(&self, budget: &Value) -> Value {
        let mut spec = json!({"selector": {"matchLabels": {"app": self.name}}});
        if let (Some(spec), Some(budget)) = (spec.as_object_mut(), budget.as_object()) {
            spec.extend(budget.clone());
        }
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": self.namespace}, "spec": spec,
        })
    }
}

/// Ready and not on its way out, as disruption budgets count.
pub fn is_available(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

async fn apply(client: &Client, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let types = object.types.clone().context("an object without a kind")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let name = object.name_any();
    let applied = api
        .patch(&name, &PatchParams::apply("testbed").force(), &Patch::Apply(&object))
        .await;
    applied.with_context(|| format!("applying {} {name}", types.kind))?;
    Ok(())
}

fn milliseconds(delay: Duration) -> String {
    format!("{}ms", delay.as_millis())
}
