//! One group of a replay: what it runs, what it asks for, what it waits for.
//!
//! Owns the way from a release to a finished rollout, told as one [`Outcome`]. When it is approved is the approval policy's
//! answer, when it may start the windows'. Must not know of other groups.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::fleet::Fleet;
use super::{Group, Outcome, Release};
use crate::api::instance_group::{InstanceGroup, InstanceGroupSpec};
use crate::api::upgrade_request::{
    InstanceGroupRef, InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestSpec, SsmParameter, UpgradeReason,
    UpgradeSource, UpgradeTarget,
};
use crate::plan::approval::{self, Answer, Evidence, Question};
use crate::plan::settings::{GroupLabels, InForce, OnNewer, Schedule, Settings};
use crate::plan::windows;

/// What a group sees at a look.
pub struct Look<'a> {
    pub now: Timestamp,
    /// The release that the parameter names.
    pub wanted: &'a Release,
    /// Whether it came back because a newer one was withdrawn.
    pub went_back: bool,
    /// Images that were not withdrawn.
    pub offered: &'a BTreeSet<&'a str>,
    pub in_force: &'a InForce,
}

/// What follows from a look.
#[derive(Default)]
pub struct Next {
    /// An upgrade that ended without a rollout.
    pub dropped: Option<Outcome>,
    /// When its rollout is done.
    pub done: Option<Timestamp>,
    /// When to look again.
    pub look_at: Option<Timestamp>,
}

/// What it runs.
struct Running {
    image: String,
    made: Timestamp,
}

/// An upgrade under way.
struct Upgrade {
    request: InstanceGroupUpgradeRequest,
    made: Timestamp,
    outcome: Outcome,
}

/// A group.
pub struct Member<'a> {
    group: &'a Group,
    object: InstanceGroup,
    schedule: Option<usize>,
    running: Option<Running>,
    upgrade: Option<Upgrade>,
}

impl<'a> Member<'a> {
    pub fn new(group: &'a Group, settings: &Settings) -> Self {
        let mut object = InstanceGroup::new(&group.name, InstanceGroupSpec::default());
        object.metadata.annotations = Some(group.annotations.clone());
        let labels = labels(group);
        let schedules = &settings.schedules;
        Self {
            schedule: schedules.iter().position(|schedule| schedule.scope.contains(&labels)),
            group,
            object,
            running: None,
            upgrade: None,
        }
    }

    fn schedule<'s>(&self, in_force: &'s InForce) -> Option<&'s Schedule> {
        in_force.binding()?.schedules.get(self.schedule?)
    }

    /// Looks, and goes as far as it can.
    pub fn look(&mut self, look: &Look<'_>, fleet: &mut Fleet, itself: usize) -> Next {
        let Some(running) = &self.running else {
            // The first release is what the fleet was made with.
            self.running = Some(Running {
                image: look.wanted.image.clone(),
                made: look.wanted.at,
            });
            return Next::default();
        };
        let mut next = Next::default();
        if let Some(upgrade) = &self.upgrade {
            if upgrade.outcome.started.is_some() {
                return next;
            }
            if let Some(why) = self.ends(look, upgrade, running) {
                fleet.gives_up(itself);
                next.dropped = self.upgrade.take().map(|upgrade| Outcome {
                    dropped: Some(why),
                    ..upgrade.outcome
                });
            }
        }
        if self.upgrade.is_none() {
            let Some(running) = self
                .running
                .as_ref()
                .filter(|running| running.image != look.wanted.image)
            else {
                return next;
            };
            self.upgrade = Some(opened(look, running));
        }
        self.go_on(look, fleet, itself, &mut next);
        next
    }

    /// Why the upgrade that waits is over, if it is (gate rules L5 to L7).
    fn ends(&self, look: &Look<'_>, upgrade: &Upgrade, running: &Running) -> Option<String> {
        let asked = upgrade.outcome.image.as_str();
        if asked == look.wanted.image {
            return None;
        }
        if look.wanted.image == running.image {
            return Some("went back to what runs".to_owned());
        }
        let rule = self
            .schedule(look.in_force)
            .and_then(|schedule| schedule.image.as_ref());
        let keeps = rule.is_some_and(|rule| rule.on_newer == OnNewer::Keep)
            && upgrade.request.spec.reason == UpgradeReason::ImageDrift
            && look.offered.contains(asked)
            && upgrade.made < look.wanted.at;
        (!keeps).then(|| format!("{} took its place", look.wanted.image))
    }

    fn go_on(&mut self, look: &Look<'_>, fleet: &mut Fleet, itself: usize, next: &mut Next) {
        let labels = labels(self.group);
        let schedule = self.schedule(look.in_force);
        let settings = look.in_force.binding();
        let locks = |settings: &Settings| {
            let mut locked = false;
            let mut lifts: Option<Timestamp> = None;
            for rule in settings.locks_on(&labels, look.now) {
                locked = true;
                lifts = lifts.max(rule.until);
            }
            (locked, lifts)
        };
        let (locked, lifts) = settings.map(locks).unwrap_or_default();
        let soak = schedule.and_then(|schedule| schedule.image.as_ref()?.soak.as_ref());
        let by = settings.zip(soak).and_then(|(settings, soak)| {
            settings
                .schedules
                .iter()
                .position(|schedule| schedule.name == soak.schedule)
        });
        let Some(upgrade) = &mut self.upgrade else { return };
        if upgrade.outcome.approved.is_none() {
            if locked {
                let proof = by.and_then(|by| fleet.proof(itself, by, &upgrade.outcome.image));
                let answer = approval::verdict(&Question {
                    now: look.now,
                    request: &upgrade.request,
                    group: &self.object,
                    labels,
                    settings: look.in_force,
                    evidence: Evidence {
                        soak: proof,
                        ..Evidence::default()
                    },
                });
                next.look_at = lifts;
                match answer.map(|verdict| verdict.answer) {
                    Some(Answer::Approve(_)) => {
                        let name = schedule.map(|schedule| schedule.name.clone());
                        upgrade.approve(look.now, name.unwrap_or_default());
                    }
                    Some(Answer::At(at)) => {
                        next.look_at = Some(lifts.map_or(at, |lifts| lifts.min(at)));
                        return;
                    }
                    Some(Answer::Waits(_, why) | Answer::Manual(_, why)) => {
                        upgrade.waits(&why);
                        return;
                    }
                    None => return,
                }
            } else {
                upgrade.approve(look.now, "unlocked".to_owned());
            }
        }
        if let Some(freeze) = settings
            .map(|settings| &settings.freeze)
            .filter(|freeze| freeze.holds(look.now))
        {
            upgrade.waits("frozen");
            next.look_at = freeze.until;
            return;
        }
        if let Some(schedule) = schedule
            && let windows::Standing::Closed { why, opens, .. } = windows::standing(&schedule.windows, look.now)
        {
            upgrade.waits(&format!("window closed ({why})"));
            next.look_at = opens;
            return;
        }
        if !fleet.take(
            itself,
            self.schedule,
            schedule.and_then(|schedule| schedule.max_concurrent_rollouts),
        ) {
            upgrade.waits("slot");
            return;
        }
        upgrade.outcome.started = Some(look.now);
        next.done = Some(ends_at(schedule, look.now, self.group.takes));
    }

    /// Its rollout is done. Answers the story and what that proves.
    pub fn done(&mut self, now: Timestamp) -> (Option<Outcome>, Option<(usize, String)>) {
        let Some(upgrade) = self.upgrade.take() else {
            return (None, None);
        };
        self.running = Some(Running {
            image: upgrade.outcome.image.clone(),
            made: upgrade.made,
        });
        let proves = self.schedule.map(|schedule| (schedule, upgrade.outcome.image.clone()));
        let outcome = Outcome {
            finished: Some(now),
            ..upgrade.outcome
        };
        (Some(outcome), proves)
    }

    /// The upgrade that is not over.
    pub fn open(self) -> Option<Outcome> {
        self.upgrade.map(|upgrade| upgrade.outcome)
    }
}

