//! The gate: what has to be allowed before a group's nodes may change.
//!
//! Owns the rules L1 to L11 of the life cycle: when a request opens, is claimed, is superseded, blocks its target, goes
//! away. Must not replace nodes; the rollout does.

use jiff::{SignedDuration, Timestamp};

use crate::api::instance_group::{BlockReason, BlockedTarget, CurrentState, RolloutRecord};
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase, UpgradeReason};
use crate::api::{ConditionType, Reason, annotation};
use crate::plan::facts::Fact;
use crate::plan::launch::render;
use crate::plan::naming::block_key;
use crate::plan::problem::Problem;
use crate::plan::settings::Settings;
use crate::plan::step::{Action, RequestRef};
use crate::plan::target::Target;

use super::draft::Draft;
use super::turn::{may_start, waits_for_turn};
use super::{Standing, aging, opening, records, requests, rollout};

/// How long a failed request is kept (gate rule L10).
const FAILED_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Decides on the group's requests and on its next rollout.
pub fn plan(draft: &mut Draft<'_>, standing: &Standing<'_>) {
    if deleted_by_a_person(draft) {
        return;
    }
    if let Some(rollout) = rollout::under_way(draft, standing) {
        draft.status.upgrade_request = rollout
            .request
            .as_ref()
            .map(|request| requests::name(request).to_owned());
        return rollout::proceed(draft, standing, &rollout);
    }
    draft.status.upgrade_request = None;
    if rollout::leftovers(draft, standing) {
        return records::rest(draft, standing);
    }
    if retried(draft) {
        return;
    }
    remove_finished(draft, standing);
    if let Some(request) = open_request(draft) {
        draft.status.upgrade_request = Some(requests::name(request).to_owned());
        return decide(draft, standing, request);
    }
    match &standing.target {
        Ok(target) if target.is(&standing.approved) => records::rest(draft, standing),
        Ok(target) => drifted(draft, standing, target),
        Err(problem) => {
            records::rest(draft, standing);
            draft.obstacle(problem);
        }
    }
}

/// The one request that is neither running nor finished. Should there be several, the oldest is dealt with first.
fn open_request<'a>(draft: &Draft<'a>) -> Option<&'a InstanceGroupUpgradeRequest> {
    draft.observed.requests.iter().find(|request| {
        matches!(request.phase(), Phase::Pending | Phase::Approved) && request.metadata.deletion_timestamp.is_none()
    })
}

/// Lets go of requests that a person deleted. Deleting a denied, failed or cancelled one lifts its block (L9); the lift
/// is recorded a pass before the object goes.
fn deleted_by_a_person(draft: &mut Draft<'_>) -> bool {
    let mut handled = false;
    for request in &draft.observed.requests {
        if request.metadata.deletion_timestamp.is_none() {
            continue;
        }
        let is = request.phase();
        if is == Phase::InProgress {
            continue;
        }
        // Deleted while it still ran: that was a cancel, whatever it ended as, and its block stays (L11).
        let lifts = match is {
            Phase::Denied | Phase::Failed | Phase::Cancelled => !requests::was_deleted_before_its_end(request),
            _ => false,
        };
        handled = true;
        draft.again();
        if lifts && requests::unblock(draft, &requests::block_key_of(request)) {
            draft.notice(
                false,
                "UpgradeUnblocked",
                format!(
                    "{} was deleted: its target may be asked for again",
                    requests::name(request)
                ),
            );
            continue;
        }
        if matches!(is, Phase::Pending | Phase::Approved) {
            let message = format!(
                "{} was deleted while it waited; it opens again as long as the group differs. To turn it down for good, set spec.denied",
                requests::name(request)
            );
            draft.notice(true, "UpgradeRequestDeleted", message);
        }
        draft.act(Action::ReleaseRequest(RequestRef::of(request)));
    }
    handled
}

