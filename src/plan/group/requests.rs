//! Upgrade requests: what is read from them and how their status moves.
//!
//! Owns each transition of a request (gate rules L7 to L11) as one conditional status write with one Event. Must not decide
//! when a transition is due; gate and rollout do. The decision block is a person's and is never written here.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};

use crate::api::instance_group::{BlockReason, BlockedTarget, HistoryEntry, HistoryResult};
use crate::api::upgrade_request::{
    Decision, DecisionAction, InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestStatus, NodeCounts, Phase,
    UpgradeFailure, WaitsFor,
};
use crate::api::{Reason, field_manager};
use crate::plan::naming::{block_key, blocked_fingerprint};
use crate::plan::rollout::drain::seconds;
use crate::plan::step::{Action, Notice, RequestMove, RequestRef, Wait};
use crate::plan::target::Approved;

use super::draft::Draft;

/// Whether one of the requests is being rolled out.
pub fn rolling(requests: &[InstanceGroupUpgradeRequest]) -> bool {
    requests.iter().any(|request| request.phase() == Phase::InProgress)
}

/// Whether a running request is to stop: cancelled, or deleted by a person, which is a cancel (gate rule L11).
pub fn is_cancelled(request: &InstanceGroupUpgradeRequest) -> bool {
    request.spec.cancelled || request.metadata.deletion_timestamp.is_some()
}

/// Whether a finished request was deleted before it had finished: that was a cancel, and lifts no block (gate rule L11).
pub fn was_deleted_before_its_end(request: &InstanceGroupUpgradeRequest) -> bool {
    let decisions = request.status.iter().flat_map(|status| &status.decisions);
    decisions
        .into_iter()
        .any(|decision| decision.action == DecisionAction::Deleted)
}

/// Who decided, as far as it is known.
pub fn by(request: &InstanceGroupUpgradeRequest) -> String {
    if request.spec.approved_by.is_empty() {
        "unknown".to_owned()
    } else {
        request.spec.approved_by.clone()
    }
}

/// The object's name.
pub fn name(request: &InstanceGroupUpgradeRequest) -> &str {
    request.metadata.name.as_deref().unwrap_or_default()
}

/// The command that approves a request.
pub fn approve_command(request: &InstanceGroupUpgradeRequest) -> String {
    let namespace = request.metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "kubectl -n {namespace} patch upgraderequest {} --type merge -p '{{\"spec\":{{\"approved\":true}}}}'",
        name(request)
    )
}

/// Which way a decision came: the schedule's name where the auto-approver took it, else the program that wrote the field, by
/// the name that it goes by at the API server.
fn via(request: &InstanceGroupUpgradeRequest, action: DecisionAction) -> String {
    let field = match action {
        DecisionAction::Approved | DecisionAction::Withdrawn => "f:approved",
        DecisionAction::Denied => "f:denied",
        DecisionAction::Cancelled => "f:cancelled",
        DecisionAction::Urgent | DecisionAction::NotUrgent => "f:urgent",
        // No field says who deletes.
        DecisionAction::Deleted => "",
    };
    let owns = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:spec"][field]);
        fields.is_some_and(|found| !found.is_null())
    };
    let manager = request.metadata.managed_fields.iter().flatten().find(owns);
    match manager.and_then(|entry| entry.manager.as_deref()) {
        Some(field_manager::AUTO_APPROVER) => {
            let policy = request.status.as_ref().and_then(|status| status.policy.as_deref());
            format!("schedule {}", policy.unwrap_or("unknown"))
        }
        Some(manager) => manager.to_owned(),
        None => "unknown".to_owned(),
    }
}

/// Who cancelled. Deleting a running request cancels it too, and who deletes leaves no name.
fn cancelled_by(request: &InstanceGroupUpgradeRequest) -> String {
    if request.spec.cancelled {
        by(request)
    } else {
        "unknown".to_owned()
    }
}

