//! The rollout: from a claim to the last node.
//!
//! Owns the steps after the claim: the version, the replacement of nodes one by one, the end, and the retreat. Must
//! not claim; the gate does. Replacement here is simple: terminate one, wait until all are Ready, next. It
//! never takes a node while one is missing, whatever the cause (promise P3).

use std::collections::BTreeSet;

use crate::api::InstanceGroup;
use crate::api::instance_group::{BlockReason, CurrentState, HistoryEntry, HistoryResult};
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, NodeCounts, Phase};
use crate::api::{ConditionType, Reason};
use crate::plan::facts::{Fact, Instance, LaunchTemplate};
use crate::plan::launch::render;
use crate::plan::naming::{VersionMark, block_key};
use crate::plan::step::Action;
use crate::plan::target::Approved;

use super::draft::Draft;
use super::{Standing, records, requests, upkeep};

/// A rollout under way.
pub struct Rollout {
    /// Fingerprint of the target.
    pub fingerprint: String,
    /// Image of the target.
    pub image_id: String,
    /// Rendering rules of the target.
    pub render_version: String,
    /// Kubernetes version that the target's image was resolved for.
    pub kubernetes_version: Option<String>,
    /// Subnets that the group leaves.
    pub removed_subnets: BTreeSet<String>,
    /// The claimed request; `None` = not gated.
    pub request: Option<InstanceGroupUpgradeRequest>,
}

impl Rollout {
    /// The template version of the target, once it is made.
    pub fn version(&self, template: &LaunchTemplate) -> Option<i64> {
        upkeep::with_fingerprint(template, &self.fingerprint)
    }
}

/// Whether a group has a rollout under way or is being created, so that the template's full list of versions and
/// fresh facts are needed.
#[must_use]
pub fn in_motion(group: &InstanceGroup, requests: &[InstanceGroupUpgradeRequest]) -> bool {
    let status = group.status.as_ref();
    status.is_none_or(|status| status.rollout.is_some() || status.launch_template.is_none())
        || requests::rolling(requests)
}

/// The rollout that may go on: claimed and not cancelled, or ungated and not locked since, and its image still there.
pub fn running(draft: &Draft<'_>, standing: &Standing<'_>) -> Option<Rollout> {
    under_way(draft, standing).filter(|rollout| !image_gone(draft, standing, rollout))
}

/// Whether the image of a rollout is known to be gone while nodes that it needs are still to come. What is merely unknown
/// does not stop a rollout.
fn image_gone(draft: &Draft<'_>, standing: &Standing<'_>, rollout: &Rollout) -> bool {
    let gone = match draft.observed.images.get(&rollout.image_id) {
        Some(Fact::NotFound) => true,
        Some(Fact::Found(image)) => !image.can_launch(),
        Some(Fact::Unknown(_)) | None => false,
    };
    let version = standing.template.found().and_then(|template| rollout.version(template));
    let done = |instance: &Instance| version.is_some() && instance.template_version == version;
    gone && !standing.scaling_group.instances.iter().all(done)
}

/// The rollout that was claimed and not cancelled, or that is ungated and was not locked since.
fn under_way(draft: &Draft<'_>, standing: &Standing<'_>) -> Option<Rollout> {
    if let Some(request) = claimed(draft) {
        if requests::is_cancelled(request) {
            return None;
        }
        let target = &request.spec.target;
        return Some(Rollout {
            fingerprint: target.fingerprint.clone(),
            image_id: target.image_id.clone().unwrap_or_default(),
            render_version: target.render_version.clone().unwrap_or_default(),
            kubernetes_version: target.kubernetes_version.clone(),
            removed_subnets: target.removed_subnets.iter().cloned().collect(),
            request: Some(request.clone()),
        });
    }
    let record = draft.status.rollout.as_ref().filter(|_| !standing.lock.locked())?;
    let target = standing
        .target
        .as_ref()
        .ok()
        .filter(|target| target.mark.fingerprint == record.fingerprint);
    Some(Rollout {
        fingerprint: record.fingerprint.clone(),
        image_id: record.image_id.clone().unwrap_or_default(),
        render_version: target
            .map(|target| target.mark.render_version.clone())
            .unwrap_or_default(),
        kubernetes_version: target.and_then(|target| target.mark.kubernetes_version.clone()),
        removed_subnets: record.removed_subnets.iter().cloned().collect(),
        request: None,
    })
}

/// The request in progress, if there is one.
fn claimed<'a>(draft: &Draft<'a>) -> Option<&'a InstanceGroupUpgradeRequest> {
    draft
        .observed
        .requests
        .iter()
        .find(|request| request.phase() == Phase::InProgress)
}

