//! Edits of real Nodes.
//!
//! Owns what only the API server can show: that the patches mean what the tables say, and that other writers lose nothing.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice::api::{NodeRecord, NodeState, annotation, label};
use sluice::clock;
use sluice::cluster::node_writes::NodeWriter;
use sluice::cluster::nodes;
use sluice::fence::Fence;
use sluice::plan::facts::FailureClass;
use sluice::plan::step::NodeEdit;

use super::Ground;

fn take() -> NodeEdit {
    NodeEdit::Take {
        target: "f1".to_owned(),
        since: clock::now(),
    }
}

fn join() -> NodeEdit {
    NodeEdit::Join {
        target: "f1".to_owned(),
        since: clock::now(),
    }
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| taint.key.clone()).collect()
}

fn record(node: &Node) -> Option<NodeRecord> {
    nodes::fact(node).and_then(|fact| fact.record)
}

/// What a test may look at of a Node: all but what the API server counts.
fn content(node: &Node) -> Result<Value> {
    let mut node = node.clone();
    node.metadata.managed_fields = None;
    node.metadata.resource_version = None;
    // Empty and absent are the same.
    node.metadata.annotations.get_or_insert_default();
    node.metadata.labels.get_or_insert_default();
    Ok(serde_json::to_value(node)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_avoided_taken_and_let_go_as_it_was() -> Result<()> {
    let ground = Ground::new("node-story").await?;
    let writer = NodeWriter::new(ground.client().await?, Fence::always());
    let before = ground.node("node-story", "i-0aa1").await?;
    writer.edit("node-story", "i-0aa1", &join()).await?;
    writer.edit("node-story", "i-0aa1", &NodeEdit::Avoid).await?;
    writer.edit("node-story", "i-0aa1", &take()).await?;

    let taken = ground.nodes.get("node-story").await?;
    let fact = nodes::fact(&taken).context("a fact")?;
    assert!(fact.cordoned && fact.avoided);
    let noted = fact.record.context("a record")?;
    assert_eq!((noted.state, noted.target.as_str()), (NodeState::Draining, "f1"));
    assert!(noted.cordoned && noted.excluded && noted.protected);
    assert_eq!(taken.labels()[label::EXCLUDE_FROM_LOAD_BALANCERS], "true");
    assert_eq!(taken.annotations()[annotation::SCALE_DOWN_DISABLED], "true");
    let managers = taken
        .managed_fields()
        .iter()
        .filter_map(|entry| entry.manager.as_deref());
    assert!(managers.into_iter().any(|manager| manager == "sluice/instance-group"));

    // The same once more is no write.
    writer.edit("node-story", "i-0aa1", &take()).await?;
    assert_eq!(
        ground.nodes.get("node-story").await?.resource_version(),
        taken.resource_version()
    );

    let keep = NodeRecord::new("f1", NodeState::GaveUp, clock::now());
    let let_go = NodeEdit::Release {
        keep: Some(keep.clone()),
    };
    writer.edit("node-story", "i-0aa1", &let_go).await?;
    let after = ground.nodes.get("node-story").await?;
    assert_eq!(record(&after), Some(keep));
    assert!(nodes::fact(&after).is_some_and(|fact| !fact.cordoned && fact.avoided));

    writer
        .edit("node-story", "i-0aa1", &NodeEdit::Release { keep: None })
        .await?;
    assert_eq!(content(&ground.nodes.get("node-story").await?)?, content(&before)?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_cordon_stays() -> Result<()> {
    let ground = Ground::new("node-cordon").await?;
    let writer = NodeWriter::new(ground.client().await?, Fence::always());
    ground.node("node-cordon", "i-0aa2").await?;
    ground.testbed.kubectl(&["cordon", "node-cordon"]).await?.success()?;
    writer.edit("node-cordon", "i-0aa2", &take()).await?;
    let noted = record(&ground.nodes.get("node-cordon").await?).context("a record")?;
    assert!(!noted.cordoned && noted.excluded);
    writer
        .edit("node-cordon", "i-0aa2", &NodeEdit::Release { keep: None })
        .await?;
    let released = ground.nodes.get("node-cordon").await?;
    assert_eq!(record(&released), None);
    assert!(
        nodes::fact(&released).is_some_and(|fact| fact.cordoned),
        "a person cordoned it"
    );
    assert!(released.labels().is_empty(), "{:?}", released.labels());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_the_same_time_lose_nothing() -> Result<()> {
    let ground = Ground::new("node-race").await?;
    let client = ground.client().await?;
    let (one, other) = (
        NodeWriter::new(client.clone(), Fence::always()),
        NodeWriter::new(client, Fence::always()),
    );
    for round in 0..30 {
        let (name, id) = (format!("node-race-{round}"), format!("i-0ab{round}"));
        ground.node(&name, &id).await?;
        // Somebody else's taint, put on by whatever the list is at that moment.
        let theirs =
            json!([{"op": "add", "path": "/spec/taints", "value": [{"key": "theirs", "effect": "NoSchedule"}]}]);
        let theirs: Patch<()> = Patch::Json(serde_json::from_value(theirs)?);
        let parameters = PatchParams::default();
        ground.nodes.patch(&name, &parameters, &theirs).await?;
        let more = json!([{"op": "add", "path": "/spec/taints/-", "value": {"key": "more", "effect": "NoSchedule"}}]);
        let more: Patch<()> = Patch::Json(serde_json::from_value(more)?);
        let (take, avoid) = (take(), NodeEdit::Avoid);
        let (taken, avoided, tainted) = tokio::join!(
            one.edit(&name, &id, &take),
            other.edit(&name, &id, &avoid),
            ground.nodes.patch(&name, &parameters, &more),
        );
        taken?;
        avoided?;
        tainted?;
        let node = ground.nodes.get(&name).await?;
        let mut keys = taints(&node);
        keys.sort();
        assert_eq!(keys, [label::TAINT_UPGRADING, "more", "theirs"]);
        assert!(nodes::fact(&node).is_some_and(|fact| fact.cordoned && fact.record.is_some()));
        if ground.did("nodes", None, &name)?.iter().any(|(_, code)| *code == 409) {
            return Ok(());
        }
    }
    anyhow::bail!("the writers never came in each other's way");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_came_back_for_another_instance_is_left_alone() -> Result<()> {
    let ground = Ground::new("node-other").await?;
    let writer = NodeWriter::new(ground.client().await?, Fence::always());
    let before = ground.node("node-other", "i-0aa4").await?;
    let refused = writer.edit("node-other", "i-0aa3", &take()).await;
    ensure!(
        matches!(&refused, Err(failure) if failure.class == FailureClass::NotFound && failure.message.contains("i-0aa3")),
        "{refused:?}"
    );
    assert_eq!(content(&ground.nodes.get("node-other").await?)?, content(&before)?);
    let gone = writer.edit("node-other-gone", "i-0aa3", &take()).await;
    ensure!(
        matches!(&gone, Err(failure) if failure.class == FailureClass::NotFound),
        "{gone:?}"
    );
    Ok(())
}
