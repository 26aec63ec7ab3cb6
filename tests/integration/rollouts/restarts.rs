//! An operator that is killed again and again in one rollout (promises P3 and P7, cases C34 and D22).

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice::api::upgrade_request::Phase;

use super::line::Line;
use super::scene::{GROUP, NodeWrite, OPERATOR, PATIENCE, Scene};
use crate::running::Running;
use crate::testbed::shared_in_turns;

/// How often it is killed.
const KILLS: usize = 20;
/// Nodes of the group, and how many may be away.
const SIZE: usize = 6;
const BUDGET: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_twenty_moments_it_works_on_the_same_nodes_and_leaves_nothing() -> Result<()> {
    let (testbed, _turn) = shared_in_turns().await?;
    let flags = [("--leader-elect", "false")];
    let mut running = Running::start_with(testbed, &flags).await?;
    let scene = Scene::on(
        testbed,
        "killed",
        SIZE,
        json!({ "maxUnavailable": BUDGET, "drainOnDelete": false }),
    )
    .await?;
    let web = scene.workload("web").replicas(12).max_unavailable(4);
    web.gone_after(Duration::from_millis(300)).create(testbed).await?;
    let old: BTreeSet<String> = scene.members().await?.into_iter().map(|it| it.instance_id).collect();
    let names = scene.node_names().await?;
    let (before, audit) = (testbed.aws().last_sequence().await?, testbed.audit_position()?);
    let line = Line::start(&scene).await?;

    let new = scene.approve_new("b").await?;
    let mut moments = Moments(34);
    for kill in 0..KILLS {
        after_writes(&scene, moments.next()).await?;
        running.operator.kill().await?;
        ensure!(in_progress(&scene).await?, "the rollout was over before kill {kill}");
        running.relaunch(testbed, &flags).await?;
    }
    succeeded(&scene).await?;
    scene.until_clean(&new, SIZE).await?;

    ensure!(line.fewest()? >= SIZE - BUDGET, "only {} nodes served", line.fewest()?);
    let calls = testbed.aws().calls(before).await?;
    let gone: Vec<(String, String)> = calls
        .iter()
        .filter(|call| call.action == "TerminateInstanceInAutoScalingGroup" && call.status == Some(200))
        .filter_map(|call| Some((call.parameters.get("InstanceId")?.clone(), call.at.clone())))
        .collect();
    ensure!(gone.len() == SIZE, "{} terminations", gone.len());
    let gone: BTreeSet<String> = gone.into_iter().map(|(id, _)| id).collect();
    ensure!(gone == old, "{gone:?} went, {old:?} were there");

    let writes = scene.node_writes(audit, &names)?;
    let cordons: Vec<&NodeWrite> = writes.iter().filter(|write| write.cordons()).collect();
    ensure!(cordons.len() == SIZE, "cordoned {} times", cordons.len());
    ensure!(!writes.iter().any(NodeWrite::uncordons), "a node was let go");
    scene.delete(GROUP).await?;
    running.operator.alive()
}

/// How long it may take to the end. An eviction that was cut off with the operator can be counted by its budget and never
/// reach the pod; the disruption controller forgets it after two minutes, and until then the budget may have no room.
const TO_THE_END: Duration = Duration::from_mins(5);

async fn succeeded(scene: &Scene<'_>) -> Result<()> {
    let ended = scene.testbed.until(TO_THE_END, "the request to succeed", async || {
        let requests = scene.requests.list(&kube::api::ListParams::default()).await?.items;
        Ok(requests
            .iter()
            .any(|request| request.phase() == Phase::Succeeded)
            .then_some(()))
    });
    let Err(error) = ended.await else { return Ok(()) };
    let what = [
        "-n",
        &scene.ground.name,
        "get",
        "pods,poddisruptionbudgets",
        "-o",
        "wide",
    ];
    let nodes = scene
        .testbed
        .kubectl(&["get", "nodes", "-o", "wide"])
        .await?
        .success()?;
    anyhow::bail!("{error:#}\n{}\n{nodes}", scene.testbed.kubectl(&what).await?.success()?)
}

async fn in_progress(scene: &Scene<'_>) -> Result<bool> {
    let requests = scene.requests.list(&kube::api::ListParams::default()).await?.items;
    Ok(requests.iter().all(|request| !request.is_terminal()))
}

/// Waits until the operator has written this often to the API server.
async fn after_writes(scene: &Scene<'_>, count: usize) -> Result<()> {
    let from = scene.testbed.audit_position()?;
    let writes = scene.testbed.until(PATIENCE, "the operator to write", async || {
        let events = scene.testbed.audit_after(from)?;
        let ours = events.iter().filter(|event| event["user"]["username"] == OPERATOR);
        Ok((ours.count() >= count).then_some(()))
    });
    writes.await.context("no moment to kill it at")
}

/// Numbers from 1 to 4 that look random and are the same in each run.
struct Moments(u64);

impl Moments {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        1 + (self.0 >> 32) as usize % 4
    }
}
