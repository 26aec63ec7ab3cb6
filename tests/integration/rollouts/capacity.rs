//! When no instance comes, or none can: shortages, standby, suspended processes (rules R5 and R6, promise P13).

use anyhow::{Result, ensure};
use aws_sdk_autoscaling::Client;
use serde_json::json;
use sluice::api::upgrade_request::Phase;

use super::scene::{GROUP, PATIENCE, Scene};
use crate::testbed::Shortage;

const WORDS: &str = "We currently do not have sufficient m5.large capacity";

/// Told in Auto Scaling's words, and over once there is capacity.
#[tokio::test(flavor = "multi_thread")]
async fn a_shortage_that_ends_in_time_only_delays_a_rollout() -> Result<()> {
    let scene = Scene::locked("short", 2, json!({})).await?;
    let (new, shortage) = approved_in_a_shortage(&scene).await?;
    scene.testbed.aws().end_shortage(&shortage).await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 2).await
}

/// The same without an end: back to the image that could be launched.
#[tokio::test(flavor = "multi_thread")]
async fn a_shortage_without_end_stops_a_rollout_after_one_node() -> Result<()> {
    let scene = Scene::locked("shorter", 2, json!({ "readyTimeout": "8s" })).await?;
    approved_in_a_shortage(&scene).await?;
    let request = scene.until_phase(Phase::Failed).await?;
    let failure = request.status.and_then(|status| status.failure).unwrap_or_default();
    let words = failure.message.unwrap_or_default();
    ensure!(
        failure.reason == "LaunchFailed" && words.contains(WORDS),
        "{}: {words}",
        failure.reason
    );
    scene.until_clean(&scene.old, 2).await?;
    ensure!(scene.scaling_group_seen().await?.pin == "1");
    let message = scene.until_condition(GROUP, "UpgradeBlocked").await?;
    ensure!(message.contains("retry-upgrade"), "{message}");
    Ok(())
}

/// No instance of the new image comes, and the group says why.
async fn approved_in_a_shortage(scene: &Scene<'_>) -> Result<(String, String)> {
    let aws = scene.testbed.aws();
    let at = "2026-11-01T00:00:00Z";
    let new = aws
        .publish_image(&format!("{}-b", scene.ground.name), "x86_64", at)
        .await?;
    let shortage = Shortage::of_group(&scene.scaling_group()).of_image(&new);
    let shortage = aws.begin_shortage(shortage).await?;
    aws.set_parameter(&scene.parameter(), &new, at).await?;
    scene.approve().await?;
    scene
        .until_group(GROUP, "AWS's words", |group| {
            let message = group.status.as_ref().and_then(|status| status.message.as_deref());
            message.is_some_and(|message| message.contains(WORDS))
        })
        .await?;
    Ok((new, shortage))
}

/// Somebody keeps Auto Scaling from launching: nothing is taken before that is over.
#[tokio::test(flavor = "multi_thread")]
async fn suspended_launches_hold_a_rollout_before_its_first_node() -> Result<()> {
    let scene = Scene::locked("suspended", 2, json!({})).await?;
    let client = Client::new(&scene.testbed.aws().sdk_config());
    let group = scene.scaling_group();
    let suspend = client.suspend_processes().auto_scaling_group_name(&group);
    suspend.scaling_processes("Launch").send().await?;
    let (before, names) = (scene.testbed.audit_position()?, scene.node_names().await?);
    let new = scene.approve_new("b").await?;
    let message = scene.until_blocked("LaunchSuspended").await?;
    ensure!(message.contains("process Launch is suspended"), "{message}");
    scene.after_more_looks().await?;
    ensure!(
        scene.node_writes(before, &names)?.iter().all(|write| !write.cordons()),
        "a node was cordoned"
    );
    let resume = client.resume_processes().auto_scaling_group_name(&group);
    resume.scaling_processes("Launch").send().await?;
    scene.until_phase(Phase::Succeeded).await?;
    scene.until_clean(&new, 2).await
}

/// An instance that a person looks into is left alone until it is back.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_in_standby_is_waited_for() -> Result<()> {
    let scene = Scene::locked("standby", 2, json!({})).await?;
    let client = Client::new(&scene.testbed.aws().sdk_config());
    let node = scene.in_order().await?.swap_remove(0);
    let instance = scene.instance_of(&node).await?;
    let enter = client.enter_standby().auto_scaling_group_name(scene.scaling_group());
    let enter = enter.instance_ids(&instance).should_decrement_desired_capacity(false);
    enter.send().await?;
    let new = scene.approve_new("b").await?;
    scene.until_updated(&new, 2).await?;
    let message = scene.until_blocked("InstanceInStandby").await?;
    ensure!(message.contains(&instance), "{message}");
    scene.after_more_looks().await?;
    let members = scene.members().await?;
    let it = members.iter().find(|member| member.instance_id == instance);
    ensure!(
        it.is_some_and(|member| member.lifecycle_state == "Standby"),
        "{members:?}"
    );

    let exit = client.exit_standby().auto_scaling_group_name(scene.scaling_group());
    exit.instance_ids(&instance).send().await?;
    scene.until_phase(Phase::Succeeded).await?;
    // Its place was taken meanwhile: the group wants one more now.
    scene
        .testbed
        .until(PATIENCE, "three new instances", async || {
            scene.until_clean(&new, 3).await.map(Some)
        })
        .await
}
