//! The operator as a process among real parts that are missing, broken or in the way.
//!
//! Owns tests that break what others share; each file has a testbed of its own. Verdicts come from the API server, its
//! audit log and the recorded AWS calls. What the plan decides is tested on the plan.

mod chart;
mod objects;
pub mod relay;
mod seen;
mod settings;
mod start;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::testbed::installation::HOME;
use crate::testbed::{Call, Installation, NodeOptions, NodeSimulator, Operator, Testbed};

/// Namespace of the groups in the examples.
const TEAM: &str = "team";
/// The parameter behind `latest` for cluster `demo`.
const PARAMETER: &str = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";
/// For something that takes the operator and the simulation a few steps.
const PATIENCE: Duration = Duration::from_mins(1);
/// For something that has to follow at once.
const SECONDS: Duration = Duration::from_secs(15);

/// Seeds AWS with a recommended image, installs the chart, and makes the namespace of the groups.
async fn install(testbed: &Testbed, more: &[&str]) -> Result<Installation> {
    testbed.aws().seed("demo", "1.33").await?;
    recommend(testbed, 1).await?;
    let installation = Installation::of_chart(testbed, more).await?;
    kubectl(testbed, &["create", "namespace", TEAM]).await?;
    Ok(installation)
}

/// Starts the operator; it answers, but need not be ready.
async fn start(testbed: &Testbed, installation: &Installation) -> Result<Operator> {
    let builder = installation.operator(testbed)?;
    builder.flag("--image-poll-interval", "2s").up().await
}

/// Kubelets whose nodes are Ready soon.
fn nodes(testbed: &Testbed) -> Result<NodeSimulator> {
    testbed.start_nodes(NodeOptions::default())
}

/// Has AWS publish and recommend an image of that day; answers its id.
async fn recommend(testbed: &Testbed, day: u8) -> Result<String> {
    let at = format!("2026-11-{day:02}T12:00:00Z");
    let name = format!("amazon-eks-node-al2023-x86_64-standard-1.33-v202611{day:02}");
    let image = testbed.aws().publish_image(&name, "x86_64", &at).await?;
    testbed.aws().set_parameter(PARAMETER, &image, &at).await?;
    Ok(image)
}

/// A manifest of `examples/` as an object, under another name.
fn example(file: &str, name: &str) -> Result<Value> {
    let path = format!("{}/examples/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let mut object: Value = serde_saphyr::from_str(&text)?;
    object["metadata"]["name"] = name.into();
    Ok(object)
}

async fn apply(testbed: &Testbed, object: &Value) -> Result<()> {
    let object = object.to_string();
    let applied = testbed.kubectl_stdin(&["apply", "-f", "-"], &object);
    applied.await?.success().map(drop)
}

async fn kubectl(testbed: &Testbed, arguments: &[&str]) -> Result<String> {
    testbed.kubectl(arguments).await?.success()
}

/// What kubectl answers with `-o json`.
async fn json(testbed: &Testbed, arguments: &[&str]) -> Result<Value> {
    let mut arguments = arguments.to_vec();
    arguments.extend(["-o", "json"]);
    Ok(serde_json::from_str(&kubectl(testbed, &arguments).await?)?)
}

async fn patch(testbed: &Testbed, name: &str, patch: Value) -> Result<()> {
    let patch = patch.to_string();
    let arguments = ["-n", TEAM, "patch", "instancegroup", name, "--type=merge", "-p", &patch];
    kubectl(testbed, &arguments).await.map(drop)
}

/// Waits until a group is as described.
async fn group_until(testbed: &Testbed, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    let what = format!("group {name}: {what}");
    let waiting = testbed.until(PATIENCE, &what, async || {
        let group = json(testbed, &["-n", TEAM, "get", "instancegroup", name]).await?;
        ensure!(holds(&group), "its status is {}", group["status"]);
        Ok(Some(group))
    });
    waiting.await
}

async fn group_ready(testbed: &Testbed, name: &str) -> Result<Value> {
    group_until(testbed, name, "Ready", |group| is_true(group, "Ready")).await
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The Events about an object, by kubectl's way of finding them.
async fn events(testbed: &Testbed, kind: &str, name: &str) -> Result<Vec<Value>> {
    let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let list = json(testbed, &["-n", TEAM, "get", "events", "--field-selector", &about]).await?;
    list["items"].as_array().cloned().context("a list of Events")
}

/// The AWS calls after a point that change something.
async fn writes(testbed: &Testbed, after: u64) -> Result<Vec<Call>> {
    let calls = testbed.aws().calls(after).await?;
    Ok(calls.into_iter().filter(|call| call.mutating).collect())
}

fn actions(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.action.as_str()).collect()
}