/// Takes a rollout a step further.
pub fn advance(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout) {
    let Some(template) = standing.template.found().filter(|template| template.complete) else {
        return super::creation::waits_for_versions(draft);
    };
    let Some(version) = rollout.version(template) else {
        return make_version(draft, standing, rollout, template);
    };
    let group = standing.scaling_group;
    let old: Vec<&Instance> = group
        .instances
        .iter()
        .filter(|instance| !instance.terminating() && !on_target(standing, rollout, instance, &template.id, version))
        .collect();
    let updated = group
        .instances
        .iter()
        .filter(|instance| instance.in_service() && on_target(standing, rollout, instance, &template.id, version))
        .filter(|instance| records::is_ready(draft, &instance.id))
        .count();
    let counts = Progress {
        desired: i64::from(group.desired_capacity),
        updated: i64::try_from(updated).unwrap_or(i64::MAX),
    };
    let all_ready = records::all_ready(draft, group);
    let message = format!(
        "replaces nodes one at a time with image {}: {} of {} done",
        rollout.image_id, counts.updated, counts.desired
    );
    draft.condition(ConditionType::Progressing, true, Reason::RollingOut, &message);
    draft.headline(CurrentState::InitUpgrade, Reason::RollingOut, &message);
    if old.is_empty() && all_ready {
        return complete(draft, standing, rollout, template, version);
    }
    requests::progress(
        draft,
        rollout.request.as_ref(),
        &counts.text(),
        counts.counts(),
        &message,
    );
    match next_node(draft, &old, all_ready) {
        Some(instance) => {
            draft.notice(
                false,
                "NodeReplaced",
                format!(
                    "terminates {} in {}; Auto Scaling launches its successor",
                    instance.id, instance.zone
                ),
            );
            draft.act(Action::Terminate {
                group: group.name.clone(),
                instance_id: instance.id.clone(),
            });
            draft.again();
        }
        None => records::missing_nodes_in_rollout(draft, group, &message),
    }
}

/// How far a rollout is.
struct Progress {
    desired: i64,
    updated: i64,
}

impl Progress {
    fn text(&self) -> String {
        format!("{}/{}", self.updated, self.desired)
    }

    fn counts(&self) -> NodeCounts {
        NodeCounts {
            total: Some(self.desired),
            updated: Some(self.updated),
            ready: Some(self.updated),
            ..NodeCounts::default()
        }
    }
}

