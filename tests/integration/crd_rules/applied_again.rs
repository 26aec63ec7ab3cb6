//! A request that a tool applies from a manifest in Git, over a decision that a person has taken meanwhile.
//!
//! Owns the ways of applying. It must not judge what the operator makes of a withdrawal.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::prepared;
use super::request_table::{FROZEN, STARTED, TERMINAL, base};
use super::stored_request::Stored;
use crate::testbed::{Output, Testbed};

/// The ways in which tools write a manifest.
const WAYS: [&[&str]; 3] = [
    &["apply", "-f", "-"],
    &[
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=gitops",
        "-f",
        "-",
    ],
    &["replace", "-f", "-"],
];

/// What was exported before anybody decided: the decision block with its defaults.
fn manifest(request: &Stored) -> Value {
    let mut manifest = base(&request.name, &request.namespace);
    let defaults = json!({
        "approved": false, "denied": false, "cancelled": false, "urgent": false, "approvedBy": "", "decisionReason": "",
    });
    super::merge(&mut manifest["spec"], &defaults);
    manifest
}

async fn apply(testbed: &Testbed, way: &[&str], manifest: &Value) -> Result<Output> {
    testbed.kubectl_stdin(way, &manifest.to_string()).await
}

fn approval() -> Value {
    json!({"approved": true, "approvedBy": "alice", "decisionReason": "tested"})
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_a_request_again_withdraws_the_approval_before_the_start() -> Result<()> {
    let testbed = prepared("rules-again").await?;
    for (index, way) in WAYS.into_iter().enumerate() {
        for phase in [None, Some("Pending"), Some("Approved")] {
            let name = format!("way{index}-{}", phase.unwrap_or("new").to_lowercase());
            let request = Stored::new(testbed, "rules-again", &name, &json!({}), phase).await?;
            // The tool knows the request, and applying it changes nothing while nobody has decided.
            apply(testbed, way, &manifest(&request)).await?.success()?;
            request.takes(&approval()).await?;
            apply(testbed, way, &manifest(&request)).await?.success()?;
            let spec = &request.read().await?["spec"];
            ensure!(*spec == manifest(&request)["spec"], "{name}: {spec}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_a_request_again_is_refused_once_it_has_started() -> Result<()> {
    let testbed = prepared("rules-again-late").await?;
    for (index, way) in WAYS.into_iter().enumerate() {
        for phase in TERMINAL.into_iter().chain(["InProgress"]) {
            let name = format!("way{index}-{}", phase.to_lowercase());
            let request = Stored::new(testbed, "rules-again-late", &name, &json!({}), Some("Pending")).await?;
            apply(testbed, way, &manifest(&request)).await?.success()?;
            request.takes(&approval()).await?;
            request.enter(phase).await?;
            let before = request.read().await?;
            let complaint = apply(testbed, way, &manifest(&request)).await?.failure()?;
            ensure!(complaint.contains(STARTED), "{name}: {complaint}");
            ensure!(
                phase == "InProgress" || complaint.contains(FROZEN),
                "{name}: {complaint}"
            );
            ensure!(request.read().await? == before, "{name}: refused and changed");
        }
    }
    Ok(())
}

/// A manifest without the decision block leaves the decision to whoever took it.
#[tokio::test(flavor = "multi_thread")]
async fn applying_a_request_without_a_decision_block_leaves_the_decision() -> Result<()> {
    let testbed = prepared("rules-again-silent").await?;
    for (index, way) in WAYS.into_iter().take(2).enumerate() {
        for phase in ["Pending", "Approved", "InProgress", "Succeeded"] {
            let name = format!("way{index}-{}", phase.to_lowercase());
            let request = Stored::new(testbed, "rules-again-silent", &name, &approval(), Some(phase)).await?;
            let silent = base(&name, "rules-again-silent");
            apply(testbed, way, &silent).await?.success()?;
            apply(testbed, way, &silent).await?.success()?;
            let spec = &request.read().await?["spec"];
            ensure!(
                spec["approved"] == true && spec["approvedBy"] == "alice",
                "{name}: {spec}"
            );
        }
    }
    Ok(())
}
