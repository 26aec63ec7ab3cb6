//! The group's memory: what is approved, and what its status shows of it.
//!
//! Owns the reading and rebuilding of the approved record and the figures in status. Must not decide on a
//! rollout.

use crate::api::instance_group::{
    CurrentState, FingerprintStatus, HistoryEntry, HistoryResult, ImageStatus, LaunchTemplateStatus,
};
use crate::api::{ConditionType, InstanceGroupStatus, Reason};
use crate::plan::facts::{AutoScalingGroup, Fact};
use crate::plan::naming::VersionMark;
use crate::plan::problem::Problem;
use crate::plan::step::Action;
use crate::plan::target::Approved;

use super::draft::Draft;
use super::{Standing, hands_off, requests};

/// The approved record, with its version number. Where the status lost it, it is rebuilt from AWS; `None` ends
/// the pass, with the reason said.
pub fn approved(draft: &mut Draft<'_>) -> Option<Approved> {
    let observed = draft.observed;
    let recorded = Approved::from_status(observed);
    if let Some(approved) = recorded.as_ref().filter(|approved| approved.version.is_some()) {
        return Some(approved.clone());
    }
    if let Fact::Unknown(failure) = &observed.template {
        draft.obstacle(&Problem::Unknown(failure.clone()));
        return None;
    }
    let Some(found) = Approved::from_aws(observed) else {
        hands_off(
            draft,
            "the Auto Scaling group boots from something that this operator did not make; taking over a running group is \
             not built yet, so it is left alone",
        );
        return None;
    };
    if recorded.is_some_and(|recorded| recorded.mark.fingerprint == found.mark.fingerprint) {
        // The creation went through; the status just had no version number yet.
        remember(draft, &found);
    } else {
        remember(draft, &found);
        let version = found.version.unwrap_or_default();
        draft.notice(
            false,
            "RecordRebuilt",
            format!("status held no approved version; AWS holds version {version}, which is ours"),
        );
    }
    draft.again();
    None
}

/// Writes an approved record into the status.
pub fn remember(draft: &mut Draft<'_>, approved: &Approved) {
    let time = draft.time();
    let template = draft.observed.template.found();
    let status = &mut draft.status;
    let fingerprint = status.fingerprint.get_or_insert_with(FingerprintStatus::default);
    fingerprint.approved = Some(approved.mark.fingerprint.clone());
    fingerprint.render_version = Some(approved.mark.render_version.clone());
    let image = status.image.get_or_insert_with(ImageStatus::default);
    if image.current != approved.image_id {
        image.previous = image.current.take();
        image.current.clone_from(&approved.image_id);
        image.current_since = Some(time);
    }
    image.kubernetes_version.clone_from(&approved.mark.kubernetes_version);
    let record = status.launch_template.get_or_insert_with(LaunchTemplateStatus::default);
    if let Some(version) = approved.version {
        let version = version.to_string();
        if record.approved_version.as_ref() != Some(&version) {
            record.previous_version = record.approved_version.take();
            record.approved_version = Some(version);
        }
    }
    if let Some(template) = template {
        record.id = Some(template.id.clone());
        record.name = Some(template.name.clone());
    }
}

/// The first approval of a group: its creation (gate rule L0). Written before the first AWS write.
pub fn record_creation(draft: &mut Draft<'_>, mark: &VersionMark, image_id: &str) {
    let approved = Approved {
        mark: mark.clone(),
        version: None,
        image_id: Some(image_id.to_owned()),
    };
    remember(draft, &approved);
    let entry = HistoryEntry {
        from: None,
        to: Some(mark.fingerprint.clone()),
        from_image: None,
        to_image: Some(image_id.to_owned()),
        by: Some("creation".to_owned()),
        when: Some(draft.time()),
        result: HistoryResult::Created,
        request: None,
        message: None,
    };
    draft.record(entry);
}