fn stamp(draft: &Draft<'_>, request: &InstanceGroupUpgradeRequest, action: DecisionAction) -> Decision {
    let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let is_named = match action {
        DecisionAction::Deleted => false,
        DecisionAction::Cancelled => request.spec.cancelled,
        _ => true,
    };
    let by = optional(&request.spec.approved_by).filter(|_| is_named);
    // A decision on an older request may have been taken before anybody checked names.
    let created = request.metadata.creation_timestamp.as_ref();
    let vouched = draft.observed.vouched_since;
    let is_vouched = created.zip(vouched).is_some_and(|(created, since)| created.0 >= since);
    Decision {
        at: Some(draft.time()),
        action,
        verified: Some(is_vouched && by.is_some()),
        by,
        via: Some(via(request, action)),
        reason: optional(&request.spec.decision_reason),
    }
}

/// The status to start a transition from.
fn status(request: &InstanceGroupUpgradeRequest) -> InstanceGroupUpgradeRequestStatus {
    request.status.clone().unwrap_or_default()
}

/// Adds the write of a request's status, if it changes anything.
fn go(
    draft: &mut Draft<'_>,
    request: &InstanceGroupUpgradeRequest,
    next: InstanceGroupUpgradeRequestStatus,
    notice: Option<Notice>,
) {
    if request.status.as_ref() != Some(&next) {
        draft.act(Action::MoveRequest(Box::new(RequestMove {
            request: RequestRef::of(request),
            status: next,
            notice,
        })));
    }
}

fn notice(warning: bool, reason: &'static str, request: &InstanceGroupUpgradeRequest, message: &str) -> Notice {
    Notice {
        warning,
        reason,
        message: format!("{}: {message}", name(request)),
    }
}

/// Waits for a decision, or for its turn after one.
pub fn hold(draft: &mut Draft<'_>, request: &InstanceGroupUpgradeRequest, reason: Reason, message: &str) {
    hold_until(draft, request, reason, message, None);
}

/// The same, where the end of the wait is known.
pub fn hold_until(
    draft: &mut Draft<'_>,
    request: &InstanceGroupUpgradeRequest,
    reason: Reason,
    message: &str,
    until: Option<Timestamp>,
) {
    let mut next = status(request);
    let was = request.phase();
    let is = if request.spec.approved {
        Phase::Approved
    } else {
        Phase::Pending
    };
    next.phase = Some(is);
    next.message = Some(message.to_owned());
    next.waits_for = Some(WaitsFor {
        reason: reason.to_string(),
        until: until.map(|until| Time(seconds(until))),
    });
    let note = match (was, is) {
        (Phase::Pending, Phase::Approved) => {
            next.decisions.push(stamp(draft, request, DecisionAction::Approved));
            Some(notice(
                false,
                "UpgradeApproved",
                request,
                &format!("approved by {}", by(request)),
            ))
        }
        (Phase::Approved, Phase::Pending) => {
            next.decisions.push(stamp(draft, request, DecisionAction::Withdrawn));
            Some(notice(
                true,
                "UpgradeWithdrawn",
                request,
                &format!("approval withdrawn by {}", by(request)),
            ))
        }
        _ => None,
    };
    go(draft, request, next, note);
}

/// The claim (gate rule L4): conditional on the resourceVersion that was read, and before any AWS write.
pub fn claim(draft: &mut Draft<'_>, request: &InstanceGroupUpgradeRequest) {
    let mut next = status(request);
    if request.phase() == Phase::Pending {
        next.decisions.push(stamp(draft, request, DecisionAction::Approved));
    }
    next.phase = Some(Phase::InProgress);
    next.message = Some("the rollout starts".to_owned());
    next.waits_for = None;
    next.started_at = Some(draft.time());
    let message = format!("approved by {}; the rollout starts", by(request));
    go(
        draft,
        request,
        next,
        Some(notice(false, "UpgradeStarted", request, &message)),
    );
}

/// Shows how far the rollout is.
pub fn progress(
    draft: &mut Draft<'_>,
    request: Option<&InstanceGroupUpgradeRequest>,
    text: &str,
    counts: NodeCounts,
    message: &str,
    wait: Option<&Wait>,
) {
    let Some(request) = request else { return };
    let mut next = status(request);
    next.progress = Some(text.to_owned());
    next.counts = Some(counts);
    next.message = Some(message.to_owned());
    next.waits_for = wait.map(|wait| WaitsFor {
        reason: wait.reason.to_string(),
        until: wait.until.map(|until| Time(seconds(until))),
    });
    go(draft, request, next, None);
}

