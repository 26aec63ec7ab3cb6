//! The whole fleet by one edit: locks, freeze, windows, caps.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{PATIENCE, SECONDS, Stage, publish};

/// Groups whose rollout is under way, and groups on an image.
async fn standing(stage: &Stage, image: &str) -> Result<(usize, usize)> {
    let list = stage.get(&["-n", "team", "instancegroups"]).await?;
    let groups = list["items"].as_array().cloned().unwrap_or_default();
    let of = |wanted: fn(&Value, &str) -> bool| groups.iter().filter(|group| wanted(&group["status"], image)).count();
    Ok((
        of(|status, _| status["rollout"].is_object()),
        of(|status, image| status["image"]["current"] == image),
    ))
}

/// Case D30: one edit unlocks the fleet, and its cap holds; the rest say what they wait for. One edit locks it again.
#[tokio::test(flavor = "multi_thread")]
async fn one_edit_locks_and_unlocks_the_fleet_and_the_cap_holds() -> Result<()> {
    let stage = Stage::new("schedules-fleet").await?;
    stage.namespace("team", "dev").await?;
    stage
        .settings("locks: [{reason: audit}]\nmaxConcurrentRollouts: 2\n")
        .await?;
    let names: Vec<String> = (0..6).map(|number| format!("workers-{number}")).collect();
    for name in &names {
        stage.group("team", name, 1).await?;
    }
    for name in &names {
        let group = stage
            .group_until("team", name, "Ready and locked", |group| {
                group["status"]["currentState"] == "Ready" && group["status"]["lock"]["locked"] == true
            })
            .await?;
        ensure!(
            group["status"]["lock"]["reason"]
                .as_str()
                .unwrap_or_default()
                .contains("audit")
        );
    }
    let new = publish(&stage.testbed, 2).await?;
    let waiting = stage.testbed.until(PATIENCE, "a request of each", async || {
        Ok((stage.requests("team").await?.len() == names.len()).then_some(()))
    });
    waiting.await?;
    stage.settings("locks: []\nmaxConcurrentRollouts: 2\n").await?;
    let (mut most, mut said) = (0, false);
    let waiting = stage.testbed.until(PATIENCE, "all groups on the new image", async || {
        let (rolling, done) = standing(&stage, &new).await?;
        most = most.max(rolling);
        let list = stage.get(&["-n", "team", "instancegroups"]).await?;
        said |= list.to_string().contains("2 of 2 rollouts run in the fleet");
        ensure!(done == names.len(), "{done} are");
        Ok(Some(()))
    });
    waiting.await?;
    ensure!(most == 2 && said, "at most {most} at a time, told: {said}");
    // Unlocked, the requests that waited went; one edit locks all again, within a second.
    ensure!(stage.requests("team").await?.is_empty());
    let edited = Instant::now();
    stage.settings("locks: [{reason: again}]\n").await?;
    let waiting = stage.testbed.until(SECONDS, "all locked again", async || {
        let list = stage.get(&["-n", "team", "instancegroups"]).await?;
        let locked = list["items"].as_array().into_iter().flatten();
        Ok(locked
            .into_iter()
            .all(|group| group["status"]["lock"]["locked"] == true)
            .then_some(edited.elapsed()))
    });
    let took = waiting.await?;
    ensure!(took.as_secs() < 3, "{took:?}, the reading with kubectl included");
    // Gone is no unlock (case D29).
    stage
        .kubectl(&[
            "-n",
            crate::testbed::installation::HOME,
            "delete",
            "configmap",
            "instance-manager",
        ])
        .await?;
    let newer = publish(&stage.testbed, 3).await?;
    let waiting = stage.testbed.until(PATIENCE, "requests again", async || {
        Ok((stage.requests("team").await?.len() == names.len()).then_some(()))
    });
    waiting.await?;
    ensure!(standing(&stage, &newer).await? == (0, 0));
    stage.stop().await
}

/// Cases D10 to D12: a freeze in the middle, released; then a window that is closed, and one that opens by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_stops_the_next_node_and_a_window_opens_by_itself() -> Result<()> {
    let stage = Stage::new("schedules-freeze").await?;
    stage.namespace("team", "dev").await?;
    stage.settings("locks: []\n").await?;
    stage.group("team", "workers", 3).await?;
    stage
        .group_until("team", "workers", "Ready", |group| {
            group["status"]["currentState"] == "Ready"
        })
        .await?;
    let new = publish(&stage.testbed, 2).await?;
    stage
        .group_until("team", "workers", "rolling out", |group| {
            group["status"]["rollout"].is_object()
        })
        .await?;
    stage
        .settings("locks: []\nfreeze: {enabled: true, reason: sale}\n")
        .await?;
    let frozen = stage
        .group_until("team", "workers", "frozen", |group| {
            let message = group["status"]["message"].as_str().unwrap_or_default();
            message.contains("frozen: sale") && !message.contains("in hand")
        })
        .await?;
    let progress = frozen["status"]["rollout"]["progress"].clone();
    let sequence = stage.testbed.aws().last_sequence().await?;
    // Min and max are not held up by it.
    let change = r#"{"spec":{"eks":{"maxSize":7}}}"#;
    stage
        .kubectl(&[
            "-n",
            "team",
            "patch",
            "instancegroup",
            "workers",
            "--type=merge",
            "-p",
            change,
        ])
        .await?;
    let waiting = stage.testbed.until(SECONDS, "the new size at AWS", async || {
        let calls = stage.testbed.aws().calls(sequence).await?;
        Ok(calls
            .iter()
            .any(|call| call.action == "UpdateAutoScalingGroup")
            .then_some(calls))
    });
    let calls = waiting.await?;
    ensure!(
        !calls.iter().any(|call| call.action.starts_with("Terminate")),
        "no further node is taken"
    );
    let now = stage.get(&["-n", "team", "instancegroup", "workers"]).await?;
    ensure!(now["status"]["rollout"]["progress"] == progress, "{}", now["status"]);
    stage.settings("locks: []\nfreeze: {enabled: false}\n").await?;
    stage.ready_on("team", "workers", &new).await?;

    // A window two minutes ahead at most: it opens with nothing else happening.
    let opens = sluice::clock::now() + jiff::SignedDuration::from_secs(75);
    let local = opens.to_zoned(jiff::tz::TimeZone::get("Europe/Berlin")?);
    let window = format!(
        "locks: []\nschedules:\n- name: night\n  match: {{}}\n  windows:\n  - {{kind: allow, schedule: \"{} {} * * *\", duration: 1h, \
         timeZone: Europe/Berlin}}\n",
        local.minute(),
        local.hour()
    );
    stage.settings(&window).await?;
    let newer = publish(&stage.testbed, 3).await?;
    let closed = stage
        .group_until("team", "workers", "waits for its window", |group| {
            let conditions = group["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["reason"] == "WindowClosed")
        })
        .await?;
    let message = closed["status"]["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains(&format!(
            "window {:02}:{:02} Europe/Berlin",
            local.hour(),
            local.minute()
        )),
        "{message}"
    );
    stage.ready_on("team", "workers", &newer).await?;
    let status = stage.get(&["-n", "team", "instancegroup", "workers"]).await?;
    ensure!(status["status"]["image"]["previous"] == new.as_str());
    stage.stop().await
}
