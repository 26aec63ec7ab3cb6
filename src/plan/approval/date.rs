//! From when a rule allows a request.
//!
//! Owns ages, delays, settling and soaking. Must not weigh rules against each other.

use jiff::{SignedDuration, Timestamp};

use super::{Kind, Question, Soaking, rule, tightened};
use crate::api::Reason;
use crate::plan::settings::{Basis, ImageRule, Rule, Schedule, Soak};

/// How long a request is open at least where a rule waits at all.
const SETTLE: SignedDuration = SignedDuration::from_mins(10);

/// What a rule says about the time.
pub enum Due {
    /// By hand only.
    Manual,
    /// From then on.
    At(Timestamp),
    /// Not before something has happened whose time is not known.
    Waits(Reason, String),
}

/// From when the schedule's rule for a kind of change allows the request.
pub fn due(question: &Question<'_>, schedule: &Schedule, kind: Kind) -> Due {
    let Some(opened) = question.request.metadata.creation_timestamp.as_ref().map(|time| time.0) else {
        return Due::Manual;
    };
    if kind == Kind::Image {
        return match &schedule.image {
            Some(image) => of_image(question, image, opened),
            None => Due::Manual,
        };
    }
    match rule(schedule, kind) {
        Rule::Manual => Due::Manual,
        Rule::After(after) => {
            let after = tightened(question.group, after);
            let settle = if after.is_zero() { SignedDuration::ZERO } else { SETTLE };
            Due::At(later(opened, after.max(settle)))
        }
    }
}

fn of_image(question: &Question<'_>, image: &ImageRule, opened: Timestamp) -> Due {
    let after = tightened(question.group, image.after);
    let basis = basis(question, image.basis, opened);
    // A time in the future is a wrong clock somewhere: the image is new, not unborn.
    let aged = if after.is_zero() {
        basis.min(question.now)
    } else {
        later(basis, after)
    };
    let time = aged.max(later(opened, image.settle));
    let Some(soak) = &image.soak else {
        return Due::At(time);
    };
    match soaked(soak, question.evidence.soak) {
        Some(soaked) => Due::At(time.max(soaked)),
        None => Due::Waits(
            Reason::WaitsForSoak,
            format!(
                "waits until a group of schedule {} has been fully on the image and Ready for {:#}",
                soak.schedule, soak.lasts
            ),
        ),
    }
}

/// When the proof is complete, if the span that is known can be one.
fn soaked(soak: &Soak, span: Option<Soaking>) -> Option<Timestamp> {
    let span = span?;
    let complete = later(span.since, soak.lasts);
    span.until.is_none_or(|until| complete <= until).then_some(complete)
}

/// What the image's age counts from. What was never learned counts from its first sight, and that from the opening.
fn basis(question: &Question<'_>, basis: Basis, opened: Timestamp) -> Timestamp {
    let target = &question.request.spec.target;
    let evidence = &question.evidence;
    let first_seen = evidence.first_seen.unwrap_or(opened);
    match basis {
        Basis::FirstSeen => first_seen,
        Basis::ImageCreated => target.image_created_at.as_ref().map_or(first_seen, |time| time.0),
        Basis::SsmLastModified => {
            let said = target
                .ssm
                .as_ref()
                .and_then(|ssm| ssm.last_modified.as_ref())
                .map(|time| time.0);
            evidence.last_modified.or(said).unwrap_or(first_seen)
        }
    }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}