/// Acts on the retry annotation: it lifts a block once.
fn retried(draft: &mut Draft<'_>) -> bool {
    let Some(fingerprint) = draft
        .observed
        .group
        .annotation(annotation::RETRY_UPGRADE)
        .map(str::to_owned)
    else {
        return false;
    };
    draft.again();
    if requests::unblock(draft, &fingerprint) {
        draft.notice(
            false,
            "UpgradeUnblocked",
            format!("target {fingerprint} may be asked for again"),
        );
        return true;
    }
    // The object of the blocked target would keep its name from being used again.
    for request in &draft.observed.requests {
        let ended = matches!(request.phase(), Phase::Denied | Phase::Failed | Phase::Cancelled);
        if ended && requests::block_key_of(request) == fingerprint && request.metadata.deletion_timestamp.is_none() {
            draft.act(Action::RemoveRequest(RequestRef::of(request)));
        }
    }
    draft.act(Action::RemoveAnnotation {
        key: annotation::RETRY_UPGRADE,
        value: fingerprint,
    });
    true
}

/// Removes finished requests whose time is over (L10), and the denied ones of an unlocked group or of another target (L8).
fn remove_finished(draft: &mut Draft<'_>, standing: &Standing<'_>) {
    let settings = draft.observed.settings.binding();
    let finished_kept = settings.map_or(Settings::default().finished_kept, |settings| settings.finished_kept);
    for request in &draft.observed.requests {
        let is = request.phase();
        if !is.is_terminal() || request.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let finished_at = request
            .status
            .as_ref()
            .and_then(|status| status.finished_at.as_ref())
            .map_or(draft.now(), |time| time.0);
        let until = |kept: SignedDuration| finished_at.saturating_add(kept).unwrap_or(Timestamp::MAX);
        let gone = match is {
            Phase::Denied => {
                let other_target = standing
                    .target
                    .as_ref()
                    .is_ok_and(|target| target.mark.fingerprint != request.spec.target.fingerprint);
                // What L1 asks for locked or not stays on an unlocked group as well.
                let asks_anyway = matches!(
                    request.spec.reason,
                    UpgradeReason::KubernetesVersionDrift | UpgradeReason::Adoption | UpgradeReason::Multiple
                );
                (!standing.lock.locked() && !asks_anyway) || other_target
            }
            Phase::Failed => ends(draft, until(FAILED_KEPT)),
            _ => ends(draft, until(finished_kept)),
        };
        if gone {
            draft.act(Action::RemoveRequest(RequestRef::of(request)));
            draft.again();
        }
    }
}

/// Whether a time has come; if not, the group is looked at again then.
fn ends(draft: &mut Draft<'_>, at: Timestamp) -> bool {
    if at > draft.now() {
        draft.look_at(at);
        return false;
    }
    true
}

/// Decides on a request that waits.
fn decide(draft: &mut Draft<'_>, standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest) {
    let approved = &standing.approved;
    if request.spec.denied {
        if requests::block(
            draft,
            approved,
            request,
            BlockReason::Denied,
            &request.spec.decision_reason,
        ) {
            requests::deny(draft, request);
        }
        return draft.again();
    }
    if request.spec.cancelled {
        if requests::block(
            draft,
            approved,
            request,
            BlockReason::Cancelled,
            &request.spec.decision_reason,
        ) {
            requests::cancel(draft, request, "cancelled before the rollout started");
        }
        return draft.again();
    }
    let again = |draft: &mut Draft<'_>, message: &str, by: Option<String>| {
        requests::supersede(draft, request, message, by);
        draft.again();
    };
    match &standing.target {
        Ok(target) if target.is(approved) => {
            let why = "TargetReverted: the group should run what it runs";
            return again(draft, why, Some(requests::TARGET_REVERTED.to_owned()));
        }
        Ok(target) => {
            let name = standing
                .wanted
                .identity
                .request_name(&target.mark.fingerprint, &target.removed_subnets);
            if name != requests::name(request) && !aging::keeps_its_date(draft.observed, standing, request, target) {
                return again(draft, &format!("the target moved on; see {name}"), Some(name));
            }
            if !standing.lock.locked() && !opening::is_minor_step(standing, target) {
                let message = format!(
                    "{} is not needed any more: the group is unlocked",
                    requests::name(request)
                );
                draft.notice(false, "UpgradeRequestRemoved", message);
                draft.act(Action::RemoveRequest(RequestRef::of(request)));
                return draft.again();
            }
        }
        // Nothing could be learned: no verdict, and an approved request still runs on its own image.
        Err(problem) if problem.is_unknown() => {
            draft.condition(problem.condition(), true, problem.reason(), &problem.to_string());
            draft.look_in(30);
        }
        Err(problem) if request.spec.approved => return unusable(draft, standing, request, problem),
        Err(problem) => {
            requests::supersede(draft, request, &problem.to_string(), None);
            draft.obstacle(problem);
            return draft.again();
        }
    }
    if request.spec.approved {
        claim(draft, standing, request);
    } else {
        ask(draft, standing, request);
    }
}

