//! A group's rollout: from a claim to the last node, or back.
//!
//! Owns what a rollout is and which of its parts is due: the version, the nodes, the end, the retreat. Must not claim; the
//! gate does. Which node goes next is [`crate::plan::rollout`]'s.

mod advance;
mod complete;
mod retreat;
mod version;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::InstanceGroup;
use crate::api::instance_group::{BlockReason, HistoryEntry, RolloutEnding, RolloutRecord, RolloutResult};
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestStatus, Phase};
use crate::plan::facts::{Fact, Instance, LaunchTemplate};
use crate::plan::naming::block_key;
use crate::plan::problem::Problem;
use crate::plan::rollout::{Member, tidy};
use crate::plan::step::Action;

use super::draft::Draft;
use super::{Standing, requests, upkeep};

pub use advance::holds_still;

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

    /// What its target is blocked under, and what its notes on nodes name.
    pub fn key(&self) -> String {
        block_key(&self.fingerprint, &self.removed_subnets)
    }

    /// Name of its request.
    fn request_name(&self) -> Option<&str> {
        self.request.as_ref().map(requests::name)
    }

    /// Whether it was asked to stop: cancelled, or ungated and locked since.
    fn stopping(&self, standing: &Standing<'_>) -> bool {
        self.request
            .as_ref()
            .map_or(standing.lock.locked(), requests::is_cancelled)
    }

    /// Its record in the status; rebuilt from the request where there is none.
    fn record(&self, draft: &Draft<'_>) -> RolloutRecord {
        let same = |record: &&RolloutRecord| {
            record.fingerprint == self.fingerprint && record.request.as_deref() == self.request_name()
        };
        draft
            .status
            .rollout
            .as_ref()
            .filter(same)
            .cloned()
            .unwrap_or_else(|| RolloutRecord {
                request: self.request_name().map(str::to_owned),
                fingerprint: self.fingerprint.clone(),
                image_id: Some(self.image_id.clone()),
                removed_subnets: self.removed_subnets.iter().cloned().collect(),
                started_at: self.started_at(),
                // Set where only the record was lost: the rollout began before.
                progress: self.status().and_then(|status| status.progress.clone()),
                ..RolloutRecord::default()
            })
    }

    fn started_at(&self) -> Option<Time> {
        self.status()?.started_at.clone()
    }

    /// Its request's status.
    fn status(&self) -> Option<&InstanceGroupUpgradeRequestStatus> {
        self.request.as_ref()?.status.as_ref()
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

/// The rollout whose version new nodes should boot: under way, not on its way back, and its image still there.
pub fn running(draft: &Draft<'_>, standing: &Standing<'_>) -> Option<Rollout> {
    under_way(draft, standing)
        .filter(|rollout| rollout.record(draft).ending.is_none() && !image_gone(draft, standing, rollout))
}

/// The rollout that was claimed or that runs without a request, also on its way back.
pub fn under_way(draft: &Draft<'_>, standing: &Standing<'_>) -> Option<Rollout> {
    if let Some(request) = claimed(draft) {
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
    let record = draft
        .status
        .rollout
        .as_ref()
        .filter(|record| record.request.is_none())?;
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

/// Takes a rollout a step further, or a step back.
pub fn proceed(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout) {
    let record = rollout.record(draft);
    let ending = record.ending.clone();
    draft.status.rollout = Some(record);
    match ending {
        Some(ending) => retreat::plan(draft, standing, rollout, &ending),
        None if image_gone(draft, standing, rollout) => {
            let message = format!(
                "image {} cannot be launched any more; new nodes boot what was approved before",
                rollout.image_id
            );
            end(draft, RolloutResult::Failed, "ImageUnavailable", &message, None);
        }
        None => advance::advance(draft, standing, rollout),
    }
}

/// Decides that a rollout stops before its end. That is recorded before anything follows from it.
fn end(draft: &mut Draft<'_>, result: RolloutResult, reason: &str, message: &str, instance_id: Option<String>) {
    if let Some(record) = &mut draft.status.rollout {
        record.ending = Some(RolloutEnding {
            result,
            reason: reason.to_owned(),
            message: message.to_owned(),
            instance_id,
            cleared_at: None,
        });
    }
    retreat::headline(draft, message);
    draft.again();
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

/// Subnets that the group has to have again: of a rollout on its way back, or whose request vanished. Not those that are known
/// to be gone.
pub fn given_back(draft: &Draft<'_>) -> BTreeSet<String> {
    let Some(record) = &draft.status.rollout else {
        return BTreeSet::new();
    };
    if record.ending.is_none() && !vanished(draft, record) {
        return BTreeSet::new();
    }
    let removed = record.removed_subnets.iter();
    let there = removed.filter(|id| draft.observed.subnet(id) != Fact::NotFound);
    there.cloned().collect()
}

/// Whether somebody took a rollout's request away with its finalizer before its end: the history knows nothing of one.
fn vanished(draft: &Draft<'_>, record: &RolloutRecord) -> bool {
    let Some(name) = &record.request else {
        return false;
    };
    let exists = draft
        .observed
        .requests
        .iter()
        .any(|request| requests::name(request) == name);
    let ended = |entry: &HistoryEntry| entry.request.as_ref() == Some(name) && entry.when >= record.started_at;
    !exists && !draft.status.history.iter().any(ended)
}

/// Clears up after a rollout that is over: its notes on nodes, what it suspended, its record. Returns whether there was
/// something to do.
pub fn leftovers(draft: &mut Draft<'_>, standing: &Standing<'_>) -> bool {
    if !clear_nodes(draft, standing, None) || !resume(draft, standing) {
        return true;
    }
    let Some(record) = draft.status.rollout.take() else {
        return false;
    };
    let key = block_key(&record.fingerprint, &record.removed_subnets);
    if vanished(draft, &record)
        && !requests::is_blocked(draft, &key)
        && let Some(name) = record.request
    {
        // Somebody took the request away with its finalizer. That is a cancel, too (gate rule L11).
        requests::block_target(draft, &key, BlockReason::Cancelled, "unknown");
        draft.notice(
            true,
            "UpgradeCancelled",
            format!("{name} vanished during its rollout: stopped, and its target is blocked"),
        );
    }
    draft.again();
    true
}

/// Takes back the notes on nodes. Returns whether none is left.
fn clear_nodes(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: Option<(&Rollout, i64)>) -> bool {
    let members = members(draft, standing, rollout);
    let steps = tidy(&members);
    let clear = steps.is_empty();
    for step in steps {
        draft.act(advance::action(step, &standing.scaling_group.name));
    }
    if !clear {
        draft.again();
    }
    clear
}

/// Resumes what the rollout suspended. Returns whether nothing of it is left.
fn resume(draft: &mut Draft<'_>, standing: &Standing<'_>) -> bool {
    let Some(record) = &mut draft.status.rollout else {
        return true;
    };
    let group = standing.scaling_group;
    let shown: Vec<String> = record
        .suspended_processes
        .iter()
        .filter(|process| group.suspended_processes.contains(*process))
        .cloned()
        .collect();
    if shown.is_empty() {
        record.suspended_processes.clear();
        return true;
    }
    for process in shown {
        draft.act(Action::ResumeProcess {
            group: group.name.clone(),
            process,
        });
    }
    draft.look_in(1);
    false
}

/// The group's instances with what is known of each; on target is what a rollout's version launched in a zone that it leaves
/// to the group. While it is not known which those are, none is.
fn members<'a>(draft: &'a Draft<'_>, standing: &'a Standing<'_>, rollout: Option<(&Rollout, i64)>) -> Vec<Member<'a>> {
    let observed = draft.observed;
    let zones = rollout.map(|(rollout, _)| zones_left(draft, standing, rollout));
    let stays = |instance: &Instance| match &zones {
        None | Some(Ok(None)) => true,
        Some(Ok(Some(zones))) => zones.contains(&instance.zone),
        Some(Err(_)) => false,
    };
    let instances = standing.scaling_group.instances.iter();
    instances
        .map(|instance| {
            let node = observed.nodes.get(&instance.id);
            let launched = rollout.is_some_and(|(_, version)| launched(standing, instance, version));
            Member {
                instance,
                on_target: launched && stays(instance),
                node,
                pods: observed.pods.get(&instance.id),
                hosts_operator: node.is_some_and(|node| Some(&node.name) == observed.own_node.as_ref()),
            }
        })
        .collect()
}

/// Whether an instance was launched from a version of the group's template.
fn launched(standing: &Standing<'_>, instance: &Instance, version: i64) -> bool {
    let template = standing.template.found().map(|template| &template.id);
    template.is_some() && instance.template_id.as_ref() == template && instance.template_version == Some(version)
}

/// The zones that a rollout leaves to the group, where it removes subnets. Subnets that went from the manifest since stay
/// until they are asked for: their zones count, too.
fn zones_left(
    draft: &Draft<'_>,
    standing: &Standing<'_>,
    rollout: &Rollout,
) -> Result<Option<BTreeSet<String>>, Problem> {
    if rollout.removed_subnets.is_empty() {
        return Ok(None);
    }
    let ground = standing.ground.as_ref().map_err(Clone::clone)?;
    let mut zones: BTreeSet<String> = ground.subnets.iter().map(|subnet| subnet.zone.clone()).collect();
    let wanted = |id: &String| ground.subnets.iter().any(|subnet| subnet.id == *id);
    let others = standing.scaling_group.subnets.difference(&rollout.removed_subnets);
    for id in others.filter(|id| !wanted(id)) {
        match draft.observed.subnet(id) {
            Fact::Found(subnet) => drop(zones.insert(subnet.zone)),
            Fact::NotFound => {}
            Fact::Unknown(failure) => return Err(Problem::Unknown(failure)),
        }
    }
    Ok(Some(zones))
}
