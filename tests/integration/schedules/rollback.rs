//! `docs/rollback.md`, step by step.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{Stage, publish};

/// Has the group name its image.
async fn names(stage: &Stage, image: &str) -> Result<()> {
    let change = json!({ "spec": { "eks": { "configuration": { "image": image } } } }).to_string();
    let patch = [
        "-n",
        "team",
        "patch",
        "instancegroup",
        "workers",
        "--type=merge",
        "-p",
        &change,
    ];
    stage.kubectl(&patch).await.map(drop)
}

/// Back to the previous image, hold there, and go on with the newest later.
#[tokio::test(flavor = "multi_thread")]
async fn back_to_the_previous_image_and_on_again() -> Result<()> {
    let stage = Stage::new("rollback").await?;
    stage.namespace("team", "dev").await?;
    stage
        .settings("locks: [{reason: held}]\nschedules:\n- {name: all, match: {}, image: {after: 0s}}\n")
        .await?;
    stage.group("team", "workers", 1).await?;
    stage
        .group_until("team", "workers", "Ready", |group| {
            group["status"]["currentState"] == "Ready"
        })
        .await?;
    let bad = publish(&stage.testbed, 2).await?;
    let group = stage.ready_on("team", "workers", &bad).await?;
    let previous = group["status"]["image"]["previous"]
        .as_str()
        .context("a previous image")?
        .to_owned();

    names(&stage, &previous).await?;
    let request = stage
        .request_until("team", "for the older image", |request| {
            request["spec"]["target"]["imageId"] == previous.as_str() && request["status"]["phase"] == "Pending"
        })
        .await?;
    let name = request["metadata"]["name"].as_str().context("a name")?.to_owned();
    // No schedule goes back: a person does.
    let waits = stage
        .request_until("team", "waits for a person", |request| {
            let message = request["status"]["message"].as_str().unwrap_or_default();
            request["metadata"]["name"] == name.as_str() && message.contains("a person to decide")
        })
        .await?;
    ensure!(waits["status"]["autoApproveAt"].is_null());
    let approve = r#"{"spec":{"approved":true}}"#;
    stage
        .kubectl(&[
            "-n",
            "team",
            "patch",
            "upgraderequest",
            &name,
            "--type=merge",
            "-p",
            approve,
        ])
        .await?;
    stage.ready_on("team", "workers", &previous).await?;

    // Held there: a newer image is none of a group's that names its own.
    let newest = publish(&stage.testbed, 3).await?;
    let sequence = stage.testbed.aws().last_sequence().await?;
    let follow = r#"{"spec":{"eks":{"maxSize":6}}}"#;
    stage
        .kubectl(&[
            "-n",
            "team",
            "patch",
            "instancegroup",
            "workers",
            "--type=merge",
            "-p",
            follow,
        ])
        .await?;
    let waiting = stage.testbed.until(super::SECONDS, "the new size at AWS", async || {
        let calls = stage.testbed.aws().calls(sequence).await?;
        Ok(calls
            .iter()
            .any(|call| call.action == "UpdateAutoScalingGroup")
            .then_some(()))
    });
    waiting.await?;
    let open = stage.requests("team").await?;
    ensure!(
        open.iter()
            .all(|request| request["spec"]["target"]["imageId"] != newest.as_str()),
        "{open:#?}"
    );

    names(&stage, "latest").await?;
    stage.ready_on("team", "workers", &newest).await?;
    stage.stop().await
}
