//! Creation: a group that has no Auto Scaling group.
//!
//! Owns the first approval (gate rule L0), and making the group again on what is approved after somebody deleted it
//! (case D23). Must not make anything before its record is in the status.

use crate::api::instance_group::CurrentState;
use crate::api::{ConditionType, Reason};
use crate::plan::facts::{Fact, LaunchTemplate};
use crate::plan::launch::{Ground, LaunchInputs};
use crate::plan::naming::VersionMark;
use crate::plan::problem::Problem;
use crate::plan::step::Action;
use crate::plan::target::{Approved, Target, render_again, target};
use crate::plan::wanted::Wanted;

use super::draft::Draft;
use super::{records, upkeep};

/// Plans the next step towards an Auto Scaling group.
pub fn plan(draft: &mut Draft<'_>, wanted: &Wanted, ground: Result<Ground, Problem>) {
    let ground = match ground {
        Ok(ground) => ground,
        Err(problem) => return draft.obstacle(&problem),
    };
    let approved = Approved::from_status(draft.observed);
    let Some(approved) = approved else {
        return first_approval(draft, wanted, &ground);
    };
    let template = match &draft.observed.template {
        Fact::Found(template) if template.complete => Some(template),
        Fact::Found(_) => return waits_for_versions(draft),
        Fact::NotFound => None,
        Fact::Unknown(failure) => return draft.obstacle(&Problem::Unknown(failure.clone())),
    };
    let version = template.and_then(|template| {
        Some((
            template,
            upkeep::with_fingerprint(template, &approved.mark.fingerprint)?,
        ))
    });
    if let Some((template, version)) = version {
        return create_group(draft, wanted, &ground, template, version);
    }
    let image_id = approved.image_id.as_deref().unwrap_or_default();
    if let Some(inputs) = render_again(wanted, &ground, image_id, &approved.mark) {
        return create_version(draft, wanted, template, approved.mark, inputs);
    }
    if approved.version.is_none() && template.is_none() {
        // The manifest was edited before anything was made: the creation is simply of something else.
        return first_approval(draft, wanted, &ground);
    }
    let message = "the Auto Scaling group and the approved launch template version were deleted and the manifest has moved on; \
                   put it back to what is approved, or delete the group and create it anew";
    draft.condition(
        ConditionType::ApprovedTemplateLost,
        true,
        Reason::ApprovedTemplateLost,
        message,
    );
    draft.headline(CurrentState::Failed, Reason::ApprovedTemplateLost, message);
    draft.wait(Reason::ApprovedTemplateLost, message);
}

/// Records the creation as the first approval; a pass of its own, before the first AWS write.
fn first_approval(draft: &mut Draft<'_>, wanted: &Wanted, ground: &Ground) {
    let Target { mark, image, .. } = match target(draft.observed, wanted, ground, None) {
        Ok(target) => target,
        Err(problem) => return draft.obstacle(&problem),
    };
    draft.status.fingerprint = None;
    records::record_creation(draft, &mark, &image.id);
    draft.headline(
        CurrentState::InitCreate,
        Reason::Creating,
        &format!("creates the group with image {}", image.id),
    );
    draft.again();
}

/// Makes the version that the group will be pinned to.
fn create_version(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    template: Option<&LaunchTemplate>,
    mark: VersionMark,
    inputs: LaunchInputs,
) {
    draft.headline(
        CurrentState::ReconcileModifying,
        Reason::Creating,
        "makes the launch template",
    );
    // A template that was recorded and is gone was deleted by somebody: EC2 would answer a used token with it.
    let gone = draft
        .status
        .launch_template
        .as_ref()
        .and_then(|record| record.id.clone());
    let token = match template {
        Some(template) => wanted.identity.version_token(template, &mark.fingerprint),
        None => wanted
            .identity
            .client_token(&format!("create-after-{}", gone.unwrap_or_default()), &mark.fingerprint),
    };
    draft.act(match template {
        Some(template) => Action::CreateVersion {
            template_id: template.id.clone(),
            mark,
            inputs: Box::new(inputs),
            token,
        },
        None => Action::CreateTemplate {
            name: wanted.identity.launch_template(),
            mark,
            inputs: Box::new(inputs),
            token,
            tags: wanted.identity.template_tags(),
        },
    });
    draft.again();
}

/// Makes the Auto Scaling group, pinned to a number.
fn create_group(draft: &mut Draft<'_>, wanted: &Wanted, ground: &Ground, template: &LaunchTemplate, version: i64) {
    let name = wanted.identity.scaling_group();
    draft.status.active_scaling_group_name = Some(name.clone());
    draft.status.active_launch_template_name = Some(template.name.clone());
    draft.status.tag_keys = wanted.configuration.tags.iter().map(|tag| tag.key.clone()).collect();
    draft.headline(
        CurrentState::ReconcileModifying,
        Reason::Creating,
        &format!("makes Auto Scaling group {name} on version {version}"),
    );
    draft.notice(
        false,
        "InstanceGroupCreated",
        format!("creates Auto Scaling group {name} on launch template version {version}"),
    );
    draft.act(Action::CreateGroup {
        name,
        template_id: template.id.clone(),
        version,
        min_size: wanted.min_size,
        max_size: wanted.max_size,
        subnets: ground.subnets.iter().map(|subnet| subnet.id.clone()).collect(),
        tags: upkeep::group_tags(wanted),
    });
    draft.again();
}

/// The snapshot lists only default versions; the next look asks for all.
pub fn waits_for_versions(draft: &mut Draft<'_>) {
    draft.wait(Reason::WaitsForAws, "reads the launch template's versions");
    draft.look_in(5);
}