impl Upgrade {
    fn approve(&mut self, now: Timestamp, by: String) {
        self.outcome.approved = Some(now);
        self.outcome.by = Some(by);
    }

    fn waits(&mut self, why: &str) {
        if self.outcome.waited.last().is_none_or(|last| last != why) {
            self.outcome.waited.push(why.to_owned());
        }
    }
}

fn labels(group: &Group) -> GroupLabels<'_> {
    GroupLabels {
        namespace: &group.namespace_labels,
        group: &group.labels,
    }
}

/// A request for the release that is wanted.
fn opened(look: &Look<'_>, running: &Running) -> Upgrade {
    let wanted = look.wanted;
    let older = wanted.at < running.made;
    let reason = if older && look.went_back {
        UpgradeReason::ImageRollback
    } else {
        UpgradeReason::ImageDrift
    };
    let spec = InstanceGroupUpgradeRequestSpec {
        instance_group_ref: InstanceGroupRef::default(),
        reason,
        from: Some(UpgradeSource {
            image_id: Some(running.image.clone()),
            image_created_at: Some(Time(running.made)),
            ..UpgradeSource::default()
        }),
        target: UpgradeTarget {
            image_id: Some(wanted.image.clone()),
            image_created_at: Some(Time(wanted.at)),
            ssm: Some(SsmParameter {
                parameter: "image".to_owned(),
                version: None,
                last_modified: Some(Time(wanted.at)),
            }),
            ..UpgradeTarget::default()
        },
        approved: false,
        denied: false,
        cancelled: false,
        urgent: false,
        approved_by: String::new(),
        decision_reason: String::new(),
    };
    let mut request = InstanceGroupUpgradeRequest::new("replayed", spec);
    request.metadata.creation_timestamp = Some(Time(look.now));
    Upgrade {
        request,
        made: wanted.at,
        outcome: Outcome {
            group: 0,
            image: wanted.image.clone(),
            opened: look.now,
            approved: None,
            by: None,
            started: None,
            finished: None,
            waited: Vec::new(),
            dropped: None,
        },
    }
}

/// When a rollout that starts now is done: it goes on only while windows are open, unless it may overrun.
fn ends_at(schedule: Option<&Schedule>, now: Timestamp, takes: SignedDuration) -> Timestamp {
    let straight = |now: Timestamp, left: SignedDuration| now.saturating_add(left).unwrap_or(Timestamp::MAX);
    let Some(schedule) = schedule.filter(|schedule| !schedule.overrun) else {
        return straight(now, takes);
    };
    let (mut now, mut left) = (now, takes);
    // A rollout that needs more windows than that never ends in any replay.
    for _ in 0..1_000 {
        match windows::standing(&schedule.windows, now) {
            windows::Standing::Open { until: None } => return straight(now, left),
            windows::Standing::Open { until: Some(until) } => {
                let open = until.duration_since(now);
                if left <= open {
                    return straight(now, left);
                }
                left -= open;
                now = until;
            }
            windows::Standing::Closed { opens: Some(opens), .. } => now = opens,
            windows::Standing::Closed { opens: None, .. } => return Timestamp::MAX,
        }
    }
    Timestamp::MAX
}
