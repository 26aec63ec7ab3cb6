//! The node that the operator runs on (rule R2).

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams};
use serde_json::json;
use sluice::api::upgrade_request::Phase;

use super::budgets::pinned_by_a_budget;
use super::line::Line;
use super::scene::{GROUP, PATIENCE, Scene, image_of, is_cordoned};
use crate::running::Running;
use crate::testbed::shared_in_turns;

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_node_goes_last_and_never_without_another_to_go_to() -> Result<()> {
    let (testbed, _turn) = shared_in_turns().await?;
    let alone = ("--leader-elect", "false");
    let mut running = Running::start_with(testbed, &[alone]).await?;
    let nodes: Api<Node> = Api::all(testbed.admin());
    let scene = Scene::on(testbed, "own", 3, json!({})).await?;
    // The first by any other order.
    let own = scene.in_order().await?.swap_remove(0);
    running.operator.kill().await?;
    running.relaunch(testbed, &[alone, ("--node-name", &own)]).await?;
    let keeper = pinned_by_a_budget(&scene, &own).await?;
    let line = Line::start(&scene).await?;

    let new = scene.approve_new("b").await?;
    scene.until_updated(&new, 2).await?;
    scene.until_blocked("PodDisruptionBudget").await?;
    ensure!(!is_cordoned(&nodes.get(&own).await?));
    let fresh = scene.node_objects().await?;
    let mut fresh: Vec<_> = fresh.iter().filter(|node| image_of(node) == new).collect();
    let (one, other) = (fresh.pop().context("a node")?, fresh.pop().context("a node")?);
    let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
    let (one, other) = (name(one), name(other));
    nodes.cordon(&one).await?;
    nodes.cordon(&other).await?;
    let message = scene.until_blocked("HostsOperator").await?;
    ensure!(message.contains(&scene.instance_of(&own).await?), "{message}");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(scene.client(), keeper.namespace());
    budgets.delete(keeper.name(), &DeleteParams::default()).await?;
    scene.after_more_looks().await?;
    ensure!(!is_cordoned(&nodes.get(&own).await?), "it went without a refuge");

    nodes.uncordon(&other).await?;
    scene.until_phase(Phase::Succeeded).await?;
    let cordoned = line.cordoned()?;
    let last = cordoned.iter().rfind(|name| **name != one && **name != other);
    ensure!(last == Some(&own), "{cordoned:?}, {own} is its own");
    scene.until_images(GROUP, &new, 3).await?;
    scene.until_nothing_left(&[&one]).await?;
    scene
        .testbed
        .until(PATIENCE, "the group to be gone", async || {
            scene.delete(GROUP).await.map(Some)
        })
        .await
}
