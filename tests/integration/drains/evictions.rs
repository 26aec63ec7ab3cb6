//! How the API server answers evictions, word for word.
//!
//! Owns one story for each answer.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::json;
use sluice::cluster::evictions::Evictions;
use sluice::fence::Fence;
use sluice::plan::facts::workload::{EvictionKind, PodId};

use super::{Ground, SOON};

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_may_go_is_being_deleted_and_then_gone() -> Result<()> {
    let ground = Ground::new("evict-freely").await?;
    let evictions = Evictions::new(ground.client().await?, Fence::always());
    let pod = ground.running("web", "evict-freely", "web").await?;
    assert_eq!(evictions.evict(&pod).await, EvictionKind::Accepted);
    assert!(ground.pods.get("web").await?.metadata.deletion_timestamp.is_some());
    // It takes its time; asking again is no news.
    assert_eq!(evictions.evict(&pod).await, EvictionKind::Accepted);
    ground.end("web").await?;
    assert_eq!(evictions.evict(&pod).await, EvictionKind::Gone);
    let nowhere = PodId {
        namespace: "no-such-namespace".to_owned(),
        ..pod
    };
    assert_eq!(evictions.evict(&nowhere).await, EvictionKind::Gone);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_says_no_is_asked_once() -> Result<()> {
    let ground = Ground::new("evict-budget").await?;
    let evictions = Evictions::new(ground.client().await?, Fence::always());
    let pod = ground.running("web", "evict-budget", "web").await?;
    ground.budget("keep-web", "web", 1, 1).await?;
    let words = "The disruption budget keep-web needs 1 healthy pods and has 1 currently";
    assert_eq!(evictions.evict(&pod).await, EvictionKind::Budget(words.to_owned()));
    assert!(ground.pods.get("web").await?.metadata.deletion_timestamp.is_none());
    // A client that retries would not have answered yet, and have asked again.
    let asked = ground.did("pods", Some("eviction"), "web")?;
    assert_eq!(asked, [("create".to_owned(), 429)]);

    // With one more pod there is one to spare.
    ground.running("spare", "evict-budget", "web").await?;
    ground
        .testbed
        .until(SOON, "the budget to allow one", async || {
            match evictions.evict(&pod).await {
                EvictionKind::Accepted => Ok(Some(())),
                EvictionKind::Budget(_) => Ok(None),
                other => anyhow::bail!("{other:?}"),
            }
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_budgets_on_one_pod_refuse_it_for_good() -> Result<()> {
    let ground = Ground::new("evict-several").await?;
    let evictions = Evictions::new(ground.client().await?, Fence::always());
    let pod = ground.running("web", "evict-several", "web").await?;
    ground.budget("one", "web", 0, 1).await?;
    ground.budget("other", "web", 0, 1).await?;
    let answer = evictions.evict(&pod).await;
    ensure!(
        matches!(&answer, EvictionKind::SeveralBudgets(words) if words.contains("more than one PodDisruptionBudget")),
        "{answer:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_pod_of_the_same_name_is_not_touched() -> Result<()> {
    let ground = Ground::new("evict-uid").await?;
    let evictions = Evictions::new(ground.client().await?, Fence::always());
    // One that runs, and one that was just made anew: for that the API server tries ten seconds before it answers.
    for name in ["running", "pending"] {
        let pod = match name {
            "running" => ground.running(name, "evict-uid", "web").await?,
            _ => ground.pending(name, "evict-uid", "web").await?,
        };
        let earlier = PodId {
            uid: "00000000-0000-0000-0000-000000000001".to_owned(),
            ..pod
        };
        assert_eq!(evictions.evict(&earlier).await, EvictionKind::Gone, "{name}");
        let stays = ground.pods.get(name).await?;
        ensure!(stays.metadata.deletion_timestamp.is_none(), "{name} goes");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_goes_takes_no_evictions() -> Result<()> {
    let ground = Ground::new("evict-namespace").await?;
    let client = ground.client().await?;
    let evictions = Evictions::new(client, Fence::always());
    let pod = ground.running("web", "evict-namespace", "web").await?;
    // Holds the pod, and so the namespace.
    ground
        .patch_pod("web", json!({"metadata": {"finalizers": ["example.com/hold"]}}))
        .await?;
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(ground.testbed.admin());
    namespaces.delete(ground.name, &DeleteParams::default()).await?;
    ground
        .testbed
        .until(SOON, "the refusal", async || {
            let answer = evictions.evict(&pod).await;
            ensure!(answer == EvictionKind::NamespaceTerminating, "{answer:?}");
            Ok(Some(()))
        })
        .await?;
    ground
        .patch_pod("web", json!({"metadata": {"finalizers": null}}))
        .await?;
    // Like the kubelet, which nobody plays here.
    ground.end("web").await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_it_is_a_failure() -> Result<()> {
    use sluice::plan::facts::FailureClass;

    let ground = Ground::new("evict-rights").await?;
    let pod = ground.running("web", "evict-rights", "web").await?;
    let nobody = ground.testbed.client_for_user("alice").await?;
    let answer = Evictions::new(nobody, Fence::always()).evict(&pod).await;
    ensure!(
        matches!(&answer, EvictionKind::Failed(failure) if failure.class == FailureClass::Denied),
        "{answer:?}"
    );
    Ok(())
}
