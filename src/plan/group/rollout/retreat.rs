//! The way back from a rollout that stops before its end (rule R5).
//!
//! Owns its order: the pin is back already (upkeep moves it before this runs), then nodes of the target that never became
//! Ready go, then every note on nodes, then the target is blocked and the request ends. New nodes that are Ready stay.

use crate::api::Reason;
use crate::api::instance_group::{
    BlockReason, CurrentState, HistoryEntry, HistoryResult, RolloutEnding, RolloutResult,
};
use crate::plan::group::draft::Draft;
use crate::plan::group::{Standing, requests};
use crate::plan::rollout::welcome;
use crate::plan::step::Action;

use super::{Rollout, advance, clear_nodes, launched, members, resume};

/// The headline on the way back; the next look sees what is left to do.
pub fn headline(draft: &mut Draft<'_>, message: &str) {
    draft.headline(CurrentState::ReconcileModifying, Reason::Retreating, message);
}

/// Takes a step back.
pub fn plan(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout, ending: &RolloutEnding) {
    headline(draft, &ending.message);
    draft.again();
    let version = standing.template.found().and_then(|template| rollout.version(template));
    if ending.cleared_at.is_none() {
        if let Some(version) = version {
            let members = members(draft, standing, Some((rollout, version)));
            for note in welcome(&members, &rollout.key(), draft.now()) {
                draft.act(advance::action(note, &standing.scaling_group.name));
            }
        }
        let never_ready = version
            .map(|version| never_ready(draft, standing, rollout, version))
            .unwrap_or_default();
        if never_ready.is_empty() {
            let now = draft.time();
            if let Some(ending) = draft.status.rollout.as_mut().and_then(|record| record.ending.as_mut()) {
                ending.cleared_at = Some(now);
            }
            return;
        }
        draft.notice(
            true,
            "NodesTerminated",
            format!("terminates {}, which never became Ready", never_ready.join(", ")),
        );
        for instance_id in never_ready {
            draft.act(Action::Terminate {
                group: standing.scaling_group.name.clone(),
                instance_id,
                shrink: false,
            });
        }
        return;
    }
    let of_target = version.map(|version| (rollout, version));
    if clear_nodes(draft, standing, of_target) && resume(draft, standing) {
        finish(draft, standing, rollout, ending);
    }
}

/// Instances of the target that were not Ready once and came with the rollout. None where the target boots what is approved
/// and only a subnet was to go: their successors would be the same.
fn never_ready(draft: &Draft<'_>, standing: &Standing<'_>, rollout: &Rollout, version: i64) -> Vec<String> {
    if standing.approved.version == Some(version) {
        return Vec::new();
    }
    let key = rollout.key();
    let present = draft.status.rollout.as_ref().map(|record| &record.present_at_start);
    let came = |id: &str| !present.is_some_and(|present| present.iter().any(|other| other == id));
    members(draft, standing, Some((rollout, version)))
        .iter()
        .filter(|member| launched(standing, member.instance, version) && came(member.id()))
        .filter(|member| !member.leaving() && !member.in_standby())
        .filter(|member| !member.ready() && !member.joined(&key))
        .map(|member| member.id().to_owned())
        .collect()
}

/// Nothing is left at AWS and on nodes: the block, then the end of the request.
fn finish(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout, ending: &RolloutEnding) {
    let cause = match ending.result {
        RolloutResult::Failed => BlockReason::Failed,
        RolloutResult::Cancelled => BlockReason::Cancelled,
        RolloutResult::Locked => {
            draft.status.rollout = None;
            return draft.notice(true, "RolloutLocked", ending.message.clone());
        }
    };
    let Some(request) = &rollout.request else {
        requests::block_target(draft, &rollout.key(), cause, requests::OPERATOR);
        draft.status.rollout = None;
        let entry = HistoryEntry {
            from: Some(standing.approved.mark.fingerprint.clone()),
            to: Some(rollout.fingerprint.clone()),
            from_image: standing.approved.image_id.clone(),
            to_image: Some(rollout.image_id.clone()),
            by: Some("unlocked".to_owned()),
            when: Some(draft.time()),
            result: HistoryResult::Failed,
            request: None,
            message: Some(ending.message.clone()),
        };
        draft.record(entry);
        return draft.notice(true, "UpgradeFailed", ending.message.clone());
    };
    // The record stays until the request has ended, or the rollout would begin anew.
    if !requests::block(draft, &standing.approved, request, cause, &ending.message) {
        return;
    }
    if cause == BlockReason::Cancelled {
        requests::cancel(draft, request, &ending.message);
    } else {
        requests::fail(
            draft,
            request,
            &ending.reason,
            &ending.message,
            ending.instance_id.clone(),
        );
    }
}
