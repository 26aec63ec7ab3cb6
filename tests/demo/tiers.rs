//! Three tiers under a simulated clock: dev at once, staging after 48 hours, prod after a week; then one edit for all.
//!
//! Owns the steps and what has to be seen in each. Both clocks, the operator's and AWS's, are put forward together.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::story::{PARAMETER, PATIENCE};
use crate::testbed::installation::HOME;

const TIERS: [&str; 3] = ["dev", "staging", "prod"];

/// Plays it.
pub async fn play(stage: &mut Stage, good: &str) -> Result<()> {
    stage.begin("three tiers: one ConfigMap says who approves what, and when");
    // AWS takes the bad image of the step before back.
    stage
        .testbed
        .aws()
        .set_parameter(PARAMETER, good, "2026-11-21T12:00:00Z")
        .await?;
    apply(stage, "three-tiers.yaml").await?;
    for tier in TIERS {
        namespace(stage, tier).await?;
        group(stage, tier).await?;
    }
    for tier in TIERS {
        until(stage, tier, "Ready", |group| group["status"]["currentState"] == "Ready").await?;
    }
    let listed = ["get", "instancegroups", "-A"];
    stage.kubectl(&listed).await?;
    stage.begin("AWS recommends an image: dev takes it at once, the others wait for their dates");
    let at = sluice::clock::now();
    let aws = stage.testbed.aws();
    let name = "amazon-eks-node-al2023-x86_64-standard-1.33-v20261201";
    let new = aws.publish_image(name, "x86_64", at).await?;
    aws.set_parameter(PARAMETER, &new, at).await?;
    runs(stage, "dev", &new).await?;
    for tier in ["staging", "prod"] {
        announced(stage, tier).await?;
    }
    stage.kubectl(&["get", "upgraderequests", "-A"]).await?;
    stage.begin("47 hours later: staging still waits");
    stage.put_clock(47).await?;
    stays(stage, "staging", &new).await?;
    stage.begin("48 hours later: staging takes it, prod waits");
    stage.put_clock(48).await?;
    runs(stage, "staging", &new).await?;
    stays(stage, "prod", &new).await?;
    stage.begin("a week later: prod takes it");
    stage.put_clock(7 * 24).await?;
    runs(stage, "prod", &new).await?;
    stage.kubectl(&listed).await?;
    let describe = [
        "-n",
        "prod",
        "get",
        "upgraderequests",
        "-o",
        "jsonpath={range .items[*]}{.status.decisions}{\"\\n\"}{end}",
    ];
    let decided = stage.kubectl(&describe).await?;
    ensure!(
        decided.contains("schedule prod"),
        "the record does not name the schedule: {decided}"
    );
    one_edit(stage).await
}

/// One edit unlocks the fleet, another locks it.
async fn one_edit(stage: &mut Stage) -> Result<()> {
    for (file, locked) in [("unlocked.yaml", false), ("three-tiers.yaml", true)] {
        stage.begin(&format!(
            "one edit {} them all",
            if locked { "locks" } else { "unlocks" }
        ));
        apply(stage, file).await?;
        for tier in TIERS {
            until(stage, tier, "as edited", |group| {
                group["status"]["lock"]["locked"] == locked
            })
            .await?;
        }
        stage.kubectl(&["get", "instancegroups", "-A"]).await?;
    }
    // Before the story ends, nothing is left that would surprise.
    apply(stage, "unlocked.yaml").await?;
    for tier in TIERS {
        stage
            .kubectl(&["-n", tier, "delete", "instancegroup", "workers", "--timeout=60s"])
            .await?;
    }
    Ok(())
}

async fn apply(stage: &Stage, file: &str) -> Result<()> {
    let path = format!("{}/examples/settings/{file}", env!("CARGO_MANIFEST_DIR"));
    stage.kubectl(&["-n", HOME, "apply", "-f", &path]).await.map(drop)
}

async fn namespace(stage: &Stage, tier: &str) -> Result<()> {
    stage.kubectl(&["create", "namespace", tier]).await?;
    let label = format!("instancemgr.keikoproj.io/tier={tier}");
    stage.kubectl(&["label", "namespace", tier, &label]).await.map(drop)
}

async fn group(stage: &Stage, tier: &str) -> Result<()> {
    let path = format!("{}/examples/locked-group.yaml", env!("CARGO_MANIFEST_DIR"));
    let mut group: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    group["metadata"]["namespace"] = tier.into();
    let annotations = group["metadata"]["annotations"]
        .as_object_mut()
        .context("annotations")?;
    // The settings lock them, not they themselves.
    annotations.remove("instancemgr.keikoproj.io/lock-upgrades");
    group["spec"]["eks"]["minSize"] = json!(1);
    let applied = stage
        .testbed
        .kubectl_stdin(&["apply", "-f", "-"], &group.to_string())
        .await?;
    println!("$ kubectl -n {tier} apply -f examples/locked-group.yaml   # one node, without its own lock");
    applied.success().map(drop)
}

async fn until(stage: &Stage, tier: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    let what = format!("{tier}: {what}");
    let waiting = stage.testbed.until(PATIENCE, &what, async || {
        let answer = stage
            .testbed
            .kubectl(&["-n", tier, "get", "instancegroup", "workers", "-o", "json"])
            .await?;
        let group: Value = serde_json::from_str(&answer.success()?)?;
        ensure!(holds(&group), "its status is {}", group["status"]);
        Ok(Some(group))
    });
    waiting.await
}

async fn runs(stage: &Stage, tier: &str, image: &str) -> Result<()> {
    let waits =
        |group: &Value| group["status"]["image"]["current"] == image && group["status"]["currentState"] == "Ready";
    until(stage, tier, "on the new image", waits).await?;
    stage.seen(&format!("{tier} runs {image}"));
    Ok(())
}

/// The operator said when it will approve.
async fn announced(stage: &Stage, tier: &str) -> Result<()> {
    let what = format!("{tier}: a date");
    let waiting = stage.testbed.until(PATIENCE, &what, async || {
        let get = [
            "-n",
            tier,
            "get",
            "upgraderequests",
            "-o",
            "jsonpath={.items[*].status.autoApproveAt}",
        ];
        let answer = stage.testbed.kubectl(&get).await?.success()?;
        Ok((!answer.is_empty()).then_some(answer))
    });
    let at = waiting.await?;
    stage.seen(&format!("{tier} waits until {at}"));
    Ok(())
}

/// Nothing has started, although the auto-approver has looked at every request since the clock was put.
async fn stays(stage: &Stage, tier: &str, image: &str) -> Result<()> {
    let waiting = stage
        .testbed
        .until(PATIENCE, "a look at the requests at the new time", async || {
            Ok(stage.looked_since_the_clock().await?.then_some(()))
        });
    waiting.await?;
    let group = until(stage, tier, "there", |_| true).await?;
    ensure!(
        group["status"]["image"]["current"] != image && group["status"]["rollout"].is_null(),
        "{tier} started early"
    );
    stage.seen(&format!("{tier} has not started"));
    Ok(())
}
