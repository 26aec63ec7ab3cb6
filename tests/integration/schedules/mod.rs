//! Schedules, locks and freezes on real parts, by edits of the one `ConfigMap`.
//!
//! Owns tests on testbeds of their own: settings are the whole fleet's. When something is approved is tested on the plan.

mod approvers;
mod check;
mod fleet;
mod rollback;
mod tiers;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::testbed::installation::HOME;
use crate::testbed::{Installation, NodeOptions, NodeSimulator, Operator, OperatorBuilder, Testbed};

/// The parameter behind `latest` for cluster `demo`.
const PARAMETER: &str = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";
/// For a rollout of a few nodes.
const PATIENCE: Duration = Duration::from_mins(2);
/// For something that has to follow at once.
const SECONDS: Duration = Duration::from_secs(15);

/// A control plane with the chart, an operator and kubelets.
struct Stage {
    testbed: Testbed,
    operator: Operator,
    nodes: NodeSimulator,
}

impl Stage {
    async fn new(name: &str) -> Result<Self> {
        Self::with(name, &[], |builder| builder).await
    }

    async fn with(
        name: &str,
        chart: &[&str],
        flags: impl FnOnce(OperatorBuilder<'_>) -> OperatorBuilder<'_>,
    ) -> Result<Self> {
        let testbed = Testbed::start(name).await?;
        testbed.aws().seed("demo", "1.33").await?;
        publish(&testbed, 1).await?;
        let installation = Installation::of_chart(&testbed, chart).await?;
        let operator = flags(installation.operator(&testbed)?).ready().await?;
        let nodes = testbed.start_nodes(NodeOptions::default())?;
        Ok(Self {
            testbed,
            operator,
            nodes,
        })
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.testbed.kubectl(arguments).await?.success()
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        let text = object.to_string();
        let applied = self.testbed.kubectl_stdin(&["apply", "-f", "-"], &text);
        applied.await?.success().map(drop)
    }

    /// Writes the settings.
    async fn settings(&self, text: &str) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": HOME, "name": "instance-manager" },
            "data": { "upgrades": text },
        }))
        .await
    }

    /// A namespace of a tier.
    async fn namespace(&self, name: &str, tier: &str) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": { "instancemgr.keikoproj.io/tier": tier } },
        }))
        .await
    }

    /// A group of so many nodes.
    async fn group(&self, namespace: &str, name: &str, size: u32) -> Result<()> {
        let path = format!("{}/examples/locked-group.yaml", env!("CARGO_MANIFEST_DIR"));
        let mut group: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
        group["metadata"]["namespace"] = namespace.into();
        group["metadata"]["name"] = name.into();
        let annotations = group["metadata"]["annotations"]
            .as_object_mut()
            .context("annotations")?;
        annotations.remove("instancemgr.keikoproj.io/lock-upgrades");
        group["spec"]["eks"]["minSize"] = size.into();
        self.apply(&group).await
    }

    async fn get(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = vec!["get"];
        all.extend(arguments);
        all.extend(["-o", "json"]);
        Ok(serde_json::from_str(&self.kubectl(&all).await?)?)
    }

    async fn group_until(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let what = format!("group {namespace}/{name}: {what}");
        let waiting = self.testbed.until(PATIENCE, &what, async || {
            let group = self.get(&["-n", namespace, "instancegroup", name]).await?;
            ensure!(holds(&group), "its status is {}", group["status"]);
            Ok(Some(group))
        });
        waiting.await
    }

    async fn ready_on(&self, namespace: &str, name: &str, image: &str) -> Result<Value> {
        self.group_until(namespace, name, &format!("Ready on {image}"), |group| {
            let status = &group["status"];
            status["image"]["current"] == image && status["currentState"] == "Ready"
        })
        .await
    }

    /// The requests of a namespace.
    async fn requests(&self, namespace: &str) -> Result<Vec<Value>> {
        let list = self.get(&["-n", namespace, "instancegroupupgraderequests"]).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits for a request in a namespace that is as described.
    async fn request_until(&self, namespace: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let what = format!("a request in {namespace}: {what}");
        let waiting = self.testbed.until(PATIENCE, &what, async || {
            let requests = self.requests(namespace).await?;
            let found = requests.iter().find(|request| holds(request)).cloned();
            ensure!(found.is_some(), "there are {requests:#?}");
            Ok(found)
        });
        waiting.await
    }

    async fn stop(self) -> Result<()> {
        self.operator.alive()?;
        drop(self.nodes);
        self.testbed.stop().await
    }
}

/// Has AWS publish and recommend an image of that day; answers its id.
async fn publish(testbed: &Testbed, day: u8) -> Result<String> {
    publish_at(testbed, day, &format!("2026-11-{day:02}T12:00:00Z")).await
}

/// The same, recommended at a time of its own.
async fn publish_at(testbed: &Testbed, day: u8, recommended: &str) -> Result<String> {
    let at = format!("2026-11-{day:02}T12:00:00Z");
    let name = format!("amazon-eks-node-al2023-x86_64-standard-1.33-v202611{day:02}");
    let image = testbed.aws().publish_image(&name, "x86_64", &at).await?;
    testbed.aws().set_parameter(PARAMETER, &image, recommended).await?;
    Ok(image)
}

/// A time from now on, as people write it.
fn from_now(seconds: i64) -> String {
    let time = sluice::clock::now() + jiff::SignedDuration::from_secs(seconds);
    jiff::Timestamp::from_second(time.as_second())
        .map(|time| time.to_string())
        .unwrap_or_default()
}
