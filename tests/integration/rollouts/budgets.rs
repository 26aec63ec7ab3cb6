//! Disruption budgets: kept, waited for, named (promise P5, rule R4, case C39).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use sluice::api::annotation;
use sluice::api::upgrade_request::Phase;

use super::scene::{GROUP, OPERATOR, PATIENCE, Scene, image_of, is_cordoned, leftovers};
use crate::testbed::{Availability, Eviction, Workload};

/// Pods with a budget of one move, one after the other, while two nodes may go at a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_kept_through_a_whole_rollout() -> Result<()> {
    let scene = Scene::locked("kept", 4, json!({ "maxUnavailable": 2 })).await?;
    let web = scene.workload("web").replicas(8).max_unavailable(1);
    let web = web.ready_after(Duration::from_millis(500));
    web.create(scene.testbed).await?;
    let record = Availability::start(scene.testbed, &web).await?;
    let line = super::line::Line::start(&scene).await?;
    let before = scene.testbed.audit_position()?;
    let new = scene.approve_new("b").await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 4).await?;
    web.ready(scene.testbed).await?;
    ensure!(record.lowest()? == 7, "Ready pods: {:?}", record.counts()?);
    ensure!(
        line.fewest()? == 2,
        "two nodes may be away at a time, {} served",
        line.fewest()?
    );
    let answers = evictions(&scene, before).await?;
    ensure!(
        answers
            .iter()
            .any(|it| it.code == 429 && it.causes == ["DisruptionBudget"]),
        "nothing was refused: {answers:?}"
    );
    ensure!(
        answers
            .iter()
            .all(|it| it.user == OPERATOR && matches!(it.code, 201 | 404 | 429))
    );
    Ok(())
}

/// Told before anything is touched, and over once the budget is relaxed.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_can_never_be_met_is_named_before_a_node_is_cordoned() -> Result<()> {
    let scene = Scene::locked("never", 2, json!({})).await?;
    let web = scene.workload("web").replicas(2).one_a_node();
    web.clone().min_available(2).create(scene.testbed).await?;
    budget_allows(&scene, "web", 0).await?;
    let before = scene.testbed.audit_position()?;
    let names = scene.node_names().await?;
    let new = scene.approve_new("b").await?;
    let message = scene.until_blocked("PodDisruptionBudget").await?;
    ensure!(message.contains("never/web never lets pod"), "{message}");
    scene.after_more_looks().await?;
    let cordons: Vec<_> = scene
        .node_writes(before, &names)?
        .into_iter()
        .filter(super::scene::NodeWrite::cordons)
        .collect();
    ensure!(cordons.is_empty(), "cordoned: {cordons:?}");
    ensure!(evictions(&scene, before).await?.is_empty(), "it was asked to go");
    ensure!(scene.node_objects().await?.iter().all(|node| !is_cordoned(node)));

    // Pods that have to be apart move one at a time: room for one is enough.
    scene
        .workload("web")
        .replicas(2)
        .max_unavailable(1)
        .apply(scene.testbed)
        .await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 2).await
}

/// Nobody can evict a pod with two budgets; both are named.
#[tokio::test(flavor = "multi_thread")]
async fn two_budgets_on_one_pod_are_both_named() -> Result<()> {
    let scene = Scene::locked("two", 1, json!({})).await?;
    let web = scene.workload("web").max_unavailable(1);
    web.create(scene.testbed).await?;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(scene.client(), "two");
    let second = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "second" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    budgets
        .create(&PostParams::default(), &serde_json::from_value(second)?)
        .await?;
    budget_allows(&scene, "second", 1).await?;
    let before = scene.testbed.audit_position()?;
    let new = scene.approve_new("b").await?;
    let message = scene.until_blocked("SeveralBudgets").await?;
    ensure!(
        message.contains("(second, web)") || message.contains("(web, second)"),
        "{message}"
    );
    scene.after_more_looks().await?;
    let names = scene.node_names().await?;
    ensure!(
        scene.node_writes(before, &names)?.iter().all(|write| !write.cordons()),
        "a node was cordoned"
    );
    budgets.delete("second", &DeleteParams::default()).await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 1).await
}

/// C41 and rule R3: fresh nodes are kept from cluster-autoscaler, old ones are avoided, both until the end only.
#[tokio::test(flavor = "multi_thread")]
async fn fresh_nodes_are_protected_until_the_end_and_not_afterwards() -> Result<()> {
    let scene = Scene::locked("fresh", 3, json!({})).await?;
    let last = scene.in_order().await?.pop().context("a node")?;
    let keeper = pinned_by_a_budget(&scene, &last).await?;
    let new = scene.approve_new("b").await?;
    scene.until_updated(&new, 2).await?;
    scene.until_blocked("PodDisruptionBudget").await?;
    scene
        .testbed
        .until(PATIENCE, "protected and avoided nodes", async || {
            for node in scene.node_objects().await? {
                let left = leftovers(&node);
                let protected = left.iter().any(|key| key == annotation::SCALE_DOWN_DISABLED);
                let avoided = left.iter().any(|key| key == sluice::api::label::TAINT_UPGRADING);
                let fresh = image_of(&node) == new;
                ensure!(protected == fresh && avoided != fresh, "fresh: {fresh}, {left:?}");
            }
            Ok(Some(()))
        })
        .await?;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(scene.client(), keeper.namespace());
    budgets.delete(keeper.name(), &DeleteParams::default()).await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 3).await
}

/// A pod on this node that its budget never lets go.
pub async fn pinned_by_a_budget(scene: &Scene<'_>, node: &str) -> Result<Workload> {
    let keeper = scene
        .workload("keeper")
        .on_nodes("kubernetes.io/hostname", node)
        .min_available(1);
    keeper.create(scene.testbed).await?;
    budget_allows(scene, "keeper", 0).await?;
    Ok(keeper)
}

/// The answers to evictions in the namespace of a test.
pub async fn evictions(scene: &Scene<'_>, after: crate::testbed::AuditPosition) -> Result<Vec<Eviction>> {
    let all = scene.testbed.evictions(after)?;
    Ok(all.into_iter().filter(|it| it.namespace == scene.ground.name).collect())
}

/// Waits until a budget was counted and allows this many disruptions.
pub async fn budget_allows(scene: &Scene<'_>, name: &str, count: i32) -> Result<()> {
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(scene.client(), &scene.ground.name);
    scene
        .testbed
        .until(PATIENCE, &format!("{name} to allow {count}"), async || {
            let budget = budgets.get(name).await?;
            let status = budget.status.context("not counted yet")?;
            ensure!(
                status.observed_generation == budget.metadata.generation,
                "counted before"
            );
            ensure!(
                status.current_healthy > 0 && status.disruptions_allowed == count,
                "{status:?}"
            );
            Ok(Some(()))
        })
        .await
}

/// The strategy of the group from now on.
pub async fn strategy(scene: &Scene<'_>, rolling_update: serde_json::Value) -> Result<()> {
    let patch = json!({ "spec": { "strategy": { "rollingUpdate": rolling_update } } });
    scene.patch(GROUP, patch).await
}
