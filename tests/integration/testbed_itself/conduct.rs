//! Proves that simulated AWS misbehaves on demand, as far as nodes show it. What it answers is proved beside it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::SOON;
use super::groups::{group_of, make_group, open_nodes};
use crate::testbed::{
    NodeFate, NodeOptions, Shortage, SimulatedInstance, Testbed, Timing, Transition, shared_with_workloads,
};

const AT_ONCE: Duration = Duration::ZERO;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_bad_image_join_late_not_ready_or_never() -> Result<()> {
    let testbed = shared_with_workloads().await?;
    let aws = testbed.aws();
    let seed = aws.seed("fates", "1.33").await?;
    let mut images = Vec::new();
    for name in ["good", "bad", "silent"] {
        images.push(aws.publish_image(name, "x86_64", "2026-11-01T00:00:00Z").await?);
    }
    aws.set_image_nodes(&images[1], NodeFate::NotReady, AT_ONCE).await?;
    aws.set_image_nodes(&images[2], NodeFate::Never, AT_ONCE).await?;
    aws.set_group_nodes("fates-slow", NodeFate::Ready, Duration::from_hours(1))
        .await?;
    let _nodes = testbed.start_nodes(NodeOptions {
        group_prefix: "fates-".into(),
        ..NodeOptions::default()
    })?;
    for (name, image) in [("bad", 1), ("silent", 2), ("slow", 0), ("good", 0)] {
        make_group(aws, &seed, &format!("fates-{name}"), &images[image], 1).await?;
    }
    // Made last: whatever the others do by themselves they have done when it is Ready.
    open_nodes(testbed, "fates-good", 1).await?;
    let states: Vec<_> = instances(testbed, "fates-").await?;
    assert!(states.iter().all(|it| it.lifecycle_state == "InService"), "{states:?}");
    let bad = testbed.until(SOON, "the bad node to be tainted by its controller", async || {
        let bad = nodes_of(testbed, "fates-bad").await?.pop();
        Ok(bad.filter(|node| taints(node).contains(&"node.kubernetes.io/not-ready")))
    });
    assert!(!is_ready(&bad.await?));
    assert!(nodes_of(testbed, "fates-silent").await?.is_empty());
    assert!(nodes_of(testbed, "fates-slow").await?.is_empty());

    aws.set_image_nodes(&images[1], NodeFate::Ready, AT_ONCE).await?;
    aws.set_image_nodes(&images[2], NodeFate::Ready, AT_ONCE).await?;
    aws.set_group_nodes("fates-slow", NodeFate::Ready, AT_ONCE).await?;
    for name in ["fates-bad", "fates-silent", "fates-slow"] {
        open_nodes(testbed, name, 1).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_instance_is_replaced_once_there_is_capacity() -> Result<()> {
    let testbed = shared_with_workloads().await?;
    let aws = testbed.aws();
    let _nodes = group_of(testbed, "spot", 2).await?;
    let before = instances(testbed, "spot").await?;
    let shortage = aws.begin_shortage(Shortage::of_group("spot")).await?;
    aws.interrupt(&before[0].instance_id, Duration::ZERO).await?;
    open_nodes(testbed, "spot", 1).await?;
    let autoscaling = aws_sdk_autoscaling::Client::new(&aws.sdk_config());
    let told = autoscaling
        .describe_scaling_activities()
        .auto_scaling_group_name("spot")
        .send()
        .await?;
    let newest = told.activities().first().context("no activity")?;
    assert_eq!(newest.status_code().map(ToString::to_string).as_deref(), Some("Failed"));
    let message = newest.status_message().unwrap_or_default();
    assert!(
        message.starts_with("We currently do not have sufficient m5.large capacity in the Availability Zone"),
        "{message}"
    );

    // The replacement takes its steps one by one.
    let boot = Timing {
        boot: Some(Duration::from_millis(1)),
        termination: Some(Duration::from_hours(1)),
        ..Timing::default()
    };
    aws.set_timing(Some("spot"), boot).await?;
    aws.hold("spot", Transition::Launching).await?;
    aws.end_shortage(&shortage).await?;
    in_state(testbed, "spot", "Pending:Wait").await?;
    aws.release("spot", Transition::Launching).await?;
    in_state(testbed, "spot", "InService").await?;
    open_nodes(testbed, "spot", 2).await?;

    // A machine that shuts down is no longer Ready, and its node is there until it has ended.
    aws.interrupt(&before[1].instance_id, Duration::ZERO).await?;
    testbed
        .until(SOON, "the node of a dying machine to be unready", async || {
            let mut nodes = nodes_of(testbed, "spot").await?.into_iter();
            Ok(nodes.find(|node| node.name_any() == before[1].private_dns_name && !is_ready(node)))
        })
        .await?;
    assert_eq!(aws.rebalance("spot").await?, 0, "a group of two is even");
    Ok(())
}

async fn in_state(testbed: &Testbed, group: &str, state: &str) -> Result<()> {
    testbed
        .until(SOON, &format!("the newest instance of {group} {state}"), async || {
            let all = instances(testbed, group).await?;
            let newest = all.last().context("no instance")?;
            ensure!(newest.lifecycle_state == state, "it is {}", newest.lifecycle_state);
            Ok(Some(()))
        })
        .await
}

async fn instances(testbed: &Testbed, group_prefix: &str) -> Result<Vec<SimulatedInstance>> {
    let all = testbed.aws().instances().await?.into_iter();
    Ok(all.filter(|it| it.group_name.starts_with(group_prefix)).collect())
}

async fn nodes_of(testbed: &Testbed, group: &str) -> Result<Vec<Node>> {
    let selected = ListParams::default().labels(&format!("sluice.test/group={group}"));
    Ok(Api::<Node>::all(testbed.admin()).list(&selected).await?.items)
}

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| taint.key.as_str()).collect()
}

fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
