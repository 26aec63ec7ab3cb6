//! What people do in the middle of a rollout: cancel, delete, lock, cordon, terminate (cases D7, D9, C36, rules L8, L11, R5, R6).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;
use sluice::api::NodeState;
use sluice::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};

use super::budgets::pinned_by_a_budget;
use super::drains::stuck_pod;
use super::scene::{GROUP, PATIENCE, Scene, is_cordoned, record};

/// New nodes that are Ready stay, the rest stays old, and so does what boots next.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_in_the_middle_keeps_what_is_done_and_blocks_the_rest() -> Result<()> {
    let (scene, new, request) = halfway("cancel", true).await?;
    let cancel = json!({ "spec": { "cancelled": true } });
    scene
        .patch_request(&request.context("a request")?.name_any(), cancel)
        .await?;
    scene.until_phase(Phase::Cancelled).await?;
    stopped(&scene, &new).await?;
    let message = scene.until_condition(GROUP, "UpgradeBlocked").await?;
    ensure!(message.contains("retry-upgrade"), "{message}");
    scene.after_more_looks().await?;
    let all = scene.requests.list(&ListParams::default()).await?.items;
    ensure!(all.len() == 1 && all[0].phase() == Phase::Cancelled, "it asks again");
    stopped(&scene, &new).await
}

/// D7, L11: to delete a request that runs is to cancel it, and its block outlives it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_deleted_in_the_middle_is_cancelled_and_its_block_stays() -> Result<()> {
    let (scene, new, request) = halfway("deleted", true).await?;
    let name = request.context("a request")?.name_any();
    scene.requests.delete(&name, &DeleteParams::default()).await?;
    scene
        .testbed
        .until(PATIENCE, "the request to be gone", async || {
            Ok(scene.requests.get_opt(&name).await?.is_none().then_some(()))
        })
        .await?;
    stopped(&scene, &new).await?;
    scene.until_condition(GROUP, "UpgradeBlocked").await?;
    scene.after_more_looks().await?;
    ensure!(
        scene.requests.list(&ListParams::default()).await?.items.is_empty(),
        "it asks again"
    );
    stopped(&scene, &new).await
}

/// D9, L8: the rest of a rollout that needed no approval needs one once the group is locked.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_in_the_middle_stops_and_asks_for_the_rest() -> Result<()> {
    let (scene, new, _) = halfway("lockit", false).await?;
    let lock = json!({ "metadata": { "annotations": { "instancemgr.keikoproj.io/lock-upgrades": "true" } } });
    scene.patch(GROUP, lock).await?;
    let request = scene.until_phase(Phase::Pending).await?;
    ensure!(
        request.spec.target.image_id.as_ref() == Some(&new),
        "{:?}",
        request.spec.target
    );
    stopped(&scene, &new).await
}

/// A group of three in the middle of a rollout: two nodes are done, a budget holds the last one.
async fn halfway(name: &str, locked: bool) -> Result<(Scene<'static>, String, Option<InstanceGroupUpgradeRequest>)> {
    let scene = if locked {
        Scene::locked(name, 3, json!({})).await?
    } else {
        Scene::unlocked(name, 3, json!({})).await?
    };
    let last = scene.in_order().await?.pop().context("a node")?;
    pinned_by_a_budget(&scene, &last).await?;
    let (new, request) = if locked {
        let new = scene.approve_new("b").await?;
        (new, Some(scene.until_phase(Phase::InProgress).await?))
    } else {
        (scene.publish("b").await?, None)
    };
    scene.until_updated(&new, 2).await?;
    scene.until_blocked("PodDisruptionBudget").await?;
    ensure!(scene.scaling_group_seen().await?.pin == "2");
    Ok((scene, new, request))
}

/// Pinned back, two nodes new and one old, nothing of ours left.
async fn stopped(scene: &Scene<'_>, new: &str) -> Result<()> {
    scene
        .testbed
        .until(PATIENCE, "the pin to be back", async || {
            let pin = scene.scaling_group_seen().await?.pin;
            ensure!(pin == "1", "{pin}");
            Ok(Some(()))
        })
        .await?;
    scene.until_nothing_left(&[]).await?;
    let members = scene.members().await?;
    let of = |image: &str| members.iter().filter(|member| member.image_id == image).count();
    ensure!((of(new), of(&scene.old)) == (2, 1), "{members:?}");
    Ok(())
}

