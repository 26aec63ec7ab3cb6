//! Locked groups, requests, approvals.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use sluice::api::upgrade_request::{InstanceGroupUpgradeRequestStatus, Phase};
use sluice::cluster::requests::RequestWriter;
use sluice::fence::Fence;
use sluice::plan::facts::FailureClass;

use super::ground::{Ground, SOON};
use crate::running::shared_operator;
use crate::testbed::Fault;

/// P1, P2: until the approval AWS hears nothing of the new image; what was approved is what comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_group_moves_only_after_its_approval() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "story").await?;
    let old = ground.at_rest("workers", true).await?;
    let before = ground.testbed.aws().last_sequence().await?;
    let new = ground.publish("b").await?;
    let request = ground.until_request(Phase::Pending).await?;
    ensure!(request.spec.target.image_id.as_deref() == Some(new.as_str()));
    let changes: Vec<&str> = request
        .spec
        .target
        .changes
        .iter()
        .map(|change| change.path.as_str())
        .collect();
    ensure!(
        changes == ["imageId", "userData"],
        "the request says what changes: {changes:?}"
    );
    ground
        .patch("workers", json!({ "spec": { "eks": { "minSize": 3 } } }))
        .await?;
    ground.until_images("workers", &old, 3).await?;
    let quiet = ground.testbed.aws().calls(before).await?;
    ensure!(
        !quiet
            .iter()
            .any(|call| call.action.contains("LaunchTemplateVersion") && call.mutating),
        "a version was made early"
    );
    ground
        .patch_request(
            &request.name_any(),
            json!({ "spec": { "approved": true, "approvedBy": "admin" } }),
        )
        .await?;
    ground.until_images("workers", &new, 3).await?;
    ground.until_request(Phase::Succeeded).await?;
    let group = ground.until_state("workers", "Ready").await?;
    let status = group.status.context("a status")?;
    ensure!(status.image.context("an image")?.previous == Some(old));
    ensure!(status.history.first().context("history")?.by.as_deref() == Some("admin"));
    ground.delete("workers").await
}

/// D15: the claim is conditional on what was read, so a withdrawal in between wins, and AWS hears nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_between_look_and_claim_wins() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "withdrawal").await?;
    ground.at_rest("workers", true).await?;
    let image = ground.publish("b").await?;
    let name = ground.until_request(Phase::Pending).await?.name_any();
    // While the approved image cannot be looked at again, the claim waits: both patches come before it.
    let unseen = Fault::on("ec2", "DescribeImages")
        .error("Unavailable", 503)
        .matching("*", &image);
    let unseen = ground.testbed.aws().inject_fault(unseen).await?;
    let before = ground.testbed.aws().last_sequence().await?;
    let read = ground
        .patch_request(&name, json!({ "spec": { "approved": true } }))
        .await?;
    ground
        .patch_request(&name, json!({ "spec": { "approved": false } }))
        .await?;
    let claim = InstanceGroupUpgradeRequestStatus {
        phase: Some(Phase::InProgress),
        ..InstanceGroupUpgradeRequestStatus::default()
    };
    let refused = RequestWriter::new(ground.testbed.admin(), Fence::always())
        .status(&read, &claim)
        .await;
    let failure = refused.err().context("a claim on a stale read went through")?;
    ensure!(failure.class == FailureClass::Busy, "{failure}");
    let now = ground.requests.get(&name).await?;
    ensure!(now.phase() != Phase::InProgress && !now.spec.approved);
    ground.testbed.aws().remove_fault(&unseen).await?;
    ensure!(ground.until_request(Phase::Pending).await?.name_any() == name);
    ensure!(ground.writes(before).await?.is_empty());
    Ok(())
}