/// Shows that a decision is waited for.
fn ask(draft: &mut Draft<'_>, standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest) {
    let command = requests::approve_command(request);
    let outlook = aging::outlook(draft.observed, request);
    requests::hold_until(
        draft,
        request,
        Reason::WaitsForApproval,
        &format!("{}; to approve now: {command}", outlook.message),
        outlook.until,
    );
    let from = request
        .spec
        .from
        .as_ref()
        .and_then(|from| from.image_id.as_deref())
        .unwrap_or("-");
    let to = request.spec.target.image_id.as_deref().unwrap_or("-");
    let message = format!(
        "upgrade {} ({}, {from} to {to}) waits for approval: {}; to approve now: {command}",
        requests::name(request),
        request.spec.reason,
        outlook.message
    );
    aging::overdue(draft, standing, request);
    draft.condition(ConditionType::UpgradePending, true, Reason::WaitsForApproval, &message);
    draft.wait(Reason::WaitsForApproval, &message);
    if let Some(until) = outlook.until {
        draft.look_at(until);
    }
    if records::all_ready(draft, standing.scaling_group) {
        draft.headline(CurrentState::Locked, Reason::WaitsForApproval, &message);
    } else {
        records::missing_nodes(draft, standing.scaling_group);
    }
}

/// Claims an approved request if the current manifest with the request's own image is exactly what was approved (L4).
fn claim(draft: &mut Draft<'_>, standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest) {
    let target = &request.spec.target;
    let image_id = target.image_id.as_deref().unwrap_or_default();
    let wait = |draft: &mut Draft<'_>, problem: &Problem| {
        requests::hold(draft, request, problem.reason(), &format!("approved; waits: {problem}"));
        draft.obstacle(problem);
    };
    let ground = match &standing.ground {
        Ok(ground) => ground,
        Err(problem) => return wait(draft, problem),
    };
    let version = target.render_version.as_deref().unwrap_or_default();
    let matches = render(standing.wanted, ground, image_id, version)
        .is_ok_and(|inputs| inputs.fingerprint() == target.fingerprint);
    if !matches {
        requests::supersede(draft, request, "the group no longer renders what was approved", None);
        return draft.again();
    }
    match draft.observed.image(image_id) {
        Fact::Unknown(failure) => wait(draft, &Problem::Unknown(failure)),
        Fact::Found(image) if image.can_launch() => {
            if let Err((reason, message, until)) = may_start(draft, standing, request.spec.urgent) {
                requests::hold_until(draft, request, reason, &format!("approved; {message}"), until);
                return waits_for_turn(draft, standing, reason, &message, until);
            }
            if !draft.observed.slots.held {
                draft.act(Action::TakeSlot);
                return draft.again();
            }
            requests::claim(draft, request);
            draft.headline(
                CurrentState::InitUpgrade,
                Reason::RollingOut,
                &format!("upgrade {} starts", requests::name(request)),
            );
            draft.again();
        }
        Fact::Found(_) | Fact::NotFound => image_gone(draft, standing, request, image_id),
    }
}

/// An approved target turned out unusable before the claim (cases D19, D20).
fn unusable(draft: &mut Draft<'_>, standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest, problem: &Problem) {
    let image_id = request.spec.target.image_id.as_deref().unwrap_or_default();
    match draft.observed.image(image_id) {
        Fact::NotFound => image_gone(draft, standing, request, image_id),
        Fact::Found(image) if !image.can_launch() => image_gone(draft, standing, request, image_id),
        Fact::Found(_) | Fact::Unknown(_) => {
            requests::hold(draft, request, problem.reason(), &format!("approved; waits: {problem}"));
            draft.obstacle(problem);
        }
    }
}

