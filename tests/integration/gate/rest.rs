//! Steady state (promise P9), judged by the counted AWS calls and the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::ground::Ground;
use crate::running::Running;
use crate::testbed::Testbed;

/// Nothing is written anywhere but the Lease, and reads per interval are a page each, not one for each group.
#[tokio::test(flavor = "multi_thread")]
async fn at_rest_nothing_is_written_and_reads_follow_pages() -> Result<()> {
    let testbed = Testbed::start("rest").await?;
    let running = Running::start_with(&testbed, &[("--aws-poll-interval", "1s")]).await?;
    let ground = Ground::new(&testbed, "rest").await?;
    ground.publish("a").await?;
    let names: Vec<String> = (0..12).map(|index| format!("group{index}")).collect();
    for (index, name) in names.iter().enumerate() {
        ground.create(ground.manifest(name, index % 2 == 0)).await?;
    }
    for name in &names {
        ground.until_state(name, "Ready").await?;
    }
    // Six polls of templates: the counted calls are the clock.
    let start = polls_after(&testbed, testbed.aws().last_sequence().await?, 2).await?;
    let audit = testbed.audit_position()?;
    let end = polls_after(&testbed, start, 6).await?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in testbed
        .aws()
        .calls(start)
        .await?
        .into_iter()
        .filter(|call| call.sequence <= end)
    {
        ensure!(!call.mutating, "{} at rest", call.action);
        *counts.entry(call.action).or_default() += 1;
    }
    let allowed = [
        "DescribeAutoScalingGroups",
        "DescribeLaunchTemplateVersions",
        "GetParameters",
        "DescribeCluster",
        "DescribeImages",
    ];
    for (action, count) in &counts {
        ensure!(allowed.contains(&action.as_str()), "{action} at rest");
        ensure!(
            *count <= 9,
            "{action}: {count} calls in six intervals for one page: {counts:?}"
        );
    }
    let written: Vec<String> = testbed
        .audit_after(audit)?
        .iter()
        .filter(|event| {
            event["user"]["username"]
                .as_str()
                .is_some_and(|user| user.contains("sluice"))
        })
        .filter(|event| !["get", "list", "watch"].contains(&event["verb"].as_str().unwrap_or_default()))
        .filter(|event| event["objectRef"]["resource"] != "leases")
        .map(|event| format!("{} {}", event["verb"], event["objectRef"]))
        .collect();
    ensure!(written.is_empty(), "written at rest: {written:?}");
    drop(running.nodes);
    testbed.stop().await
}

/// The sequence number at which templates had been polled this often after a call.
async fn polls_after(testbed: &Testbed, after: u64, polls: usize) -> Result<u64> {
    testbed
        .until(Duration::from_mins(1), "polls of templates", async || {
            let calls = testbed.aws().calls(after).await?;
            Ok(calls
                .iter()
                .filter(|call| call.action == "DescribeLaunchTemplateVersions")
                .nth(polls - 1)
                .map(|call| call.sequence))
        })
        .await
}