/// Shows sizes, names, nodes and what is wanted; nothing here depends on a decision.
pub fn show(draft: &mut Draft<'_>, standing: &Standing<'_>) {
    let group = standing.scaling_group;
    let counts = count(draft, standing);
    let status = &mut draft.status;
    status.current_min = Some(i64::from(group.min_size));
    status.current_max = Some(i64::from(group.max_size));
    status.active_scaling_group_name = Some(group.name.clone());
    show_names(status, standing);
    let image = status.image.get_or_insert_with(ImageStatus::default);
    image.nodes_on_current = Some(counts.on_current);
    image.nodes_on_other = Some(counts.on_other);
    image.pending = None;
    if let Ok(target) = &standing.target {
        let fingerprint = status.fingerprint.get_or_insert_with(FingerprintStatus::default);
        fingerprint.desired = Some(target.mark.fingerprint.clone());
        if image.current.as_ref() != Some(&target.image.id) {
            image.pending = Some(target.image.id.clone());
        }
    }
    let all_ready = counts.ready == i64::from(group.desired_capacity) && counts.instances == counts.ready;
    let message = format!("{} of {} nodes are Ready", counts.ready, group.desired_capacity);
    draft.condition(
        ConditionType::NodesReady,
        all_ready,
        if all_ready {
            Reason::NodesReady
        } else {
            Reason::NodesNotReady
        },
        &message,
    );
    let was_ready = draft.observed.group.status.as_ref().and_then(|status| {
        status
            .conditions
            .iter()
            .find(|condition| condition.type_ == ConditionType::NodesReady.as_ref())
            .map(|condition| condition.status == "True")
    });
    // During a rollout nodes come and go by design; its progress tells the story.
    let rolling = requests::rolling(&draft.observed.requests) || draft.status.rollout.is_some();
    match (was_ready, all_ready) {
        _ if rolling => {}
        (Some(true), false) => draft.notice(true, "InstanceGroupNodesNotReady", message),
        (Some(false) | None, true) => draft.notice(false, "InstanceGroupNodesReady", message),
        _ => {}
    }
    // What the record leaves out although AWS knows it.
    if let Ok(ground) = &standing.ground {
        draft
            .status
            .nodes_instance_role_arn
            .clone_from(&ground.profile.role_arn);
    }
}

fn show_names(status: &mut InstanceGroupStatus, standing: &Standing<'_>) {
    if let Some(template) = standing.template.found() {
        status.active_launch_template_name = Some(template.name.clone());
        let record = status.launch_template.get_or_insert_with(LaunchTemplateStatus::default);
        record.id = Some(template.id.clone());
        record.name = Some(template.name.clone());
    }
    // The peer's field: the newest version. Only a complete list can tell.
    if let Some(newest) = standing
        .template
        .found()
        .filter(|template| template.complete)
        .and_then(|template| template.versions.keys().max())
    {
        status.latest_template_version = Some(newest.to_string());
    }
}

/// How many instances of a group are what.
pub struct Counts {
    /// Instances that are not on their way out.
    pub instances: i64,
    /// Instances in service whose node is Ready.
    pub ready: i64,
    /// Instances on the approved version.
    pub on_current: i64,
    /// The others.
    pub on_other: i64,
}

fn count(draft: &Draft<'_>, standing: &Standing<'_>) -> Counts {
    let mut counts = Counts {
        instances: 0,
        ready: 0,
        on_current: 0,
        on_other: 0,
    };
    let template = standing.template.found().map(|template| template.id.as_str());
    for instance in standing
        .scaling_group
        .instances
        .iter()
        .filter(|instance| !instance.terminating())
    {
        counts.instances += 1;
        counts.ready += i64::from(instance.in_service() && is_ready(draft, &instance.id));
        // After a template was rebuilt, older instances carry the lost one's id; their node's label tells.
        let same_version =
            instance.template_id.as_deref() == template && instance.template_version == standing.approved.version;
        let node = draft.observed.nodes.get(&instance.id);
        let same_image =
            node.is_some_and(|node| node.image_label.is_some() && node.image_label == standing.approved.image_id);
        if same_version || (instance.template_id.as_deref() != template && same_image) {
            counts.on_current += 1;
        } else {
            counts.on_other += 1;
        }
    }
    counts
}

