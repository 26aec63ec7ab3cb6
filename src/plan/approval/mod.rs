//! Whether and when a request is approved automatically.
//!
//! Owns the reading of a schedule for one request: which of its rules apply, from when they allow it, and why not yet. Must
//! not write an approval; the auto-approver does. Where anything is unclear, a person decides.

mod date;
mod kind;
mod soak;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

use crate::api::instance_group::InstanceGroup;
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};
use crate::api::{Reason, annotation, duration};
use crate::plan::settings::{GroupLabels, InForce, Rule, Schedule};

pub use kind::{Kind, kinds};
pub use soak::proves;

/// What `status.policy` says where no schedule is for the group.
pub const MANUAL: &str = "manual";

/// A request, and everything that its approval may rest on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The time that ages count to.
    pub now: Timestamp,
    /// The request.
    pub request: &'a InstanceGroupUpgradeRequest,
    /// Its group.
    pub group: &'a InstanceGroup,
    /// The labels that schedules select by.
    pub labels: GroupLabels<'a>,
    /// The settings.
    pub settings: &'a InForce,
    /// What was seen of the request's image.
    pub evidence: Evidence,
}

/// What was seen of a request's image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// When SSM got the value, as it said when the value was first seen.
    pub last_modified: Option<Timestamp>,
    /// When the value was first seen here.
    pub first_seen: Option<Timestamp>,
    /// The best proof by the schedule that the image rule wants to hear.
    pub soak: Option<Soaking>,
}

/// A span in which a group was fully on an image and Ready without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soaking {
    /// Its begin.
    pub since: Timestamp,
    /// Its end; `None` = it lasts.
    pub until: Option<Timestamp>,
}

/// What a schedule says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Name of the schedule, or [`MANUAL`].
    pub policy: String,
    /// What follows.
    pub answer: Answer,
}

/// What follows for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is approved now; the time is when it became due.
    Approve(Timestamp),
    /// It is approved then, if nothing changes.
    At(Timestamp),
    /// It is approved once something has happened whose time is not known.
    Waits(Reason, String),
    /// A person has to decide.
    Manual(Reason, String),
}

impl Answer {
    /// What `status.autoApproveAt` says.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Approve(time) | Self::At(time) => Some(*time),
            Self::Waits(..) | Self::Manual(..) => None,
        }
    }
}

/// Says what the settings make of a request. `None` = there is nothing to decide: it is decided, running or over.
#[must_use]
pub fn verdict(question: &Question<'_>) -> Option<Verdict> {
    let request = question.request;
    let spec = &request.spec;
    let open = request.phase() == Phase::Pending && request.metadata.deletion_timestamp.is_none();
    if !open || spec.approved || spec.denied || spec.cancelled {
        return None;
    }
    let by_hand = |policy: &str, reason: Reason, why: String| {
        Some(Verdict {
            policy: policy.to_owned(),
            answer: Answer::Manual(reason, why),
        })
    };
    let Some(settings) = question.settings.sound() else {
        if question.settings.never_said() {
            return by_hand(MANUAL, Reason::NoSchedule, "there are no schedules".to_owned());
        }
        let why = question.settings.complaint().unwrap_or_default();
        return by_hand(MANUAL, Reason::SettingsInvalid, why);
    };
    let Some(schedule) = settings.schedule(&question.labels) else {
        return by_hand(MANUAL, Reason::NoSchedule, "no schedule is for this group".to_owned());
    };
    let name = schedule.name.as_str();
    if !settings.auto_approver {
        return by_hand(
            name,
            Reason::AutoApproverOff,
            "the settings switch the auto-approver off".to_owned(),
        );
    }
    let answer = match restraint(question).or_else(|| never(request)) {
        Some((reason, why)) => Answer::Manual(reason, why),
        None => answer(question, schedule),
    };
    Some(Verdict {
        policy: name.to_owned(),
        answer,
    })
}