/// Ends a request; every terminal phase comes through here.
fn end(
    draft: &mut Draft<'_>,
    request: &InstanceGroupUpgradeRequest,
    phase: Phase,
    message: &str,
    mut next: InstanceGroupUpgradeRequestStatus,
    note: Notice,
) {
    next.phase = Some(phase);
    next.message = Some(message.to_owned());
    next.waits_for = None;
    next.finished_at = Some(draft.time());
    if request.metadata.deletion_timestamp.is_some() {
        // Noted, since afterwards only clocks of two machines would tell which came first.
        let mut decision = stamp(draft, request, DecisionAction::Deleted);
        decision.reason = None;
        next.decisions.push(decision);
    }
    go(draft, request, next, Some(note));
}

/// All nodes run the target.
pub fn succeed(draft: &mut Draft<'_>, request: &InstanceGroupUpgradeRequest, total: i64, message: &str) {
    let mut next = status(request);
    next.progress = Some(format!("{total}/{total}"));
    next.counts = Some(NodeCounts {
        total: Some(total),
        updated: Some(total),
        ready: Some(total),
        ..NodeCounts::default()
    });
    let note = notice(false, "UpgradeRequestSucceeded", request, message);
    end(draft, request, Phase::Succeeded, message, next, note);
}

/// The target is no longer what the group should run.
pub fn supersede(draft: &mut Draft<'_>, request: &InstanceGroupUpgradeRequest, message: &str, by: Option<String>) {
    let mut next = status(request);
    next.superseded_by = by;
    let note = notice(false, "UpgradeSuperseded", request, message);
    end(draft, request, Phase::Superseded, message, next, note);
}

/// A person turned the target down.
pub fn deny(draft: &mut Draft<'_>, request: &InstanceGroupUpgradeRequest) {
    let mut next = status(request);
    next.decisions.push(stamp(draft, request, DecisionAction::Denied));
    let message = format!("denied by {}; this target does not start again by itself", by(request));
    let note = notice(true, "UpgradeDenied", request, &message);
    end(draft, request, Phase::Denied, &message, next, note);
}

/// A person stopped it.
pub fn cancel(draft: &mut Draft<'_>, request: &InstanceGroupUpgradeRequest, message: &str) {
    let mut next = status(request);
    if request.spec.cancelled {
        next.decisions.push(stamp(draft, request, DecisionAction::Cancelled));
    }
    let note = notice(true, "UpgradeCancelled", request, message);
    end(draft, request, Phase::Cancelled, message, next, note);
}

/// It cannot be done.
pub fn fail(
    draft: &mut Draft<'_>,
    request: &InstanceGroupUpgradeRequest,
    reason: &str,
    message: &str,
    instance_id: Option<String>,
) {
    let mut next = status(request);
    next.failure = Some(UpgradeFailure {
        reason: reason.to_owned(),
        message: Some(message.to_owned()),
        instance_id,
    });
    let note = notice(true, "UpgradeFailed", request, message);
    end(draft, request, Phase::Failed, message, next, note);
}

/// What stands in place of a successor's name when the target went back to what runs.
pub const TARGET_REVERTED: &str = "TargetReverted";

/// Entries kept in `status.blockedTargets`.
const BLOCKED_LIMIT: usize = 10;

/// What a request's target is blocked under.
pub fn block_key_of(request: &InstanceGroupUpgradeRequest) -> String {
    let target = &request.spec.target;
    block_key(&target.fingerprint, &target.removed_subnets)
}

/// Whether a target is blocked.
pub fn is_blocked(draft: &Draft<'_>, fingerprint: &str) -> bool {
    draft
        .status
        .blocked_targets
        .iter()
        .any(|blocked| blocked.fingerprint == fingerprint && !blocked.lifted)
}

/// What keeps a target from starting, by what it would be blocked under: the block on it, or the failure of what its nodes
/// boot, whichever subnets were to leave with it. What is approved has shown that it works.
pub fn block_on<'a>(draft: &'a Draft<'_>, approved: &Approved, key: &str) -> Option<&'a BlockedTarget> {
    let mut entries = draft.status.blocked_targets.iter();
    entries.find(|blocked| !blocked.lifted && stands_against(blocked, approved, key))
}