/// The node to take next: one that is not Ready before one that is, and a Ready one only while every node is Ready.
fn next_node<'a>(draft: &Draft<'_>, old: &[&'a Instance], all_ready: bool) -> Option<&'a Instance> {
    if all_ready {
        return old.first().copied();
    }
    // A node that is down already costs nothing to take, as long as nothing else is missing.
    let group = draft.observed.scaling_group.found()?;
    let missing: Vec<&Instance> = group
        .instances
        .iter()
        .filter(|instance| !records::is_ready(draft, &instance.id))
        .collect();
    let full = i32::try_from(group.instances.len()) == Ok(group.desired_capacity);
    match missing.as_slice() {
        [only] if full && only.in_service() => old.iter().copied().find(|instance| instance.id == only.id),
        _ => None,
    }
}

/// Whether an instance is what the rollout wants.
fn on_target(standing: &Standing<'_>, rollout: &Rollout, instance: &Instance, template_id: &str, version: i64) -> bool {
    let leaves = !rollout.removed_subnets.is_empty()
        && standing
            .ground
            .as_ref()
            .is_ok_and(|ground| ground.subnets.iter().all(|subnet| subnet.zone != instance.zone));
    instance.template_id.as_deref() == Some(template_id) && instance.template_version == Some(version) && !leaves
}

/// Makes the target's version: the first AWS write after the claim.
fn make_version(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout, template: &LaunchTemplate) {
    let ground = match &standing.ground {
        Ok(ground) => ground,
        Err(problem) => return draft.obstacle(problem),
    };
    let inputs = render(standing.wanted, ground, &rollout.image_id, &rollout.render_version)
        .ok()
        .filter(|inputs| inputs.fingerprint() == rollout.fingerprint);
    let Some(inputs) = inputs else {
        // The manifest moved between the claim and the first write: nothing at AWS was touched yet.
        match &rollout.request {
            Some(request) => requests::supersede(
                draft,
                request,
                "the group was edited before the rollout touched anything",
                None,
            ),
            None => draft.status.rollout = None,
        }
        return draft.again();
    };
    draft.headline(
        CurrentState::InitUpgrade,
        Reason::RollingOut,
        &format!("makes a launch template version with image {}", rollout.image_id),
    );
    draft.act(Action::CreateVersion {
        template_id: template.id.clone(),
        mark: VersionMark {
            fingerprint: rollout.fingerprint.clone(),
            render_version: rollout.render_version.clone(),
            kubernetes_version: rollout.kubernetes_version.clone(),
        },
        inputs: Box::new(inputs),
        token: standing.wanted.identity.version_token(template, &rollout.fingerprint),
    });
    draft.again();
}

/// The end of a rollout, in passes that each can be repeated: the default version, the record, the request.
fn complete(
    draft: &mut Draft<'_>,
    standing: &Standing<'_>,
    rollout: &Rollout,
    template: &LaunchTemplate,
    version: i64,
) {
    if template.default_version != version {
        draft.act(Action::SetDefaultVersion {
            template_id: template.id.clone(),
            number: version,
        });
        return draft.again();
    }
    let name = rollout
        .request
        .as_ref()
        .and_then(|request| request.metadata.name.clone());
    // A target that comes back has a request of the same name: only an entry since this rollout's start is its own.
    let started_at = rollout
        .request
        .as_ref()
        .and_then(|request| request.status.as_ref()?.started_at.clone());
    let recorded = |entry: &HistoryEntry| {
        entry.request == name && entry.result == HistoryResult::Succeeded && entry.when >= started_at
    };
    let is_approved =
        standing.approved.mark.fingerprint == rollout.fingerprint && standing.approved.version == Some(version);
    if name.is_none() || !is_approved || !draft.status.history.iter().any(recorded) {
        let mark = template
            .versions
            .get(&version)
            .and_then(|found| VersionMark::parse(&found.description));
        let from = standing.approved.clone();
        let approved = Approved {
            mark: mark.unwrap_or_else(|| from.mark.clone()),
            version: Some(version),
            image_id: Some(rollout.image_id.clone()),
        };
        records::remember(draft, &approved);
        draft.status.rollout = None;
        if name.is_none() {
            records::prune(draft, standing, draft.observed.kept_versions);
        }
        let entry = HistoryEntry {
            from: Some(from.mark.fingerprint),
            to: Some(rollout.fingerprint.clone()),
            from_image: from.image_id,
            to_image: Some(rollout.image_id.clone()),
            by: Some(
                rollout
                    .request
                    .as_ref()
                    .map_or_else(|| "unlocked".to_owned(), requests::by),
            ),
            when: Some(draft.time()),
            result: HistoryResult::Succeeded,
            request: name,
            message: None,
        };
        draft.record(entry);
        draft.notice(
            false,
            "UpgradeSucceeded",
            format!("all nodes run image {} (version {version})", rollout.image_id),
        );
        return draft.again();
    }
    if let Some(request) = &rollout.request {
        let message = format!(
            "all {} nodes run image {}",
            standing.scaling_group.desired_capacity, rollout.image_id
        );
        requests::succeed(
            draft,
            request,
            i64::from(standing.scaling_group.desired_capacity),
            &message,
        );
    }
    records::prune(draft, standing, draft.observed.kept_versions);
    records::rest(draft, standing);
    draft.again();
}

/// The retreat from a rollout that was cancelled, stopped by a lock, or whose image is gone. The pin is back already
/// (upkeep moves it before this runs); new nodes stay and are shown. Returns whether there was something to do.
pub fn retreat(draft: &mut Draft<'_>, standing: &Standing<'_>) -> bool {
    if let Some(request) = claimed(draft).filter(|request| requests::is_cancelled(request)) {
        if requests::block(
            draft,
            &standing.approved,
            request,
            BlockReason::Cancelled,
            "cancelled during the rollout",
        ) {
            let message = "cancelled; nodes replaced so far stay, new nodes boot what was approved before";
            requests::cancel(draft, request, message);
        }
        stopped(draft, Reason::Cancelled, "the rollout was cancelled");
        return true;
    }
    if draft.status.rollout.is_some() && standing.lock.locked() {
        draft.status.rollout = None;
        let message = "the group was locked during a rollout: stopped; the rest waits for a request";
        draft.notice(true, "RolloutLocked", message.to_owned());
        stopped(draft, Reason::RolloutLocked, message);
        return true;
    }
    let Some(rollout) = under_way(draft, standing).filter(|rollout| image_gone(draft, standing, rollout)) else {
        return false;
    };
    let message = format!(
        "image {} cannot be launched any more; new nodes boot what was approved before",
        rollout.image_id
    );
    if let Some(request) = &rollout.request {
        if requests::block(draft, &standing.approved, request, BlockReason::Failed, &message) {
            requests::fail(draft, request, "ImageUnavailable", &message);
        }
    } else {
        let key = block_key(&rollout.fingerprint, &rollout.removed_subnets);
        requests::block_target(draft, &key, BlockReason::Failed, "unlocked");
        draft.status.rollout = None;
        draft.notice(true, "UpgradeFailed", message.clone());
    }
    stopped(draft, Reason::Failed, &message);
    true
}

/// The headline of a rollout that was stopped; the next look sees what is left to do.
fn stopped(draft: &mut Draft<'_>, reason: Reason, message: &str) {
    draft.headline(CurrentState::ReconcileModifying, reason, message);
    draft.again();
}
