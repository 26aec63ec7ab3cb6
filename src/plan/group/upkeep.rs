//! Upkeep: what is put right at once, locked or not.
//!
//! Owns sizes, added subnets, tags, the pin and the default version, and the rebuilding of a lost template. Must
//! never change what a new node boots: the pin only ever moves to what is approved or claimed.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::instance_group::CurrentState;
use crate::api::{ConditionType, Reason};
use crate::plan::facts::{Fact, GroupTag, LaunchSource, LaunchTemplate, VersionSelector};
use crate::plan::naming::VersionMark;
use crate::plan::problem::Problem;
use crate::plan::step::{Action, GroupChange};
use crate::plan::target::render_again;

use super::draft::Draft;
use super::rollout::{self, Rollout};
use super::{Standing, records, shrink};

/// Puts right what differs. Returns whether the pass may go on to the gate: not while something was just changed, so that
/// the gate decides on what AWS says afterwards.
pub fn plan(draft: &mut Draft<'_>, standing: &Standing<'_>) -> bool {
    let template = match standing.template {
        Fact::Found(template) => template,
        Fact::NotFound => {
            rebuild(draft, standing, None);
            return false;
        }
        Fact::Unknown(failure) => {
            draft.obstacle(&Problem::Unknown(failure.clone()));
            return false;
        }
    };
    let Some(approved) = standing
        .approved
        .version
        .filter(|version| holds(template, *version, &standing.approved.mark))
    else {
        rebuild(draft, standing, Some(template));
        return false;
    };
    let rollout = rollout::running(draft, standing);
    let pin = rollout
        .as_ref()
        .and_then(|rollout| rollout.version(template))
        .unwrap_or(approved);
    let change = change(draft, standing, template, pin, rollout.as_ref());
    let group = standing.scaling_group;
    if !change.is_empty() {
        if let (Some((_, to)), LaunchSource::Template { version: from, .. }) = (&change.pin, &group.launch_source) {
            draft.notice(
                false,
                "PinMoved",
                format!("new nodes boot launch template version {to}; before: {from}"),
            );
        }
        draft.act(Action::UpdateGroup {
            name: group.name.clone(),
            change,
        });
    }
    tags(draft, standing);
    // Outside a rollout the default version is the approved one: EC2 refuses to delete a default.
    if template.default_version != approved && rollout.is_none() {
        draft.act(Action::SetDefaultVersion {
            template_id: template.id.clone(),
            number: approved,
        });
    }
    // Not in the middle of a rollout, whose nodes come and go by themselves.
    let max_size = standing.wanted.max_size;
    if !draft.acts() && group.desired_capacity > max_size && rollout::under_way(draft, standing).is_none() {
        shrink::surplus(draft, group, max_size);
        return false;
    }
    if draft.acts() {
        draft.headline(
            CurrentState::ReconcileModifying,
            Reason::Updating,
            "puts the Auto Scaling group right",
        );
        draft.again();
        return false;
    }
    true
}

/// Whether a version is there with the content that was approved. Versions cannot be edited, only deleted; what the
/// shared inventory did not list is not judged.
fn holds(template: &LaunchTemplate, version: i64, mark: &VersionMark) -> bool {
    match template.versions.get(&version) {
        Some(found) => {
            VersionMark::parse(&found.description).is_some_and(|found| found.fingerprint == mark.fingerprint)
        }
        None => !template.complete,
    }
}

/// What differs on the Auto Scaling group.
fn change(
    draft: &Draft<'_>,
    standing: &Standing<'_>,
    template: &LaunchTemplate,
    pin: i64,
    rollout: Option<&Rollout>,
) -> GroupChange {
    let group = standing.scaling_group;
    let wanted = standing.wanted;
    let max_size = shrink::upper_bound(group, wanted.max_size, rollout::under_way(draft, standing).is_some());
    let sizes = (wanted.min_size, max_size);
    let pinned = matches!(
        &group.launch_source,
        LaunchSource::Template { id, version: VersionSelector::Number(number), .. } if *id == template.id && *number == pin
    );
    GroupChange {
        sizes: (sizes != (group.min_size, group.max_size)).then_some(sizes),
        subnets: subnets(draft, standing, rollout).filter(|subnets| *subnets != group.subnets),
        pin: (!pinned).then(|| (template.id.clone(), pin)),
    }
}

/// The subnets to have now: added ones at once, removed ones only in a rollout that was allowed to remove them, and only
/// once Auto Scaling is known not to move instances by itself: it would empty the zone without a drain. A rollout that is
/// over before its end gives back what it removed, before its nodes there could be taken.
fn subnets(draft: &Draft<'_>, standing: &Standing<'_>, rollout: Option<&Rollout>) -> Option<BTreeSet<String>> {
    let back = rollout::given_back(draft);
    if !back.is_empty() {
        return Some(back.union(&standing.scaling_group.subnets).cloned().collect());
    }
    let ground = standing.ground.as_ref().ok()?;
    let mut subnets: BTreeSet<String> = ground.subnets.iter().map(|subnet| subnet.id.clone()).collect();
    let removed = rollout
        .filter(|_| rollout::holds_still(standing.scaling_group))
        .map(|rollout| &rollout.removed_subnets);
    let kept = standing
        .scaling_group
        .subnets
        .iter()
        .filter(|subnet| removed.is_none_or(|removed| !removed.contains(*subnet)));
    subnets.extend(kept.cloned());
    Some(subnets)
}

