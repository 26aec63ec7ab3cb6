//! Automatic approvals: tiers, the first of two decisions, soak, restart.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{PATIENCE, Stage, from_now, publish, publish_at};

/// Three tiers of one fleet, in seconds instead of days; all locked.
const TIERS: &str = r"
locks:
- reason: nothing rolls unasked
schedules:
- name: dev
  match: {namespaceSelector: {matchLabels: {instancemgr.keikoproj.io/tier: dev}}}
  image: {after: 0s}
- name: staging
  match: {namespaceSelector: {matchLabels: {instancemgr.keikoproj.io/tier: staging}}}
  image: {after: 40s, settle: 0s}
- name: prod
  match: {namespaceSelector: {matchLabels: {instancemgr.keikoproj.io/tier: prod}}}
  image: {after: 10s, settle: 0s, soak: {schedule: dev, for: 20s}}
";

fn phase(request: &Value) -> &str {
    request["status"]["phase"].as_str().unwrap_or_default()
}

fn time(value: &Value) -> Result<jiff::Timestamp> {
    Ok(value.as_str().context("a time")?.parse()?)
}

/// Scenario C20 and gate chapter 3: each tier at its time, by the schedule's name, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn tiers_follow_at_their_times() -> Result<()> {
    let stage = Stage::new("schedules-tiers").await?;
    stage.settings(TIERS).await?;
    for tier in ["dev", "staging", "prod", "none"] {
        stage.namespace(tier, tier).await?;
        stage.group(tier, "workers", 1).await?;
    }
    let first = stage.get(&["-n", "dev", "instancegroup", "workers"]).await;
    ensure!(first.is_ok());
    for tier in ["dev", "staging", "prod", "none"] {
        let group = stage
            .group_until(tier, "workers", "Ready", |group| {
                group["status"]["currentState"] == "Ready"
            })
            .await?;
        ensure!(
            group["status"]["lock"]["source"] == "Settings",
            "{}",
            group["status"]["lock"]
        );
    }
    let recommended = from_now(0);
    let new = publish_at(&stage.testbed, 2, &recommended).await?;
    let staging = stage
        .request_until("staging", "announced", |request| {
            // The auto-approver may have its say before the other controller has its own.
            request["status"]["autoApproveAt"].is_string() && phase(request) == "Pending"
        })
        .await?;
    ensure!(staging["status"]["policy"] == "staging" && phase(&staging) == "Pending");
    let due = time(&staging["status"]["autoApproveAt"])?;
    ensure!(
        due == recommended.parse::<jiff::Timestamp>()? + jiff::SignedDuration::from_secs(40),
        "{due}"
    );
    let message = staging["status"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("schedule staging approves it at"), "{message}");
    let prod = stage
        .request_until("prod", "waits for proof", |request| {
            let message = request["status"]["message"].as_str().unwrap_or_default();
            message.contains("until a group of schedule dev")
        })
        .await?;
    ensure!(prod["status"]["autoApproveAt"].is_null(), "{prod}");
    stage.ready_on("dev", "workers", &new).await?;
    let dev_ready = sluice::clock::now();
    for tier in ["staging", "prod"] {
        let done = stage
            .request_until(tier, "done", |request| phase(request) == "Succeeded")
            .await?;
        let decision = &done["status"]["decisions"][0];
        ensure!(
            decision["action"] == "Approved" && decision["via"] == format!("schedule {tier}"),
            "{decision}"
        );
        let decided = time(&decision["at"])?;
        if tier == "staging" {
            ensure!(decided >= due, "approved at {decided}, due at {due}");
        } else {
            // The proof began when dev was done, a moment before this test saw it.
            let proven = dev_ready + jiff::SignedDuration::from_secs(20 - 8);
            ensure!(decided >= proven, "approved at {decided}, before {proven}");
        }
    }
    // Without a schedule a person decides.
    let by_hand = stage
        .request_until("none", "waits for a person", |request| {
            request["status"]["policy"] == "manual" && phase(request) == "Pending"
        })
        .await?;
    ensure!(phase(&by_hand) == "Pending" && by_hand["spec"]["approved"] == false);
    stage.stop().await
}

/// Cases D16 and D29: off, broken or gone means by hand; mended, what is due is approved once.
#[tokio::test(flavor = "multi_thread")]
async fn without_sound_settings_a_person_decides() -> Result<()> {
    let stage = Stage::new("schedules-sound").await?;
    let on = "locks: [{}]\nschedules:\n- {name: all, match: {}, image: {after: 0s}}\n";
    stage
        .settings(&format!("{on}autoApprover: {{enabled: false}}\n"))
        .await?;
    stage.namespace("team", "dev").await?;
    stage.group("team", "workers", 1).await?;
    stage
        .group_until("team", "workers", "Ready", |group| {
            group["status"]["currentState"] == "Ready"
        })
        .await?;
    let new = publish(&stage.testbed, 2).await?;
    let off = stage
        .request_until("team", "off", |request| {
            // The two controllers write it one after the other, in any order.
            let message = request["status"]["message"].as_str().unwrap_or_default();
            request["status"]["policy"] == "all" && message.contains("switch the auto-approver off")
        })
        .await?;
    ensure!(phase(&off) == "Pending", "{off}");
    // Broken: the last good ones stay, which still lock, and say why nothing happens.
    stage.settings("locks: []\nschedules: [\n").await?;
    let group = stage
        .group_until("team", "workers", "told of the mistake", |group| {
            let conditions = group["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| {
                condition["type"] == "SettingsInvalid"
                    && condition["message"].as_str().unwrap_or_default().contains("line 2")
            })
        })
        .await?;
    ensure!(group["status"]["lock"]["locked"] == true, "{}", group["status"]);
    let about = "involvedObject.kind=ConfigMap,involvedObject.name=instance-manager,reason=SettingsInvalid";
    let waiting = stage.testbed.until(PATIENCE, "an Event on the ConfigMap", async || {
        let events = stage
            .get(&[
                "-n",
                crate::testbed::installation::HOME,
                "events",
                "--field-selector",
                about,
            ])
            .await?;
        Ok(events["items"].as_array().filter(|items| !items.is_empty()).map(|_| ()))
    });
    waiting.await?;
    stage.settings(on).await?;
    stage.ready_on("team", "workers", &new).await?;
    let requests = stage.requests("team").await?;
    ensure!(requests.len() == 1, "{requests:#?}");
    let decisions = requests[0]["status"]["decisions"].as_array().map_or(0, Vec::len);
    ensure!(decisions == 1, "approved once");
    stage.stop().await
}
