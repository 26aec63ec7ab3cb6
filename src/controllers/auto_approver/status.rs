//! Report: which schedule applies to a request, and when it approves.
//!
//! Owns that the two fields are written only when they are different. Must not touch the rest of the status.

use jiff::Timestamp;

use super::context::Context;
use crate::api::InstanceGroupUpgradeRequest;
use crate::plan::approval::{Answer, Verdict};
use crate::plan::facts::Failure;

/// Writes what is different. A date that was announced is not corrected when it has come: the approval would wait for that.
///
/// # Errors
/// The failure of the write; class Busy when somebody wrote in between.
pub async fn report(
    context: &Context,
    request: &InstanceGroupUpgradeRequest,
    verdict: &Verdict,
) -> Result<(), Failure> {
    let status = request.status.as_ref();
    let policy = status.and_then(|status| status.policy.as_deref());
    let before = status
        .and_then(|status| status.auto_approve_at.as_ref())
        .map(|time| whole(time.0));
    let at = verdict.answer.time().map(whole);
    let named = policy == Some(verdict.policy.as_str());
    if named && (before == at || matches!(verdict.answer, Answer::Approve(_)) && before.is_some()) {
        return Ok(());
    }
    context.writer.announce(request, &verdict.policy, at).await
}

/// Times are stored in whole seconds, rounded up: never a promise that is kept too late.
fn whole(time: Timestamp) -> Timestamp {
    let second = time.as_second() + i64::from(time.subsec_nanosecond() > 0);
    Timestamp::from_second(second).unwrap_or(time)
}