/// Sets missing and wrong tags, and takes away those that we set and the manifest no longer has. Other tools' tags stay.
fn tags(draft: &mut Draft<'_>, standing: &Standing<'_>) {
    let wanted = group_tags(standing.wanted);
    let group = standing.scaling_group;
    let wrong: BTreeMap<String, GroupTag> = wanted
        .iter()
        .filter(|(key, tag)| group.tags.get(*key) != Some(*tag))
        .map(|(key, tag)| (key.clone(), tag.clone()))
        .collect();
    let surplus: BTreeSet<String> = draft
        .status
        .tag_keys
        .iter()
        .filter(|key| !wanted.contains_key(*key) && group.tags.contains_key(*key))
        .cloned()
        .collect();
    if !wrong.is_empty() {
        draft.act(Action::PutTags {
            name: group.name.clone(),
            tags: wrong,
        });
    }
    if !surplus.is_empty() {
        draft.act(Action::DeleteTags {
            name: group.name.clone(),
            keys: surplus.clone(),
        });
    }
    // The keys that are ours: the manifest's, and those still to be taken away.
    let mut keys: BTreeSet<String> = standing
        .wanted
        .configuration
        .tags
        .iter()
        .map(|tag| tag.key.clone())
        .collect();
    keys.extend(surplus);
    draft.status.tag_keys = keys.into_iter().collect();
}

/// All tags that the Auto Scaling group should have from us. The manifest cannot take over an ownership tag.
pub fn group_tags(wanted: &crate::plan::wanted::Wanted) -> BTreeMap<String, GroupTag> {
    let mut tags: BTreeMap<String, GroupTag> = wanted
        .configuration
        .tags
        .iter()
        .map(|tag| {
            (
                tag.key.clone(),
                GroupTag {
                    value: tag.value.clone(),
                    propagate: true,
                },
            )
        })
        .collect();
    tags.extend(wanted.identity.scaling_group_tags());
    tags
}

/// Makes the approved version again after its template, or the version, was deleted by hand (case D24). Only if what was
/// approved can still be rendered; nodes are not rotated, since they run the same inputs.
fn rebuild(draft: &mut Draft<'_>, standing: &Standing<'_>, template: Option<&LaunchTemplate>) {
    let ground = match &standing.ground {
        Ok(ground) => ground,
        Err(problem) => return draft.obstacle(problem),
    };
    // Another version may hold the same content; that serves as well.
    if let Some(found) = template.and_then(|template| with_fingerprint(template, &standing.approved.mark.fingerprint)) {
        let approved = crate::plan::target::Approved {
            version: Some(found),
            ..standing.approved.clone()
        };
        records::remember(draft, &approved);
        draft.again();
        return;
    }
    let image_id = standing.approved.image_id.as_deref().unwrap_or_default();
    let Some(inputs) = render_again(standing.wanted, ground, image_id, &standing.approved.mark) else {
        let message = "the approved launch template version was deleted and the manifest has moved on, so it cannot be made \
                       again; new nodes may not start; put the manifest back to what is approved";
        draft.condition(
            ConditionType::ApprovedTemplateLost,
            true,
            Reason::ApprovedTemplateLost,
            message,
        );
        draft.headline(CurrentState::Failed, Reason::ApprovedTemplateLost, message);
        return draft.wait(Reason::ApprovedTemplateLost, message);
    };
    let mark = standing.approved.mark.clone();
    draft.notice(
        true,
        "TemplateRebuilt",
        "the approved launch template version was deleted by somebody; it is made again".to_owned(),
    );
    draft.act(match template {
        Some(template) => Action::CreateVersion {
            template_id: template.id.clone(),
            token: standing.wanted.identity.version_token(template, &mark.fingerprint),
            mark,
            inputs: Box::new(inputs),
        },
        None => Action::CreateTemplate {
            name: standing.wanted.identity.launch_template(),
            token: standing
                .wanted
                .identity
                .client_token(&lost(standing), &mark.fingerprint),
            mark,
            inputs: Box::new(inputs),
            tags: standing.wanted.identity.template_tags(),
        },
    });
    draft.headline(
        CurrentState::ReconcileModifying,
        Reason::TemplateRebuilt,
        "makes the approved launch template version again",
    );
    draft.again();
}

/// Names the loss in the token: EC2 would answer a used token with the template that is gone.
fn lost(standing: &Standing<'_>) -> String {
    match &standing.scaling_group.launch_source {
        LaunchSource::Template { id, .. } => format!("template-after-{id}"),
        LaunchSource::Other => "template".to_owned(),
    }
}

/// The newest version with this fingerprint.
pub fn with_fingerprint(template: &LaunchTemplate, fingerprint: &str) -> Option<i64> {
    let matches =
        |description: &str| VersionMark::parse(description).is_some_and(|mark| mark.fingerprint == fingerprint);
    template
        .versions
        .values()
        .rev()
        .find(|version| matches(&version.description))
        .map(|version| version.number)
}
