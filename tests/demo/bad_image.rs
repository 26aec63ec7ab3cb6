//! The second act: an image whose nodes never become Ready.
//!
//! Owns what has to be seen: it stops after one node, pins back, and says what to do.

use anyhow::{Context, Result, ensure};

use crate::stage::Stage;
use crate::story::{calls, condition, json, publish, until_group};
use crate::testbed::NodeFate;

/// Plays it on a group that runs `good`.
pub async fn play(stage: &mut Stage, good: &str) -> Result<()> {
    stage.begin("AWS recommends an image that does not work, and somebody approves it");
    // A quarter of an hour is too long for a demo.
    let patch = r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"50%","readyTimeout":"8s"}}}}"#;
    let group = [
        "-n",
        "team",
        "patch",
        "instancegroup",
        "workers",
        "--type",
        "merge",
        "-p",
        patch,
    ];
    stage.kubectl(&group).await?;
    let bad = publish(
        stage,
        "amazon-eks-node-al2023-x86_64-standard-1.33-v20261127",
        "2026-11-27T12:00:00Z",
    )
    .await?;
    stage
        .testbed
        .aws()
        .set_image_nodes(&bad, NodeFate::NotReady, std::time::Duration::ZERO)
        .await?;
    let request = pending(stage, &bad).await?;
    let before = stage.testbed.aws().last_sequence().await?;
    let approval = r#"{"spec":{"approved":true}}"#;
    let patch = [
        "-n",
        "team",
        "patch",
        "upgraderequest",
        &request,
        "--type",
        "merge",
        "-p",
        approval,
    ];
    stage.kubectl(&patch).await?;
    stage.begin("it stops after one node, pins back and says what to do");
    let group = until_group(stage, "blocked", |group| {
        condition(group, "UpgradeBlocked") && condition(group, "NodesReady")
    })
    .await?;
    let instances = stage.testbed.aws().instances().await?;
    ensure!(
        instances.len() == 4 && instances.iter().all(|instance| instance.image_id == good),
        "not all 4 instances run {good}"
    );
    let terminated = calls(stage, before, "TerminateInstanceInAutoScalingGroup").await?;
    ensure!(
        terminated == 2,
        "{terminated} terminations: one old node, and its successor that never was Ready"
    );
    stage
        .seen("1 of 4 nodes was taken although the budget allows 2, its successor is gone, 4 nodes run the good image");
    let nodes = json(stage, &["get", "nodes", "-o", "json"]).await?;
    for node in nodes["items"].as_array().context("a list")? {
        let text = serde_json::to_string(&node["spec"])? + &serde_json::to_string(&node["metadata"]["annotations"])?;
        ensure!(
            !text.contains("unschedulable") && !text.contains("instancemgr.keikoproj.io/rollout"),
            "something of the rollout is left on {}",
            node["metadata"]["name"]
        );
    }
    stage.seen("no node is cordoned or carries a note");
    stage.kubectl(&["-n", "team", "get", "upgraderequest"]).await?;
    stage
        .kubectl(&["-n", "team", "describe", "upgraderequest", &request])
        .await?;
    stage.kubectl(&["-n", "team", "get", "instancegroups"]).await?;
    let message = group["status"]["message"].as_str().context("a message")?;
    println!("   the group says: {message}");
    ensure!(message.contains("to ask again"), "it does not say what to do");
    Ok(())
}

/// The request for the image, once it waits.
async fn pending(stage: &Stage, image: &str) -> Result<String> {
    let found = until_group(stage, "a request waits", |group| {
        group["status"]["image"]["pending"] == image && group["status"]["upgradeRequest"].is_string()
    })
    .await?;
    let name = found["status"]["upgradeRequest"].as_str().context("a name")?;
    Ok(name.to_owned())
}