/// What the group itself, or the request's past, keeps from automatic approval.
fn restraint(question: &Question<'_>) -> Option<(Reason, String)> {
    if question.request.asks_again() {
        let why = "its target was denied, cancelled or failed before: only a person approves it".to_owned();
        return Some((Reason::AskedAgain, why));
    }
    if let Some(value) = question.group.annotation(annotation::APPROVAL) {
        let odd = if value == MANUAL {
            ""
        } else {
            ", which is taken as manual"
        };
        let why = format!("annotation {} on the group says {value:?}{odd}", annotation::APPROVAL);
        return Some((Reason::ManualByAnnotation, why));
    }
    let delay = question.group.annotation(annotation::UPGRADE_DELAY)?;
    if duration::parse_duration(delay).is_none() {
        let why = format!(
            "annotation {} on the group says {delay:?}, which is no duration such as 36h: a person decides",
            annotation::UPGRADE_DELAY
        );
        return Some((Reason::ManualByAnnotation, why));
    }
    None
}

/// What no schedule may approve: going back to something older, unless AWS itself went back.
fn never(request: &InstanceGroupUpgradeRequest) -> Option<(Reason, String)> {
    let (from, target) = (request.spec.from.as_ref()?, &request.spec.target);
    if let (Some(before), Some(after)) = (
        minor(from.kubernetes_version.as_deref()),
        minor(target.kubernetes_version.as_deref()),
    ) && after < before
    {
        let why = format!(
            "Kubernetes would go back from {}.{} to {}.{}",
            before.0, before.1, after.0, after.1
        );
        return Some((Reason::GoesBack, why));
    }
    let older = from.image_created_at.as_ref().zip(target.image_created_at.as_ref());
    if older.is_some_and(|(from, target)| target.0 < from.0) && !kinds(request).contains(&Kind::Rollback) {
        let why = "the image is older than what runs, and its parameter did not go back to it".to_owned();
        return Some((Reason::GoesBack, why));
    }
    None
}

/// `1.33` as numbers.
fn minor(version: Option<&str>) -> Option<(u32, u32)> {
    let (major, minor) = version?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The strictest of the rules that apply.
fn answer(question: &Question<'_>, schedule: &Schedule) -> Answer {
    let mut latest: Option<Timestamp> = None;
    let mut waits = None;
    for kind in kinds(question.request) {
        match date::due(question, schedule, kind) {
            date::Due::Manual => {
                let why = format!("schedule {} leaves {kind} to a person", schedule.name);
                return Answer::Manual(Reason::ManualRule, why);
            }
            date::Due::At(time) => latest = latest.max(Some(time)),
            date::Due::Waits(reason, why) => waits = Some((reason, why)),
        }
    }
    if let Some((reason, why)) = waits {
        return Answer::Waits(reason, why);
    }
    match latest {
        Some(time) if time <= question.now => Answer::Approve(time),
        Some(time) => Answer::At(time),
        // A request of no kind: nothing that a rule could speak of.
        None => Answer::Manual(Reason::ManualRule, "no rule of the schedule speaks of it".to_owned()),
    }
}

/// How long a rule waits for a group, which may ask for more itself.
fn tightened(group: &InstanceGroup, after: SignedDuration) -> SignedDuration {
    let wanted = group
        .annotation(annotation::UPGRADE_DELAY)
        .and_then(duration::parse_duration);
    let wanted = wanted.and_then(|wanted| SignedDuration::try_from(wanted).ok());
    after.max(wanted.unwrap_or(SignedDuration::ZERO))
}

/// The rule of a schedule for what is no image.
fn rule(schedule: &Schedule, kind: Kind) -> Rule {
    match kind {
        Kind::Image | Kind::Rollback => schedule.rollback,
        Kind::Spec => schedule.spec,
        Kind::KubernetesVersion => schedule.kubernetes_version,
        Kind::Adoption => schedule.adoption,
    }
}
