//! Nodes that go for good are drained first: a lowered `maxSize`, a deleted group (design section 2).

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::budgets::evictions;
use super::scene::{GROUP, OPERATOR, PATIENCE, Scene};
use crate::testbed::{AuditPosition, Call};

#[tokio::test(flavor = "multi_thread")]
async fn a_lowered_upper_bound_drains_the_surplus_first() -> Result<()> {
    let scene = Scene::locked("lower", 3, json!({})).await?;
    pods(&scene).await?;
    let before = Before::now(&scene).await?;
    scene
        .patch(GROUP, json!({ "spec": { "eks": { "minSize": 1, "maxSize": 2 } } }))
        .await?;
    scene.until_state(GROUP, "Ready").await?;
    scene.until_images(GROUP, &scene.old, 2).await?;
    let calls = before.calls(&scene).await?;
    let [lower, terminate, update] = calls.as_slice() else {
        anyhow::bail!("{calls:?}");
    };
    ensure!(
        lower.parameters.get("MaxSize").map(String::as_str) != Some("2"),
        "{lower:?}"
    );
    let of = |key: &str| terminate.parameters.get(key).map(String::as_str);
    ensure!(
        terminate.action == "TerminateInstanceInAutoScalingGroup",
        "{terminate:?}"
    );
    ensure!(of("ShouldDecrementDesiredCapacity") == Some("true"), "{terminate:?}");
    ensure!(
        update.parameters.get("MaxSize").map(String::as_str) == Some("2"),
        "{update:?}"
    );
    let evicted = evicted(&scene, before.audit).await?;
    ensure!(
        evicted.len() == 1 && evicted[0] < at(terminate)?,
        "{evicted:?}, {terminate:?}"
    );
    scene.until_nothing_left(&[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_group_is_drained_first() -> Result<()> {
    let scene = Scene::locked("drained", 2, json!({})).await?;
    pods(&scene).await?;
    let before = Before::now(&scene).await?;
    scene.delete(GROUP).await?;
    let calls = before.calls(&scene).await?;
    let delete = calls.first().context("calls")?;
    ensure!(delete.action == "DeleteAutoScalingGroup", "{calls:?}");
    let evicted = evicted(&scene, before.audit).await?;
    ensure!(evicted.len() == 2, "{evicted:?}");
    let deleted = at(delete)?;
    ensure!(
        evicted.iter().all(|evicted| *evicted < deleted),
        "{evicted:?}, deleted {deleted}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_need_not_be_drained_is_deleted_at_once() -> Result<()> {
    let scene = Scene::locked("dropped", 2, json!({ "drainOnDelete": false })).await?;
    pods(&scene).await?;
    let before = Before::now(&scene).await?;
    let names = scene.node_names().await?;
    scene.delete(GROUP).await?;
    ensure!(
        evictions(&scene, before.audit).await?.is_empty(),
        "pods were asked to go"
    );
    ensure!(
        scene.node_writes(before.audit, &names)?.is_empty(),
        "nodes were changed"
    );
    Ok(())
}

/// A pod on each node that takes a moment to end.
async fn pods(scene: &Scene<'_>) -> Result<()> {
    let count = u32::try_from(scene.members().await?.len())?;
    let web = scene.workload("web").replicas(count).one_a_node();
    web.gone_after(Duration::from_millis(500)).create(scene.testbed).await?;
    Ok(())
}

struct Before {
    call: u64,
    audit: AuditPosition,
    instances: BTreeSet<String>,
}

impl Before {
    async fn now(scene: &Scene<'_>) -> Result<Self> {
        let members = scene.members().await?.into_iter();
        Ok(Self {
            call: scene.testbed.aws().last_sequence().await?,
            audit: scene.testbed.audit_position()?,
            instances: members.map(|member| member.instance_id).collect(),
        })
    }

    /// The changes at AWS to the group and its instances since then.
    async fn calls(&self, scene: &Scene<'_>) -> Result<Vec<Call>> {
        scene.changes(self.call, &self.instances).await
    }
}

/// When the operator's evictions that went through came.
async fn evicted(scene: &Scene<'_>, after: AuditPosition) -> Result<Vec<Timestamp>> {
    scene
        .testbed
        .until(PATIENCE, "the audit log", async || {
            let mut all = evictions(scene, after).await?;
            all.retain(|it| it.code == 201 && it.user == OPERATOR);
            let times: Vec<Timestamp> = all.iter().map(|it| it.at.parse()).collect::<Result<_, _>>()?;
            Ok((!times.is_empty()).then_some(times))
        })
        .await
}

fn at(call: &Call) -> Result<Timestamp> {
    Ok(call.at.parse()?)
}
