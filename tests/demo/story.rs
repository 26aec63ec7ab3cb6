//! The story: a locked group, a new image, a request, an approval, new nodes.
//!
//! Owns the steps and what has to be seen in each.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bad_image;
use crate::stage::Stage;
use crate::testbed::availability::Availability;
use crate::testbed::deployment::Workload;
use crate::tiers;

/// The parameter behind `latest` for the demo's cluster.
pub const PARAMETER: &str =
    "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";
/// How long a step may take.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The group of the story.
const GROUP: [&str; 4] = ["-n", "team", "instancegroup", "workers"];

/// Plays the story.
pub async fn play(stage: &mut Stage) -> Result<()> {
    let old = create(stage).await?;
    let (web, available) = deploy(stage).await?;
    let before_news = stage.testbed.aws().last_sequence().await?;
    let (new, request) = news(stage).await?;
    scale_out(stage, &old).await?;
    let before_approval = stage.testbed.aws().last_sequence().await?;
    let versions = calls(stage, before_news, "CreateLaunchTemplateVersion").await?;
    ensure!(
        versions == 0,
        "{versions} template versions were made before anybody approved"
    );
    stage.seen("0 launch template versions made before the approval (counted AWS calls)");
    approve(stage, &request).await?;
    replace(stage, &new, before_approval).await?;
    verdict(stage, &request, before_approval).await?;
    aftermath(stage, &old, &new).await?;
    bad_image::play(stage, &new).await?;
    tiers::play(stage, &new).await?;
    served(stage, &web, available).await?;
    cleared(stage).await
}

/// A workload on the group's nodes, with a budget of its own; its pods are counted from here on.
async fn deploy(stage: &mut Stage) -> Result<(Workload, Availability)> {
    stage.begin("a Deployment of 6 runs on the group; its budget lets 1 pod go at a time");
    stage.kubectl(&["create", "namespace", "shop"]).await?;
    let web = Workload::new("shop", "web")
        .replicas(6)
        .max_unavailable(1)
        .ready_after(Duration::from_millis(500))
        .gone_after(Duration::from_millis(500));
    web.create(&stage.testbed).await?;
    stage.kubectl(&["-n", "shop", "get", "poddisruptionbudget"]).await?;
    stage.kubectl(&["-n", "shop", "get", "pods", "-o", "wide"]).await?;
    let available = Availability::start(&stage.testbed, &web).await?;
    Ok((web, available))
}

/// No request would have been refused: the budget held through both rollouts.
async fn served(stage: &mut Stage, web: &Workload, available: Availability) -> Result<()> {
    stage.begin("the workload was served all along");
    let lowest = available.lowest()?;
    ensure!(
        lowest >= 5,
        "only {lowest} of 6 pods were Ready at some moment; the budget allows 5"
    );
    web.ready(&stage.testbed).await?;
    stage.seen(&format!(
        "never fewer than {lowest} of 6 pods Ready, as the budget wants it (watch of the API server)"
    ));
    Ok(())
}

async fn create(stage: &mut Stage) -> Result<String> {
    stage.begin("AWS recommends an image; a locked group of 3 is created");
    let old = publish(
        stage,
        "amazon-eks-node-al2023-x86_64-standard-1.33-v20261101",
        "2026-11-01T12:00:00Z",
    )
    .await?;
    stage.kubectl(&["create", "namespace", "team"]).await?;
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/locked-group.yaml");
    stage.kubectl(&["apply", "-f", example]).await?;
    until_group(stage, "Ready", |group| group["status"]["currentState"] == "Ready").await?;
    stage.kubectl(&["-n", "team", "get", "instancegroups"]).await?;
    images_are(stage, &old, 3).await?;
    stage.seen(&format!("3 instances, all on {old}"));
    Ok(old)
}

