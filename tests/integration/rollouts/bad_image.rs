//! An image whose nodes are never Ready (promise P4, rule R5, cases C35 and D34).

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::ListParams;
use serde_json::json;
use sluice::api::upgrade_request::Phase;

use super::scene::{GROUP, PATIENCE, Scene};
use crate::testbed::{Call, NodeFate};

const FAST: &str = "5s";

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_image_costs_a_locked_group_one_node_and_is_taken_back() -> Result<()> {
    let scene = Scene::locked("bad", 3, json!({ "readyTimeout": FAST, "maxUnavailable": 3 })).await?;
    let story = Story::begin(&scene).await?;
    let bad = story.publish(&scene, NodeFate::NotReady).await?;
    let request = scene.until_request(Phase::Pending).await?;
    let name = request.metadata.name.context("a name")?;
    scene
        .patch_request(&name, json!({ "spec": { "approved": true } }))
        .await?;
    let instance = story.first_of(&scene, &bad).await?;
    let request = scene.until_phase(Phase::Failed).await?;
    let failure = request.status.and_then(|status| status.failure).context("a failure")?;
    ensure!(
        failure.reason == "NodeNeverReady" && failure.instance_id.as_ref() == Some(&instance),
        "{failure:?}"
    );
    story.ends_well(&scene, &instance).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_image_costs_an_unlocked_group_one_node_and_is_taken_back() -> Result<()> {
    let scene = Scene::unlocked("badopen", 3, json!({ "readyTimeout": FAST, "maxUnavailable": 3 })).await?;
    let story = Story::begin(&scene).await?;
    let bad = story.publish(&scene, NodeFate::Never).await?;
    let instance = story.first_of(&scene, &bad).await?;
    story.ends_well(&scene, &instance).await?;
    ensure!(scene.requests.list(&ListParams::default()).await?.items.is_empty());
    Ok(())
}

struct Story {
    before: u64,
    old: BTreeSet<String>,
}

impl Story {
    /// Pods are on the nodes, as they would be.
    async fn begin(scene: &Scene<'_>) -> Result<Self> {
        let web = scene.workload("web").replicas(3).max_unavailable(1);
        web.create(scene.testbed).await?;
        Ok(Self {
            before: scene.testbed.aws().last_sequence().await?,
            old: ids(scene).await?,
        })
    }

    async fn publish(&self, scene: &Scene<'_>, fate: NodeFate) -> Result<String> {
        let aws = scene.testbed.aws();
        let (name, at) = (format!("{}-bad", scene.ground.name), "2026-11-01T00:00:00Z");
        let bad = aws.publish_image(&name, "x86_64", at).await?;
        // Before the operator hears of it.
        aws.set_image_nodes(&bad, fate, Duration::ZERO).await?;
        aws.set_parameter(&scene.parameter(), &bad, at).await?;
        Ok(bad)
    }

    /// Waits for the first instance of an image.
    async fn first_of(&self, scene: &Scene<'_>, image: &str) -> Result<String> {
        scene
            .testbed
            .until(PATIENCE, "an instance of the bad image", async || {
                let mut members = scene.members().await?.into_iter();
                Ok(members.find(|it| it.image_id == image).map(|it| it.instance_id))
            })
            .await
    }

    /// One old node was lost, the pin was back before the bad one went, and nothing moves any more.
    async fn ends_well(&self, scene: &Scene<'_>, bad: &str) -> Result<()> {
        let message = scene.until_condition(GROUP, "UpgradeBlocked").await?;
        ensure!(message.contains("retry-upgrade"), "no way out is told: {message}");
        scene.until_clean(&scene.old, 3).await?;
        let now = ids(scene).await?;
        ensure!(now.intersection(&self.old).count() == 2, "{:?} to {now:?}", self.old);

        let mut ours: BTreeSet<String> = self.old.union(&now).cloned().collect();
        ours.insert(bad.to_owned());
        let told: Vec<String> = self.changes(scene, &ours).await?;
        let lost = self.old.difference(&now).next().context("a lost node")?;
        let story = [
            "CreateLaunchTemplateVersion".to_owned(),
            "pin 2".to_owned(),
            format!("terminate {lost}"),
            "pin 1".to_owned(),
            format!("terminate {bad}"),
        ];
        ensure!(told == story, "{told:#?}");

        let rested = scene.testbed.aws().last_sequence().await?;
        scene.after_more_looks().await?;
        let later = scene.changes(rested, &ours).await?;
        ensure!(later.is_empty(), "it goes on at AWS: {later:?}");
        Ok(())
    }

    /// What was changed at AWS, in its order, but for the process that is suspended meanwhile.
    async fn changes(&self, scene: &Scene<'_>, instances: &BTreeSet<String>) -> Result<Vec<String>> {
        let calls = scene.changes(self.before, instances).await?;
        let told = |call: Call| {
            let of = |key: &str| call.parameters.get(key).cloned().unwrap_or_default();
            match call.action.as_str() {
                "SuspendProcesses" | "ResumeProcesses" => None,
                "UpdateAutoScalingGroup" => Some(format!("pin {}", of("LaunchTemplate.Version"))),
                "TerminateInstanceInAutoScalingGroup" => Some(format!("terminate {}", of("InstanceId"))),
                other => Some(other.to_owned()),
            }
        };
        Ok(calls.into_iter().filter_map(told).collect())
    }
}

async fn ids(scene: &Scene<'_>) -> Result<BTreeSet<String>> {
    let members = scene.members().await?.into_iter();
    Ok(members.map(|member| member.instance_id).collect())
}
