//! How fast a large group rolls out, against the time that its batches cannot do without.
//!
//! Owns one figure: 100 nodes with a budget of 10 %, where booting and draining take a known time. Must not judge by less
//! than all nodes replaced.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::testbed::deployment::Workload;
use crate::testbed::{Installation, NodeOptions, Testbed, TestbedOptions};

const NODES: usize = 100;
const BATCH: usize = 10;
/// From an instance's first sight to its Ready node.
const BOOT: Duration = Duration::from_secs(6);
/// From a pod's eviction to its end.
const DRAIN: Duration = Duration::from_secs(3);
/// What the rollout may take, in times of the sum of its delays.
const LIMIT: f64 = 1.2;
const PATIENCE: Duration = Duration::from_secs(600);
const PARAMETER: &str = "/images/pace";

/// Measures, prints, and compares with the limit.
pub async fn measure() -> Result<()> {
    let testbed = Testbed::start_with("bench", TestbedOptions::default().workloads()).await?;
    let measured = rollout(&testbed).await;
    testbed.stop().await?;
    let took = measured?;
    // The first node goes alone, then full batches: each boots after it was drained.
    let batches = 1 + (NODES - 1).div_ceil(BATCH);
    let floor = (BOOT + DRAIN) * u32::try_from(batches)?;
    let ratio = took.as_secs_f64() / floor.as_secs_f64();
    println!(
        "rollout of {NODES} nodes, {BATCH} at a time: {:.1} s; {batches} batches of {} s boot and {} s drain add up to {} s; ratio {ratio:.2} (limit {LIMIT})",
        took.as_secs_f64(),
        BOOT.as_secs(),
        DRAIN.as_secs(),
        floor.as_secs(),
    );
    ensure!(
        ratio <= LIMIT,
        "the rollout took {ratio:.2} times its delays, more than {LIMIT}"
    );
    Ok(())
}

/// From the approval to the last node.
async fn rollout(testbed: &Testbed) -> Result<Duration> {
    let aws = testbed.aws();
    let seed = aws.seed("demo", "1.33").await?;
    let installation = Installation::of_chart(testbed, &["--set=replicas=0"]).await?;
    let operator = installation.operator(testbed)?.ready().await?;
    let _nodes = testbed.start_nodes(NodeOptions {
        delay: BOOT,
        ..NodeOptions::default()
    })?;
    publish(testbed, "a").await?;
    testbed.kubectl(&["create", "namespace", "team"]).await?.success()?;
    let group = json!({
        "apiVersion": "instancemgr.keikoproj.io/v1alpha1",
        "kind": "InstanceGroup",
        "metadata": { "name": "workers", "namespace": "team", "annotations": {
            "instancemgr.keikoproj.io/os-family": "amazonlinux2023",
            "instancemgr.keikoproj.io/lock-upgrades": "true",
        } },
        "spec": {
            "provisioner": "eks",
            "strategy": { "type": "rollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
            "eks": { "minSize": NODES, "maxSize": NODES + BATCH, "configuration": {
                "clusterName": "demo", "image": format!("ssm://{PARAMETER}"), "instanceType": "m5.large",
                "roleName": seed.role_name, "instanceProfileName": seed.instance_profile_name,
                "subnets": seed.subnet_ids, "securityGroups": ["demo-nodes"],
            } },
        },
    });
    let file = testbed.folder().join("pace.json");
    std::fs::write(&file, serde_json::to_vec(&group)?)?;
    let file = file.to_str().context("a path")?;
    testbed.kubectl(&["apply", "-f", file]).await?.success()?;
    until(testbed, "Ready", |group| group["status"]["currentState"] == "Ready").await?;
    println!("{NODES} nodes are Ready");
    testbed.kubectl(&["create", "namespace", "shop"]).await?.success()?;
    let web = Workload::new("shop", "web")
        .replicas(u32::try_from(NODES)?)
        .gone_after(DRAIN);
    web.create(testbed).await?;
    println!("{NODES} pods are Ready");
    let image = publish(testbed, "b").await?;
    let waiting = until(testbed, "a request", |group| {
        group["status"]["upgradeRequest"].is_string()
    })
    .await?;
    let request = waiting["status"]["upgradeRequest"]
        .as_str()
        .context("a name")?
        .to_owned();
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
    let started = Instant::now();
    testbed.kubectl(&patch).await?.success()?;
    until(testbed, "all replaced", |group| {
        group["status"]["image"]["current"] == image.as_str()
    })
    .await?;
    let took = started.elapsed();
    let instances = aws.instances().await?;
    ensure!(
        instances.len() == NODES && instances.iter().all(|instance| instance.image_id == image),
        "not all {NODES} instances were replaced"
    );
    operator.terminate(Duration::from_secs(30)).await?;
    Ok(took)
}

async fn publish(testbed: &Testbed, name: &str) -> Result<String> {
    let aws = testbed.aws();
    let at = "2026-11-01T00:00:00Z";
    let id = aws.publish_image(&format!("pace-{name}"), "x86_64", at).await?;
    aws.set_parameter(PARAMETER, &id, at).await?;
    Ok(id)
}

async fn until(testbed: &Testbed, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    let mut told = String::new();
    let found = testbed
        .until(PATIENCE, &format!("the group: {what}"), async || {
            let get = ["-n", "team", "get", "instancegroup", "workers", "-o", "json"];
            let group: Value = serde_json::from_str(&testbed.kubectl(&get).await?.success()?)?;
            let progress = group["status"]["rollout"]["progress"].as_str().unwrap_or_default();
            if progress != told {
                progress.clone_into(&mut told);
                println!("  {progress}");
            }
            Ok(holds(&group).then_some(group))
        })
        .await?;
    Ok(found)
}