async fn news(stage: &mut Stage) -> Result<(String, String)> {
    stage.begin("AWS recommends a newer image: one request waits");
    let new = publish(
        stage,
        "amazon-eks-node-al2023-x86_64-standard-1.33-v20261120",
        "2026-11-20T12:00:00Z",
    )
    .await?;
    let request = stage
        .testbed
        .until(PATIENCE, "one Pending request", async || {
            let list = json(stage, &["-n", "team", "get", "upgraderequest", "-o", "json"]).await?;
            let items = list["items"].as_array().context("a list")?;
            if items.len() > 1 {
                return Ok(Some(Err(anyhow::anyhow!("{} requests for one group", items.len()))));
            }
            Ok(items
                .first()
                .filter(|item| item["status"]["phase"] == "Pending")
                .cloned()
                .map(Ok))
        })
        .await??;
    stage.kubectl(&["-n", "team", "get", "upgraderequest"]).await?;
    ensure!(
        request["spec"]["target"]["imageId"] == new.as_str(),
        "the request is for another image"
    );
    ensure!(
        request["spec"]["reason"] == "ImageDrift",
        "the reason is {}",
        request["spec"]["reason"]
    );
    let name = request["metadata"]["name"].as_str().context("a name")?.to_owned();
    stage.kubectl(&["-n", "team", "get", "instancegroups"]).await?;
    stage
        .kubectl(&["-n", "team", "describe", "upgraderequest", &name])
        .await?;
    Ok((new, name))
}

async fn scale_out(stage: &mut Stage, old: &str) -> Result<()> {
    stage.begin("a scale-out while the request waits boots the approved image");
    stage
        .kubectl(&[
            "-n",
            "team",
            "patch",
            "instancegroup",
            "workers",
            "--type",
            "merge",
            "-p",
            r#"{"spec":{"eks":{"minSize":4}}}"#,
        ])
        .await?;
    images_are(stage, old, 4).await?;
    until_group(stage, "4 Ready nodes", |group| {
        group["status"]["image"]["nodesOnCurrent"] == 4 && condition(group, "NodesReady")
    })
    .await?;
    stage.seen(&format!("4 instances, all on {old}"));
    Ok(())
}

async fn approve(stage: &mut Stage, request: &str) -> Result<()> {
    stage.begin("a person approves");
    stage
        .kubectl(&[
            "-n",
            "team",
            "patch",
            "upgraderequest",
            request,
            "--type",
            "merge",
            "-p",
            r#"{"spec":{"approved":true}}"#,
        ])
        .await?;
    Ok(())
}

/// Follows the rollout from outside, and that never more than one node is missing.
async fn replace(stage: &mut Stage, new: &str, before: u64) -> Result<()> {
    stage.begin("a new version, a new pin, every node replaced one by one");
    let mut fewest = usize::MAX;
    stage
        .testbed
        .until(PATIENCE, "all nodes replaced", async || {
            let nodes = json(stage, &["get", "nodes", "-o", "json"]).await?;
            let ready = nodes["items"]
                .as_array()
                .context("a list")?
                .iter()
                .filter(|node| condition(node, "Ready"))
                .count();
            fewest = fewest.min(ready);
            let instances = stage.testbed.aws().instances().await?;
            Ok((instances.len() == 4 && instances.iter().all(|instance| instance.image_id == new)).then_some(()))
        })
        .await?;
    // Judged here: an error while waiting would only count as "not yet".
    ensure!(fewest >= 3, "only {fewest} of 4 nodes were Ready at some moment");
    let terminated = calls(stage, before, "TerminateInstanceInAutoScalingGroup").await?;
    ensure!(terminated == 4, "{terminated} instances were terminated for 4 nodes");
    stage.seen(&format!(
        "4 instances replaced, never fewer than {fewest} of 4 nodes Ready (API server), 4 terminations (AWS)"
    ));
    Ok(())
}

/// Who came first: the approval in the audit log, or the first write at AWS.
async fn verdict(stage: &mut Stage, request: &str, before: u64) -> Result<()> {
    stage.begin("the audit log and the counted calls agree");
    let audit = stage.testbed.audit()?;
    let approval = audit
        .iter()
        .find(|event| {
            event["verb"] == "patch"
                && event["objectRef"]["name"] == request
                && event["objectRef"]["subresource"].is_null()
                && event["requestObject"]["spec"]["approved"] == true
        })
        .context("the audit log holds no approval")?;
    let approved_at: jiff::Timestamp = approval["requestReceivedTimestamp"]
        .as_str()
        .context("a time")?
        .parse()?;
    let writes: Vec<_> = stage
        .testbed
        .aws()
        .calls(before)
        .await?
        .into_iter()
        .filter(|call| call.mutating)
        .collect();
    let first = writes.first().context("AWS saw no write")?;
    let first_at: jiff::Timestamp = first.at.parse()?;
    ensure!(
        first_at > approved_at,
        "AWS was written at {first_at}, before the approval at {approved_at}"
    );
    ensure!(
        first.action == "CreateLaunchTemplateVersion",
        "the first write was {}",
        first.action
    );
    let order: Vec<&str> = writes.iter().map(|call| call.action.as_str()).collect();
    stage.seen(&format!(
        "approved by {} at {approved_at}; first AWS write {} ms later: {}",
        approval["user"]["username"].as_str().unwrap_or("?"),
        first_at.duration_since(approved_at).as_millis(),
        order.join(", ")
    ));
    Ok(())
}