/// Whether an instance has a node that is Ready.
pub fn is_ready(draft: &Draft<'_>, instance_id: &str) -> bool {
    draft.observed.nodes.get(instance_id).is_some_and(|node| node.ready)
}

/// Whether all wanted nodes are there and Ready.
pub fn all_ready(draft: &Draft<'_>, group: &AutoScalingGroup) -> bool {
    let ready = group
        .instances
        .iter()
        .filter(|instance| instance.in_service() && is_ready(draft, &instance.id))
        .count();
    let present = group
        .instances
        .iter()
        .filter(|instance| !instance.terminating())
        .count();
    i32::try_from(ready) == Ok(group.desired_capacity) && ready == present
}

/// The headline of a group with nothing to roll out.
pub fn rest(draft: &mut Draft<'_>, standing: &Standing<'_>) {
    if all_ready(draft, standing.scaling_group) {
        let others = draft.status.image.as_ref().and_then(|image| image.nodes_on_other);
        let version = standing.approved.version.unwrap_or_default();
        let total = standing.scaling_group.desired_capacity;
        let message = match others.unwrap_or_default() {
            0 => format!("{total} nodes run what is approved (version {version})"),
            others => format!(
                "{others} of {total} nodes run something else than what is approved (version {version}): they stay from a \
                 rollout that was stopped; new nodes boot what is approved"
            ),
        };
        draft.headline(CurrentState::Ready, Reason::AsWanted, &message);
    } else {
        missing_nodes(draft, standing.scaling_group);
    }
}

/// The headline while nodes are missing: with the scaling activity's own words, if one failed.
pub fn missing_nodes(draft: &mut Draft<'_>, group: &AutoScalingGroup) {
    let ready = group
        .instances
        .iter()
        .filter(|instance| instance.in_service() && is_ready(draft, &instance.id))
        .count();
    let mut message = format!("waits until {} nodes are Ready; {ready} are", group.desired_capacity);
    if let Some(activity) = &draft.observed.failed_activity {
        message = format!("{message}; Auto Scaling says: {}", activity.message);
    }
    draft.headline(CurrentState::ReconcileModifying, Reason::NodesNotReady, &message);
    draft.wait(Reason::NodesNotReady, &message);
    draft.look_in(30);
}

/// Deletes template versions that nothing needs: not approved, not previous, not pinned, not run by an instance, and
/// beyond the number to keep.
pub fn prune(draft: &mut Draft<'_>, standing: &Standing<'_>, keep: usize) {
    let Some(template) = standing.template.found().filter(|template| template.complete) else {
        return;
    };
    let record = draft.status.launch_template.clone().unwrap_or_default();
    let named = |text: &Option<String>| text.as_deref().and_then(|version| version.parse::<i64>().ok());
    let mut needed = vec![template.default_version];
    needed.extend(standing.approved.version);
    needed.extend(named(&record.approved_version));
    needed.extend(named(&record.previous_version));
    needed.extend(
        standing
            .scaling_group
            .instances
            .iter()
            .filter_map(|instance| instance.template_version),
    );
    if let crate::plan::facts::LaunchSource::Template {
        version: crate::plan::facts::VersionSelector::Number(pin),
        ..
    } = &standing.scaling_group.launch_source
    {
        needed.push(*pin);
    }
    let surplus = template.versions.len().saturating_sub(keep);
    let numbers: Vec<i64> = template
        .versions
        .keys()
        .copied()
        .filter(|number| !needed.contains(number))
        .take(surplus)
        .collect();
    if !numbers.is_empty() {
        draft.act(Action::DeleteVersions {
            template_id: template.id.clone(),
            numbers,
        });
    }
}