/// The approved image is gone: the request fails, and no node is touched (case D20).
fn image_gone(draft: &mut Draft<'_>, standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest, image_id: &str) {
    let message = format!("image {image_id} was approved and cannot be launched any more; no node was touched");
    if requests::block(draft, &standing.approved, request, BlockReason::Failed, &message) {
        requests::fail(draft, request, "ImageUnavailable", &message, None);
    }
    draft.again();
}

/// The group should run something else than it is approved for, and no request is open.
fn drifted(draft: &mut Draft<'_>, standing: &Standing<'_>, target: &Target) {
    let fingerprint = &target.mark.fingerprint;
    let key = block_key(fingerprint, &target.removed_subnets);
    if let Some(entry) = requests::block_on(draft, &standing.approved, &key).cloned() {
        return blocked(draft, standing, target, &entry);
    }
    let reason = opening::reason(draft.observed, standing, target);
    if standing.lock.locked() || opening::is_minor_step(standing, target) {
        return open(draft, standing, target, reason);
    }
    if let Err((reason, message, until)) = may_start(draft, standing, false) {
        let message = format!("image {} waits: {message}", target.image.id);
        return waits_for_turn(draft, standing, reason, &message, until);
    }
    if !draft.observed.slots.held {
        records::rest(draft, standing);
        draft.act(Action::TakeSlot);
        return draft.again();
    }
    let time = draft.time();
    draft.status.rollout = Some(RolloutRecord {
        fingerprint: fingerprint.clone(),
        image_id: Some(target.image.id.clone()),
        removed_subnets: target.removed_subnets.iter().cloned().collect(),
        started_at: Some(time),
        ..RolloutRecord::default()
    });
    draft.headline(
        CurrentState::InitUpgrade,
        Reason::RollingOut,
        &format!("not locked: rolls out image {}", target.image.id),
    );
    draft.notice(
        false,
        "UpgradeStarted",
        format!("not locked: the rollout of image {} starts ({reason})", target.image.id),
    );
    draft.again();
}

/// Opens the request for a target. A finished one of the same name goes first: decisions do not carry over.
fn open(draft: &mut Draft<'_>, standing: &Standing<'_>, target: &Target, reason: UpgradeReason) {
    let mut request = opening::request(draft.observed, standing, target, reason);
    if requests::was_lifted(draft, &standing.approved, &requests::block_key_of(&request)) {
        opening::asks_again(&mut request);
    }
    let taken = draft
        .observed
        .requests
        .iter()
        .find(|other| other.metadata.name == request.metadata.name);
    records::rest(draft, standing);
    match taken {
        Some(finished) => draft.act(Action::RemoveRequest(RequestRef::of(finished))),
        None => draft.act(Action::OpenRequest(Box::new(request))),
    }
    draft.again();
}

/// The word for a block's cause.
fn blocked_reason(cause: BlockReason) -> Reason {
    match cause {
        BlockReason::Denied => Reason::Denied,
        BlockReason::Failed => Reason::Failed,
        BlockReason::Cancelled => Reason::Cancelled,
    }
}

/// The target is blocked: says so, and what lifts it.
fn blocked(draft: &mut Draft<'_>, standing: &Standing<'_>, target: &Target, entry: &BlockedTarget) {
    let by = entry.by.as_deref().unwrap_or("unknown");
    let what = match entry.reason {
        BlockReason::Failed => "failed, status.history says why".to_owned(),
        BlockReason::Denied => format!("was denied by {by}"),
        BlockReason::Cancelled => format!("was cancelled by {by}"),
    };
    let annotate = format!("annotate the group {}={}", annotation::RETRY_UPGRADE, entry.fingerprint);
    let mut requests = draft.observed.requests.iter();
    let way_out = match requests.find(|request| requests::block_key_of(request) == entry.fingerprint) {
        Some(request) => format!(
            "delete upgraderequest {} (needs approve), or {annotate}",
            requests::name(request)
        ),
        None => annotate,
    };
    let message = format!(
        "image {} waits: its upgrade {what}; to ask again, {way_out}",
        target.image.id
    );
    records::rest(draft, standing);
    let reason = blocked_reason(entry.reason);
    draft.condition(ConditionType::UpgradeBlocked, true, reason, &message);
    draft.wait(reason, &message);
    if records::all_ready(draft, standing.scaling_group) {
        draft.status.message = Some(message);
    }
}