/// Whether a target was blocked once and a person asked for it again.
pub fn was_lifted(draft: &Draft<'_>, approved: &Approved, key: &str) -> bool {
    let mut entries = draft.status.blocked_targets.iter();
    entries.any(|blocked| blocked.lifted && stands_against(blocked, approved, key))
}

fn stands_against(blocked: &BlockedTarget, approved: &Approved, key: &str) -> bool {
    let fingerprint = blocked_fingerprint(key);
    let fails_anyway = blocked.reason == BlockReason::Failed
        && fingerprint != approved.mark.fingerprint
        && fingerprint == blocked_fingerprint(&blocked.fingerprint);
    fails_anyway || blocked.fingerprint == key
}

/// Who blocks a target that failed.
pub const OPERATOR: &str = "sluice";

/// Blocks a request's target in the group's record, a pass before the request itself ends, so that no crash in between
/// forgets the block. Returns whether it was recorded before, so that the request may end now.
pub fn block(
    draft: &mut Draft<'_>,
    approved: &Approved,
    request: &InstanceGroupUpgradeRequest,
    reason: BlockReason,
    message: &str,
) -> bool {
    let fingerprint = &request.spec.target.fingerprint;
    let key = block_key_of(request);
    if is_blocked(draft, &key) {
        return true;
    }
    let decided_by = match reason {
        BlockReason::Denied => by(request),
        BlockReason::Cancelled => cancelled_by(request),
        BlockReason::Failed => OPERATOR.to_owned(),
    };
    block_target(draft, &key, reason, &decided_by);
    let entry = HistoryEntry {
        from: Some(approved.mark.fingerprint.clone()),
        to: Some(fingerprint.clone()),
        from_image: approved.image_id.clone(),
        to_image: request.spec.target.image_id.clone(),
        by: Some(match reason {
            BlockReason::Denied | BlockReason::Failed => by(request),
            BlockReason::Cancelled => cancelled_by(request),
        }),
        when: Some(draft.time()),
        result: match reason {
            BlockReason::Denied => HistoryResult::Denied,
            BlockReason::Failed => HistoryResult::Failed,
            BlockReason::Cancelled => HistoryResult::Cancelled,
        },
        request: Some(name(request).to_owned()),
        message: Some(message.to_owned()),
    };
    draft.record(entry);
    draft.again();
    false
}

/// Blocks a target in the group's record; the oldest entry goes when there are too many.
pub fn block_target(draft: &mut Draft<'_>, fingerprint: &str, reason: BlockReason, by: &str) {
    let target = BlockedTarget {
        fingerprint: fingerprint.to_owned(),
        reason,
        at: Some(draft.time()),
        by: Some(by.to_owned()),
        lifted: false,
    };
    draft
        .status
        .blocked_targets
        .retain(|blocked| blocked.fingerprint != fingerprint);
    draft.status.blocked_targets.push(target);
    // The oldest goes, but never the one that the group would otherwise start at once.
    let current = draft
        .status
        .fingerprint
        .as_ref()
        .and_then(|status| status.desired.clone());
    while draft.status.blocked_targets.len() > BLOCKED_LIMIT {
        let is_current = |blocked: &BlockedTarget| Some(&blocked.fingerprint) == current.as_ref();
        let oldest = draft
            .status
            .blocked_targets
            .iter()
            .position(|blocked| !is_current(blocked));
        draft.status.blocked_targets.remove(oldest.unwrap_or_default());
    }
}

/// Lifts a block. Returns whether there was one. It stays on record that there was: nothing but a person approves the target
/// from now on.
pub fn unblock(draft: &mut Draft<'_>, fingerprint: &str) -> bool {
    let mut lifted = false;
    for blocked in &mut draft.status.blocked_targets {
        if blocked.fingerprint == fingerprint && !blocked.lifted {
            blocked.lifted = true;
            lifted = true;
        }
    }
    lifted
}

/// Forgets that a target was blocked once: it runs, where something else was approved before.
pub fn proven(draft: &mut Draft<'_>, before: &Approved, key: &str) {
    let list = &mut draft.status.blocked_targets;
    list.retain(|blocked| !(blocked.lifted && stands_against(blocked, before, key)));
}
