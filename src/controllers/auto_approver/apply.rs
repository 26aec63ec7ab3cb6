//! Apply: the approval.
//!
//! Owns that an approval is one conditional write, told by one Event after it. Must not decide.

use kube::Resource;
use tracing::info;

use super::context::Context;
use crate::api::InstanceGroupUpgradeRequest;
use crate::clock;
use crate::plan::approval::Verdict;
use crate::plan::facts::Failure;
use crate::plan::step::Notice;

/// Approves a request.
///
/// # Errors
/// The failure of the write; class Busy when somebody decided in between.
pub async fn approve(
    context: &Context,
    request: &InstanceGroupUpgradeRequest,
    verdict: &Verdict,
) -> Result<(), Failure> {
    context.writer.approve(request).await?;
    context.upgrades.approved();
    let due = verdict.answer.time().map(|time| time.to_string()).unwrap_or_default();
    info!(policy = verdict.policy, due, "approved");
    let notice = Notice {
        warning: false,
        reason: "UpgradeApprovedBySchedule",
        message: format!("schedule {} approves it; due since {due}", verdict.policy),
    };
    context
        .publisher
        .publish(&request.object_ref(&()), &notice, clock::now())
        .await;
    Ok(())
}
