//! A request that waits for its date.
//!
//! Owns what a newer image means for it (gate rule L6), what its group says about the wait, and when that is too long. Must
//! not approve; the auto-approver does.

use jiff::{SignedDuration, Timestamp};

use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, UpgradeReason};
use crate::api::{ConditionType, Reason};
use crate::plan::approval::{self, Answer, Evidence, MANUAL, Question};
use crate::plan::facts::{Fact, Image};
use crate::plan::launch::render;
use crate::plan::observed::Observed;
use crate::plan::settings::{ImageRule, OnNewer};
use crate::plan::target::Target;

use super::draft::Draft;
use super::{Standing, requests};

/// Whether a waiting image request stays although the group should run another image by now: its schedule lets each image
/// keep its own date, so that weekly releases do not starve a rule of one week. Anything but a newer image ends it.
pub fn keeps_its_date(
    observed: &Observed,
    standing: &Standing<'_>,
    request: &InstanceGroupUpgradeRequest,
    target: &Target,
) -> bool {
    let rule = standing.schedule.and_then(|schedule| schedule.image.as_ref());
    let keeps = rule.is_some_and(|rule| rule.on_newer == OnNewer::Keep);
    let asked = &request.spec.target;
    let image_id = asked.image_id.as_deref().unwrap_or_default();
    let same_place = target.removed_subnets.iter().eq(asked.removed_subnets.iter())
        && target.mark.kubernetes_version == asked.kubernetes_version
        && target.parameter.as_ref().map(|parameter| &parameter.name) == asked.ssm.as_ref().map(|ssm| &ssm.parameter);
    keeps
        && request.spec.reason == UpgradeReason::ImageDrift
        && same_place
        && is_offered(observed, image_id)
            .zip(target.image.created_at)
            .is_some_and(|(older, newer)| older < newer)
        && renders(standing, request, image_id)
}

/// When an image was made, if it can still be had: it is there, can be launched and is not deprecated.
fn is_offered(observed: &Observed, image_id: &str) -> Option<Timestamp> {
    let Fact::Found(image) = observed.image(image_id) else {
        return None;
    };
    let deprecated = |image: &Image| image.deprecated_at.is_some_and(|since| since <= observed.now);
    image.created_at.filter(|_| image.can_launch() && !deprecated(&image))
}

/// Whether the group as it is now, with the request's image, is what was asked for.
fn renders(standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest, image_id: &str) -> bool {
    let version = request.spec.target.render_version.as_deref().unwrap_or_default();
    let ground = standing.ground.as_ref().ok();
    ground
        .and_then(|ground| render(standing.wanted, ground, image_id, version).ok())
        .is_some_and(|inputs| inputs.fingerprint() == request.spec.target.fingerprint)
}

/// What comes of a request if nobody decides.
pub struct Outlook {
    /// In words.
    pub message: String,
    /// When the auto-approver will approve, if it said so.
    pub until: Option<Timestamp>,
}

/// What comes of a request if nobody decides. The date is the auto-approver's own word: where it does not run, there is none.
pub fn outlook(observed: &Observed, request: &InstanceGroupUpgradeRequest) -> Outlook {
    let status = request.status.as_ref();
    let policy = status.and_then(|status| status.policy.as_deref()).unwrap_or(MANUAL);
    let announced = status
        .and_then(|status| status.auto_approve_at.as_ref())
        .map(|time| time.0);
    let verdict = approval::verdict(&Question {
        now: observed.now,
        request,
        group: &observed.group,
        labels: observed.labels(),
        settings: &observed.settings,
        evidence: Evidence::default(),
    });
    match (announced, verdict.map(|verdict| verdict.answer)) {
        (_, Some(Answer::Manual(_, why))) => Outlook {
            message: format!("waits for a person to decide: {why}"),
            until: None,
        },
        (Some(at), _) => Outlook {
            message: format!("schedule {policy} approves it at {at}"),
            until: Some(at),
        },
        (None, Some(Answer::Waits(_, why))) => Outlook {
            message: why,
            until: None,
        },
        (None, _) => Outlook {
            message: "waits for a decision".to_owned(),
            until: None,
        },
    }
}

/// Shows a request that has waited more than twice as long as its schedule says.
pub fn overdue(draft: &mut Draft<'_>, standing: &Standing<'_>, request: &InstanceGroupUpgradeRequest) {
    let after = standing.schedule.and_then(|schedule| schedule.image.as_ref());
    let Some(limit) = after.and_then(limit) else { return };
    let Some(opened) = request.metadata.creation_timestamp.as_ref() else {
        return;
    };
    let late = opened.0.saturating_add(limit).unwrap_or(Timestamp::MAX);
    if late > draft.now() {
        return draft.look_at(late);
    }
    let message = format!(
        "{} has waited since {}, more than twice as long as its schedule says; see what it waits for",
        requests::name(request),
        opened.0
    );
    draft.condition(ConditionType::UpgradeOverdue, true, Reason::Overdue, &message);
}

/// Twice what an image waits; `None` where it does not wait.
fn limit(rule: &ImageRule) -> Option<SignedDuration> {
    rule.after.checked_mul(2).filter(|limit| !limit.is_zero())
}