async fn aftermath(stage: &mut Stage, old: &str, new: &str) -> Result<()> {
    stage.begin("the group is Ready and remembers");
    let group = until_group(stage, "Ready on the new image", |group| {
        group["status"]["currentState"] == "Ready" && group["status"]["image"]["current"] == new
    })
    .await?;
    let image = &group["status"]["image"];
    ensure!(image["previous"] == old, "the previous image is {}", image["previous"]);
    ensure!(image["currentSince"].is_string(), "it does not say since when");
    stage.kubectl(&["-n", "team", "get", "upgraderequest"]).await?;
    stage.kubectl(&["-n", "team", "get", "instancegroups"]).await?;
    stage
        .kubectl(&[
            "-n",
            "team",
            "get",
            "instancegroup",
            "workers",
            "-o",
            "jsonpath={.status.image}",
        ])
        .await?;
    println!();
    let events = stage
        .kubectl(&[
            "-n",
            "team",
            "get",
            "events",
            "--sort-by=.metadata.creationTimestamp",
            "-o",
            "custom-columns=REASON:.reason,NOTE:.message",
        ])
        .await?;
    for reason in [
        "InstanceGroupCreated",
        "UpgradeRequestOpened",
        "UpgradeStarted",
        "NodesDraining",
        "NodesTerminated",
        "UpgradeSucceeded",
    ] {
        ensure!(events.contains(reason), "no Event tells of {reason}");
    }
    Ok(())
}

async fn cleared(stage: &mut Stage) -> Result<()> {
    stage.begin("the workload ends, the group is deleted and leaves nothing behind");
    // With no node to go to its budget would hold the drain up to its time limit.
    stage
        .kubectl(&["-n", "shop", "delete", "deployment", "web", "--cascade=foreground"])
        .await?;
    stage
        .kubectl(&["-n", "team", "delete", "instancegroup", "workers", "--timeout=60s"])
        .await?;
    let left = stage.testbed.aws().instances().await?;
    ensure!(left.is_empty(), "{} instances are left", left.len());
    stage.seen("no instance is left");
    Ok(())
}

pub async fn publish(stage: &Stage, name: &str, at: &str) -> Result<String> {
    let aws = stage.testbed.aws();
    let id = aws.publish_image(name, "x86_64", at).await?;
    aws.set_parameter(PARAMETER, &id, at).await?;
    println!("   AWS now recommends {id} ({name})");
    Ok(id)
}

async fn images_are(stage: &Stage, image: &str, count: usize) -> Result<()> {
    stage
        .testbed
        .until(PATIENCE, &format!("{count} instances on {image}"), async || {
            let instances = stage.testbed.aws().instances().await?;
            // An error would only count as "not yet"; a wrong image is the end.
            if let Some(other) = instances.iter().find(|instance| instance.image_id != image) {
                return Ok(Some(Err(anyhow::anyhow!(
                    "{} boots {}",
                    other.instance_id,
                    other.image_id
                ))));
            }
            Ok((instances.len() == count).then_some(Ok(())))
        })
        .await?
}

pub async fn until_group(stage: &Stage, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    stage
        .testbed
        .until(PATIENCE, &format!("the group: {what}"), async || {
            let mut arguments = vec!["get", "-o", "json"];
            arguments.extend(GROUP);
            let group = json(stage, &arguments).await?;
            Ok(holds(&group).then_some(group))
        })
        .await
}

pub async fn calls(stage: &Stage, after: u64, action: &str) -> Result<usize> {
    Ok(stage
        .testbed
        .aws()
        .calls(after)
        .await?
        .iter()
        .filter(|call| call.action == action)
        .count())
}

pub async fn json(stage: &Stage, arguments: &[&str]) -> Result<Value> {
    Ok(serde_json::from_str(
        &stage.testbed.kubectl(arguments).await?.success()?,
    )?)
}

pub fn condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}
