//! Drains that meet trouble: pods that never end, bare ones, a namespace on its way out (rules R3 and R4, case C40).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use sluice::api::NodeState;
use sluice::api::upgrade_request::Phase;

use super::budgets::{evictions, strategy};
use super::scene::{NodeWrite, PATIENCE, Scene, is_cordoned, record};
use crate::testbed::{Workload, workloads::NEVER_ENDS};

/// The deadline of a drain is kept, its node let go, and the others are replaced meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_never_ends_holds_up_its_own_node_only() -> Result<()> {
    let limit = jiff::SignedDuration::from_secs(4);
    let scene = Scene::locked("stuck", 3, json!({ "drainTimeout": "4s" })).await?;
    let node = scene.in_order().await?.swap_remove(0);
    let pod = stuck_pod(&scene, &node).await?;
    let names = scene.node_names().await?;
    let before = scene.testbed.audit_position()?;
    let new = scene.approve_new("b").await?;
    scene.until_updated(&new, 2).await?;
    scene
        .testbed
        .until(PATIENCE, "the node to be let go", async || {
            let writes = scene.node_writes(before, &names)?;
            let mine = writes.iter().filter(|write| write.node == node);
            Ok(mine.clone().any(NodeWrite::uncordons).then_some(()))
        })
        .await?;
    let writes = scene.node_writes(before, &names)?;
    let mine: Vec<_> = writes.iter().filter(|write| write.node == node).collect();
    ensure!(
        writes[0].node == node && writes[0].cordons(),
        "{} was first",
        writes[0].node
    );
    let let_go = mine.iter().find(|write| write.uncordons()).context("a release")?;
    let took = let_go.at.duration_since(mine[0].at);
    ensure!(
        took >= limit - jiff::SignedDuration::from_secs(1),
        "given up after {took:?}"
    );
    ensure!(
        took <= limit + jiff::SignedDuration::from_secs(5),
        "given up only after {took:?}"
    );
    ensure!(record(&let_go.after).is_some_and(|record| record.state == NodeState::GaveUp));
    let request = scene.until_phase(Phase::InProgress).await?;
    ensure!(!request.is_terminal());
    ensure!(
        scene
            .members()
            .await?
            .iter()
            .any(|member| member.private_dns_name == node)
    );

    let pods: Api<Pod> = Api::namespaced(scene.client(), "stuck");
    pods.delete(&pod, &DeleteParams::default().grace_period(0)).await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 3).await
}

/// A pod on this node that stays Terminating; its successor does not.
pub async fn stuck_pod(scene: &Scene<'_>, node: &str) -> Result<String> {
    let workload = scene.workload("stays").on_nodes("kubernetes.io/hostname", node);
    let pod = workload.create(scene.testbed).await?.remove(0).name_any();
    let pods: Api<Pod> = Api::namespaced(scene.client(), workload.namespace());
    let patch = json!({ "metadata": { "annotations": { NEVER_ENDS: "true" } } });
    pods.patch(&pod, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(pod)
}

/// Nobody would make it anew; it goes when the strategy says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_pod_goes_only_when_the_strategy_says_so() -> Result<()> {
    let scene = Scene::locked("bare", 1, json!({})).await?;
    let pods: Api<Pod> = Api::namespaced(scene.client(), "bare");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alone" },
        "spec": {
            "nodeSelector": { "sluice.test/group": scene.scaling_group() },
            "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "main", "image": "example/main:1" }],
        },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?)
        .await?;
    scene
        .testbed
        .until(PATIENCE, "the pod to run", async || {
            let pod = pods.get("alone").await?;
            Ok(crate::testbed::deployment::is_available(&pod).then_some(()))
        })
        .await?;
    let before = scene.testbed.audit_position()?;
    let new = scene.approve_new("b").await?;
    let message = scene.until_blocked("BarePod").await?;
    ensure!(
        message.contains("bare/alone") && message.contains("deleteBarePods"),
        "{message}"
    );
    scene.after_more_looks().await?;
    ensure!(pods.get_opt("alone").await?.is_some() && evictions(&scene, before).await?.is_empty());
    ensure!(scene.node_objects().await?.iter().all(|node| !is_cordoned(node)));

    strategy(&scene, json!({ "deleteBarePods": true })).await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 1).await?;
    let answers = evictions(&scene, before).await?;
    ensure!(
        answers.iter().any(|it| it.pod == "alone" && it.code == 201),
        "{answers:?}"
    );
    Ok(())
}

/// A budget holds a node in hand; then the namespace of both goes, and the drain goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_deleted_does_not_hold_up_a_drain() -> Result<()> {
    let scene = Scene::locked("leaving", 1, json!({})).await?;
    let team = Workload::new("leaving-team", "web").on_group(&scene.scaling_group());
    // The successor of the first finds no node: the second may not go.
    let team = team
        .replicas(2)
        .max_unavailable(1)
        .gone_after(Duration::from_millis(500));
    team.create(scene.testbed).await?;
    let before = scene.testbed.audit_position()?;
    let new = scene.approve_new("b").await?;
    let refused = scene
        .testbed
        .until(PATIENCE, "a refused eviction", async || {
            let all = scene.testbed.evictions(before)?;
            Ok(all
                .into_iter()
                .find(|it| it.namespace == team.namespace() && it.code == 429))
        })
        .await?;
    ensure!(refused.causes == ["DisruptionBudget"], "{refused:?}");
    scene
        .testbed
        .kubectl(&["delete", "namespace", team.namespace(), "--wait=false"])
        .await?
        .success()?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 1).await
}