/// Promise P5: given up, cancelled or not touched at all, a node that a person cordoned stays so. A full rollout takes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_cordoned_by_a_person_stays_so_until_it_is_replaced() -> Result<()> {
    let scene = Scene::locked("cordoned", 2, json!({ "drainTimeout": "3s" })).await?;
    let mut order = scene.in_order().await?;
    let (other, cordoned) = (order.pop().context("a node")?, order.pop().context("a node")?);
    let pod = stuck_pod(&scene, &cordoned).await?;
    pinned_by_a_budget(&scene, &other).await?;
    let nodes: Api<Node> = Api::all(scene.client());
    nodes.cordon(&cordoned).await?;
    let names = scene.node_names().await?;
    let before = scene.testbed.audit_position()?;

    scene.approve_new("b").await?;
    let given_up = scene
        .testbed
        .until(PATIENCE, "the drain to be given up", async || {
            let node = nodes.get(&cordoned).await?;
            let gave_up = record(&node).is_some_and(|record| record.state == NodeState::GaveUp);
            Ok(gave_up.then_some(node))
        })
        .await?;
    ensure!(is_cordoned(&given_up), "given up, it was uncordoned");
    let request = scene.until_phase(Phase::InProgress).await?;
    scene
        .patch_request(&request.name_any(), json!({ "spec": { "cancelled": true } }))
        .await?;
    scene.until_phase(Phase::Cancelled).await?;
    scene.until_nothing_left(&[&cordoned]).await?;
    let writes = scene.node_writes(before, &names)?;
    let mine: Vec<_> = writes.iter().filter(|write| write.node == cordoned).collect();
    ensure!(
        mine.len() >= 2 && mine.iter().all(|write| is_cordoned(&write.after)),
        "{mine:?}"
    );

    let pods: Api<Pod> = Api::namespaced(scene.client(), &scene.ground.name);
    pods.delete(&pod, &DeleteParams::default().grace_period(0)).await?;
    scene.workload("keeper").max_unavailable(1).apply(scene.testbed).await?;
    let new = scene.approve_new("c").await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 2).await
}

/// C36: what somebody else terminates or EC2 takes back in the middle is done or replaced, and the rollout goes on.
#[tokio::test(flavor = "multi_thread")]
async fn instances_that_vanish_in_the_middle_do_not_stop_a_rollout() -> Result<()> {
    let scene = Scene::locked("vanish", 3, json!({})).await?;
    let order = scene.in_order().await?;
    let [first, second, _] = order.as_slice() else {
        anyhow::bail!("{order:?}");
    };
    let stuck = stuck_pod(&scene, first).await?;
    let (first_id, second_id) = (scene.instance_of(first).await?, scene.instance_of(second).await?);
    let before = scene.testbed.aws().last_sequence().await?;
    let new = scene.approve_new("b").await?;
    let nodes: Api<Node> = Api::all(scene.client());
    scene
        .testbed
        .until(PATIENCE, "the first node in hand", async || {
            Ok(is_cordoned(&nodes.get(first).await?).then_some(()))
        })
        .await?;
    // One that nobody has touched, without notice, and the one in hand: before the rollout could go on to the other.
    scene.testbed.aws().interrupt(&second_id, Duration::ZERO).await?;
    scene.terminate(&first_id).await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 3).await?;
    let ids = [first_id, second_id];
    let mut told = scene.testbed.aws().calls(before).await?;
    told.retain(|call| {
        call.action == "TerminateInstanceInAutoScalingGroup"
            && call.parameters.get("InstanceId").is_some_and(|id| ids.contains(id))
    });
    ensure!(told.len() == 1, "the operator terminated what was gone: {told:?}");
    let pods: Api<Pod> = Api::namespaced(scene.client(), &scene.ground.name);
    ensure!(pods.get_opt(&stuck).await?.is_none());
    Ok(())
}