/// D8, L12: an old request means nothing to a new group of the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_deleted_in_a_rollout_and_made_again_starts_afresh() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "again").await?;
    ground.at_rest("workers", true).await?;
    let new = ground.publish("b").await?;
    let request = ground.until_request(Phase::Pending).await?;
    ground
        .patch_request(&request.name_any(), json!({ "spec": { "approved": true } }))
        .await?;
    ground.until_request(Phase::InProgress).await?;
    ground.delete("workers").await?;
    ensure!(
        ground.requests.get_opt(&request.name_any()).await?.is_none(),
        "requests go with their group"
    );
    // A copy of the old request, as a backup tool would put it back on a cluster without the admission policies.
    let mut copy = request.clone();
    copy.metadata = super::ground::named(&request.name_any());
    copy.metadata.finalizers.clone_from(&request.metadata.finalizers);
    copy.spec.approved = true;
    copy.status = None;
    let requests = ground.requests_of_the_operator().await?;
    requests.create(&PostParams::default(), &copy).await?;
    ground.create(ground.manifest("workers", true)).await?;
    ground.until_state("workers", "Ready").await?;
    ground.until_images("workers", &new, 2).await?;
    let old = ground.requests.get(&request.name_any()).await?;
    ensure!(old.status.is_none(), "the old request was acted on: {:?}", old.status);
    ground
        .requests
        .delete(&request.name_any(), &DeleteParams::default())
        .await?;
    // It still has our finalizer; a group of that name does not keep it.
    ground
        .testbed
        .until(SOON, "the old request to be gone", async || {
            Ok(ground
                .requests
                .get_opt(&request.name_any())
                .await?
                .is_none()
                .then_some(()))
        })
        .await?;
    ground.delete("workers").await
}

/// Denying, deleting the denied request, and the retry annotation, as a person does it.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_sticks_until_a_person_lifts_it() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "denial").await?;
    ground.at_rest("workers", true).await?;
    ground.publish("b").await?;
    let request = ground.until_request(Phase::Pending).await?;
    ground
        .patch_request(
            &request.name_any(),
            json!({ "spec": { "denied": true, "decisionReason": "not this week" } }),
        )
        .await?;
    ground.until_request(Phase::Denied).await?;
    let message = ground.until_condition("workers", "UpgradeBlocked").await?;
    ensure!(
        message.contains(&request.name_any()) && message.contains("retry-upgrade"),
        "{message}"
    );
    let annotation = json!({ "metadata": { "annotations": { "instancemgr.keikoproj.io/retry-upgrade": request.spec.target.fingerprint } } });
    ground.patch("workers", annotation).await?;
    let again = ground.until_request(Phase::Pending).await?;
    ensure!(again.name_any() == request.name_any() && again.uid() != request.uid());
    ensure!(
        ground
            .groups
            .get("workers")
            .await?
            .annotation("instancemgr.keikoproj.io/retry-upgrade")
            .is_none()
    );
    ground
        .requests
        .delete(&again.name_any(), &DeleteParams::default())
        .await?;
    ground
        .testbed
        .until(SOON, "the deleted request to open again", async || {
            let found = ground.requests.get_opt(&again.name_any()).await?;
            Ok(found.filter(|found| found.uid() != again.uid()))
        })
        .await?;
    ground.delete("workers").await
}

/// An unlocked group needs nobody.
#[tokio::test(flavor = "multi_thread")]
async fn an_unlocked_group_rolls_by_itself() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "unlocked").await?;
    ground.at_rest("workers", false).await?;
    let new = ground.publish("b").await?;
    ground.until_images("workers", &new, 2).await?;
    ground.until_state("workers", "Ready").await?;
    ensure!(
        ground
            .requests
            .list(&kube::api::ListParams::default())
            .await?
            .items
            .is_empty()
    );
    ground.delete("workers").await
}

/// The group of a request is gone, its finalizer stripped by hand: the request does not hang, nor its namespace.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_group_is_gone_does_not_hang_in_deletion() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "stripped").await?;
    let manifest = json!({
        "apiVersion": "instancemgr.keikoproj.io/v1alpha1",
        "kind": "InstanceGroupUpgradeRequest",
        "metadata": { "name": "left-over", "finalizers": ["instancemgr.keikoproj.io/upgrade-request"] },
        "spec": {
            "instanceGroupRef": { "name": "nobody", "uid": "gone" },
            "reason": "ImageDrift",
            "target": { "fingerprint": "sha256:00" },
        },
    });
    let requests = ground.requests_of_the_operator().await?;
    requests
        .create(&PostParams::default(), &serde_json::from_value(manifest)?)
        .await?;
    ground.requests.delete("left-over", &DeleteParams::default()).await?;
    ground
        .testbed
        .until(SOON, "the request to be gone", async || {
            Ok(ground.requests.get_opt("left-over").await?.is_none().then_some(()))
        })
        .await
}
