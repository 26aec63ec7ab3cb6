//! As many rollouts at a time as the fleet allows (rule R8).

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams};
use serde_json::json;
use sluice::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};

use super::budgets::pinned_by_a_budget;
use super::scene::{GROUP, PATIENCE, Scene};
use crate::running::Running;
use crate::testbed::{AuditPosition, Testbed, shared_in_turns};

#[tokio::test(flavor = "multi_thread")]
async fn of_two_approved_groups_one_waits_for_the_only_slot() -> Result<()> {
    let (testbed, _turn) = shared_in_turns().await?;
    let flags = [("--leader-elect", "false"), ("--max-concurrent-rollouts", "1")];
    let _running = Running::start_with(testbed, &flags).await?;
    let (one, other) = tokio::try_join!(held(testbed, "slot-one"), held(testbed, "slot-other"))?;
    let before = testbed.audit_position()?;
    let (image_of_one, image_of_other) = tokio::try_join!(one.approve_new("b"), other.approve_new("b"))?;

    let first = testbed
        .until(PATIENCE, "one that starts", async || {
            for scene in [&one, &other] {
                if request(scene).await?.phase() == Phase::InProgress {
                    return Ok(Some(scene.ground.name.clone()));
                }
            }
            Ok(None)
        })
        .await?;
    let (first, second) = if first == one.ground.name {
        ((&one, &image_of_one), (&other, &image_of_other))
    } else {
        ((&other, &image_of_other), (&one, &image_of_one))
    };
    first.0.until_blocked("PodDisruptionBudget").await?;
    testbed
        .until(PATIENCE, "the other to wait", async || {
            let status = request(second.0).await?.status.context("a status")?;
            let reason = status.waits_for.map(|waits| waits.reason);
            ensure!(
                reason.as_deref() == Some("WaitsForSlot"),
                "{:?}: {reason:?}",
                status.phase
            );
            Ok(Some(()))
        })
        .await?;
    second.0.after_more_looks().await?;
    ensure!(request(second.0).await?.phase() == Phase::Approved);

    for (scene, new) in [first, second] {
        scene.until_blocked("PodDisruptionBudget").await?;
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(scene.client(), &scene.ground.name);
        budgets.delete("keeper", &DeleteParams::default()).await?;
        scene.until_phase(Phase::Succeeded).await?;
        scene.until_clean(new, 1).await?;
    }
    ensure!(most_at_a_time(testbed, before)? == 1, "two were in progress");
    tokio::try_join!(one.delete(GROUP), other.delete(GROUP))?;
    Ok(())
}

/// A group whose rollout cannot end before its budget goes.
async fn held<'a>(testbed: &'a Testbed, name: &str) -> Result<Scene<'a>> {
    let scene = Scene::on(testbed, name, 1, json!({})).await?;
    let node = scene.in_order().await?.pop().context("a node")?;
    pinned_by_a_budget(&scene, &node).await?;
    Ok(scene)
}

async fn request(scene: &Scene<'_>) -> Result<InstanceGroupUpgradeRequest> {
    let all = scene.requests.list(&kube::api::ListParams::default()).await?.items;
    all.into_iter().next().context("no request")
}

/// How many requests were in progress at a time, by what was written.
fn most_at_a_time(testbed: &Testbed, after: AuditPosition) -> Result<usize> {
    let (mut running, mut most) = (BTreeSet::new(), 0);
    for event in testbed.audit_after(after)? {
        let object = &event["objectRef"];
        if object["resource"] != "instancegroupupgraderequests" || object["subresource"] != "status" {
            continue;
        }
        let key = format!("{}/{}", object["namespace"], object["name"]);
        match event["responseObject"]["status"]["phase"].as_str() {
            Some("InProgress") => drop(running.insert(key)),
            Some(_) => drop(running.remove(&key)),
            None => {}
        }
        most = most.max(running.len());
    }
    Ok(most)
}
