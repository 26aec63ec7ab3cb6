//! The template version of a rollout's target.
//!
//! Owns the first AWS write after the claim. Must not move the pin; upkeep does once the version exists.

use crate::api::Reason;
use crate::api::instance_group::CurrentState;
use crate::plan::facts::LaunchTemplate;
use crate::plan::group::draft::Draft;
use crate::plan::group::{Standing, requests};
use crate::plan::launch::render;
use crate::plan::naming::VersionMark;
use crate::plan::step::Action;

use super::Rollout;

/// Makes the target's version: the first AWS write after the claim.
pub fn make(draft: &mut Draft<'_>, standing: &Standing<'_>, rollout: &Rollout, template: &LaunchTemplate) {
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
