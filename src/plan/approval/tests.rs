//! When requests are approved automatically: tables over reasons, ages, annotations and evidence.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::label;
use crate::api::upgrade_request::{SsmParameter, TargetChange, UpgradeReason, UpgradeSource};
use crate::plan::settings::{Basis, ImageRule, OnNewer, Scope, Settings, Soak};

/// When the request of these tests opened.
const OPENED: &str = "2026-11-02T00:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// One schedule for every group, which approves images after so many hours.
fn schedule(name: &str, after: i64) -> Schedule {
    let settle = if after == 0 {
        SignedDuration::ZERO
    } else {
        SignedDuration::from_mins(10)
    };
    Schedule {
        name: name.to_owned(),
        scope: Scope::default(),
        image: Some(ImageRule {
            after: hours(after),
            basis: Basis::SsmLastModified,
            on_newer: OnNewer::Keep,
            settle,
            soak: None,
        }),
        spec: Rule::Manual,
        kubernetes_version: Rule::Manual,
        adoption: Rule::Manual,
        rollback: Rule::After(SignedDuration::ZERO),
        windows: Vec::new(),
        overrun: false,
        max_concurrent_rollouts: None,
    }
}

struct Case {
    now: Timestamp,
    request: InstanceGroupUpgradeRequest,
    group: InstanceGroup,
    settings: InForce,
    evidence: Evidence,
}

impl Case {
    /// A new image: in SSM 24 hours before the request opened, made 12 hours before that.
    fn new(schedule: Schedule) -> Self {
        let opened = at(OPENED);
        let request = json!({
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1", "kind": "InstanceGroupUpgradeRequest",
            "metadata": { "name": "workers-0123456789" },
            "spec": {
                "instanceGroupRef": { "name": "workers", "uid": "uid-1" },
                "reason": "ImageDrift",
                "target": { "fingerprint": "f" },
            },
        });
        let mut request: InstanceGroupUpgradeRequest = serde_json::from_value(request).unwrap();
        request.metadata.creation_timestamp = Some(Time(opened));
        request.spec.from = Some(UpgradeSource {
            image_id: Some("ami-0a".to_owned()),
            image_created_at: Some(Time(opened - hours(24 * 14))),
            kubernetes_version: Some("1.33".to_owned()),
            ..UpgradeSource::default()
        });
        let target = &mut request.spec.target;
        target.image_id = Some("ami-0b".to_owned());
        target.image_created_at = Some(Time(opened - hours(36)));
        target.kubernetes_version = Some("1.33".to_owned());
        target.ssm = Some(SsmParameter {
            parameter: "/image".to_owned(),
            version: Some(2),
            last_modified: Some(Time(opened - hours(24))),
        });
        let group = json!({
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1", "kind": "InstanceGroup",
            "metadata": { "name": "workers" }, "spec": {},
        });
        Self {
            now: opened,
            request,
            group: serde_json::from_value(group).unwrap(),
            settings: InForce::of(Settings {
                schedules: vec![schedule],
                ..Settings::default()
            }),
            evidence: Evidence::default(),
        }
    }

    fn rule(mut self, edit: impl FnOnce(&mut ImageRule)) -> Self {
        let mut settings = self.settings.sound().cloned().unwrap();
        edit(settings.schedules[0].image.as_mut().unwrap());
        self.settings = InForce::of(settings);
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        let annotations = self.group.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    fn verdict(&self) -> Option<Verdict> {
        let none = BTreeMap::new();
        verdict(&Question {
            now: self.now,
            request: &self.request,
            group: &self.group,
            labels: GroupLabels {
                namespace: &none,
                group: self.group.metadata.labels.as_ref().unwrap_or(&none),
            },
            settings: &self.settings,
            evidence: self.evidence,
        })
    }

    fn answer(&self) -> Answer {
        self.verdict().unwrap().answer
    }

    /// The answer as hours after the opening, or the reason why there is no time.
    fn when(&self) -> Result<f64, Reason> {
        match self.answer() {
            Answer::Approve(time) | Answer::At(time) => Ok(time.duration_since(at(OPENED)).as_secs_f64() / 3600.0),
            Answer::Waits(reason, _) | Answer::Manual(reason, _) => Err(reason),
        }
    }
}

/// Scenario C20: dev at once, staging after 48 h, prod a week after the image's time in SSM, exact to the second.
#[test]
fn the_three_tiers() {
    for (name, after, due) in [("dev", 0, 0), ("staging", 48, 24), ("prod", 168, 144)] {
        let mut case = Case::new(schedule(name, after));
        let due = at(OPENED) + hours(due);
        if after > 0 {
            assert_eq!(case.answer(), Answer::At(due), "{name}");
            case.now = due - SignedDuration::from_secs(1);
            assert_eq!(case.answer(), Answer::At(due), "{name}");
            case.now = due;
        }
        assert_eq!(case.answer(), Answer::Approve(due), "{name}");
        assert_eq!(case.verdict().unwrap().policy, name);
    }
}

#[test]
fn an_image_ages_from_what_the_rule_says() {
    let seen = Evidence {
        last_modified: Some(at(OPENED) - hours(20)),
        first_seen: Some(at(OPENED) - hours(4)),
        soak: None,
    };
    for (basis, evidence, due) in [
        (Basis::SsmLastModified, Evidence::default(), 24.0),
        // What SSM said at the first sight: putting the same value again does not restart the age.
        (Basis::SsmLastModified, seen, 28.0),
        (Basis::FirstSeen, seen, 44.0),
        (Basis::FirstSeen, Evidence::default(), 48.0),
        (Basis::ImageCreated, seen, 12.0),
    ] {
        let mut case = Case::new(schedule("staging", 48)).rule(|rule| rule.basis = basis);
        case.evidence = evidence;
        assert_eq!(case.when(), Ok(due), "{basis:?}");
    }
    let mut undated = Case::new(schedule("staging", 48));
    undated.request.spec.target.ssm = None;
    undated.evidence.first_seen = Some(at(OPENED) - hours(2));
    assert_eq!(undated.when(), Ok(46.0), "a missing date counts from the first sight");
}

/// A date in the future is a wrong clock: the image's age is 0.
#[test]
fn an_image_from_the_future_is_new() {
    for (after, due) in [(0, Ok(0.0)), (48, Ok(53.0))] {
        let mut case = Case::new(schedule("any", after));
        case.request.spec.target.ssm.as_mut().unwrap().last_modified = Some(Time(at(OPENED) + hours(5)));
        assert_eq!(case.when(), due);
    }
}

/// However old the image: a request stays open for a moment, in which AWS may take it back (case D21).
#[test]
fn a_request_settles_first() {
    let old = |case: &mut Case| {
        case.request.spec.target.ssm.as_mut().unwrap().last_modified = Some(Time(at(OPENED) - hours(1000)));
    };
    let mut case = Case::new(schedule("prod", 168));
    old(&mut case);
    assert_eq!(case.when(), Ok(1.0 / 6.0));
    let mut case = case.rule(|rule| rule.settle = hours(2));
    assert_eq!(case.when(), Ok(2.0));
    case.now = at(OPENED) + hours(2);
    assert!(matches!(case.answer(), Answer::Approve(_)));
}

#[test]
fn other_kinds_count_from_the_opening() {
    let kinds = [
        (UpgradeReason::SpecDrift, 3.0),
        (UpgradeReason::KubernetesVersionDrift, 5.0),
        (UpgradeReason::Adoption, 7.0),
        (UpgradeReason::ImageRollback, 9.0),
    ];
    for (reason, due) in kinds {
        let mut by_hand = Case::new(schedule("any", 48));
        by_hand.request.spec.reason = reason;
        let rollback = reason == UpgradeReason::ImageRollback;
        assert_eq!(by_hand.when(), if rollback { Ok(0.0) } else { Err(Reason::ManualRule) });
        let mut timed = Schedule {
            spec: Rule::After(hours(3)),
            kubernetes_version: Rule::After(hours(5)),
            adoption: Rule::After(hours(7)),
            rollback: Rule::After(hours(9)),
            ..schedule("any", 48)
        };
        let mut case = Case::new(timed.clone());
        case.request.spec.reason = reason;
        assert_eq!(case.when(), Ok(due), "{reason}");
        // A minute is less than a request has to settle.
        let short = Rule::After(SignedDuration::from_mins(1));
        timed = Schedule {
            spec: short,
            kubernetes_version: short,
            adoption: short,
            rollback: short,
            ..timed
        };
        let mut case = Case::new(timed);
        case.request.spec.reason = reason;
        assert_eq!(case.when(), Ok(1.0 / 6.0), "{reason}");
    }
    let mut case = Case::new(Schedule {
        image: None,
        ..schedule("any", 0)
    });
    assert_eq!(case.when(), Err(Reason::ManualRule));
    case.request.metadata.creation_timestamp = None;
    assert_eq!(case.when(), Err(Reason::ManualRule));
}

/// `Multiple` follows the strictest of its kinds.
#[test]
fn several_kinds_follow_the_strictest() {
    let change = |path: &str| TargetChange {
        path: path.to_owned(),
        from: None,
        to: None,
    };
    let several = |edit: fn(&mut InstanceGroupUpgradeRequest), spec: Rule, version: Rule| {
        let mut case = Case::new(Schedule {
            spec,
            kubernetes_version: version,
            ..schedule("any", 48)
        });
        case.request.spec.reason = UpgradeReason::Multiple;
        edit(&mut case.request);
        case
    };
    let (short, long) = (Rule::After(hours(1)), Rule::After(hours(100)));
    let mut edited = several(|_| {}, short, Rule::Manual);
    edited.request.spec.target.changes = vec![change("imageId"), change("labels")];
    assert_eq!(kinds(&edited.request), [Kind::Image, Kind::Spec]);
    assert_eq!(edited.when(), Ok(24.0), "the image's age");
    let mut edited = several(|_| {}, long, Rule::Manual);
    edited.request.spec.target.changes = vec![change("imageId"), change("labels")];
    assert_eq!(edited.when(), Ok(100.0), "the edit's");
    let step = several(
        |request| {
            request.spec.target.kubernetes_version = Some("1.34".to_owned());
            request.spec.target.changes = Vec::new();
        },
        Rule::Manual,
        long,
    );
    assert_eq!(kinds(&step.request), [Kind::KubernetesVersion, Kind::Image]);
    assert_eq!(step.when(), Ok(100.0));
    let moved = several(
        |request| {
            request.spec.target.kubernetes_version = Some("1.34".to_owned());
            request.spec.target.removed_subnets = vec!["subnet-a".to_owned()];
        },
        Rule::Manual,
        long,
    );
    assert_eq!(moved.when(), Err(Reason::ManualRule));
    let unclear = several(|request| request.spec.target.changes = Vec::new(), Rule::Manual, long);
    assert_eq!(
        unclear.when(),
        Err(Reason::ManualRule),
        "what cannot be told apart is for a person"
    );
}

/// Scenarios C15 and C22: nothing older is approved by itself, unless AWS itself went back.
#[test]
fn nothing_older_is_approved() {
    let mut older = Case::new(schedule("dev", 0));
    older.request.spec.target.image_created_at = Some(Time(at(OPENED) - hours(24 * 15)));
    assert_eq!(older.when(), Err(Reason::GoesBack));
    older.request.spec.reason = UpgradeReason::Multiple;
    assert_eq!(older.when(), Err(Reason::GoesBack));
    older.request.spec.reason = UpgradeReason::ImageRollback;
    assert_eq!(older.when(), Ok(0.0));
    older.request.spec.target.kubernetes_version = Some("1.26".to_owned());
    assert_eq!(older.when(), Err(Reason::GoesBack));
    let mut as_old = Case::new(schedule("dev", 0));
    let from = as_old.request.spec.from.as_mut().unwrap();
    from.image_created_at = as_old.request.spec.target.image_created_at.clone();
    assert!(as_old.when().is_ok());
    for (before, after, back) in [("1.9", "1.10", false), ("2.0", "1.99", true), ("1.33", "1.33", false)] {
        let mut case = Case::new(schedule("dev", 0));
        case.request.spec.from.as_mut().unwrap().kubernetes_version = Some(before.to_owned());
        case.request.spec.target.kubernetes_version = Some(after.to_owned());
        assert_eq!(case.when() == Err(Reason::GoesBack), back, "{before} to {after}");
    }
}

#[test]
fn annotations_of_the_group_only_tighten() {
    for (key, value, due) in [
        (annotation::UPGRADE_DELAY, "1h", Ok(24.0)),
        (annotation::UPGRADE_DELAY, "4d", Ok(72.0)),
        (annotation::UPGRADE_DELAY, "soon", Err(Reason::ManualByAnnotation)),
        (annotation::UPGRADE_DELAY, "", Err(Reason::ManualByAnnotation)),
        (annotation::APPROVAL, "manual", Err(Reason::ManualByAnnotation)),
        // There is no value that loosens.
        (annotation::APPROVAL, "automatic", Err(Reason::ManualByAnnotation)),
    ] {
        let case = Case::new(schedule("staging", 48)).annotated(key, value);
        assert_eq!(case.when(), due, "{key}={value}");
    }
    let mut rollback = Case::new(schedule("dev", 0)).annotated(annotation::UPGRADE_DELAY, "6h");
    rollback.request.spec.reason = UpgradeReason::ImageRollback;
    assert_eq!(rollback.when(), Ok(6.0));
    let at_once = Case::new(schedule("dev", 0)).annotated(annotation::UPGRADE_DELAY, "30h");
    assert_eq!(at_once.when(), Ok(6.0), "the image's age counts");
}

#[test]
fn proof_by_another_schedule_is_waited_for() {
    let soaks = || {
        Case::new(schedule("prod", 48)).rule(|rule| {
            rule.soak = Some(Soak {
                schedule: "staging".to_owned(),
                lasts: hours(36),
            });
        })
    };
    let span = |since: i64, until: Option<i64>| {
        Some(Soaking {
            since: at(OPENED) + hours(since),
            until: until.map(|until| at(OPENED) + hours(until)),
        })
    };
    for (soak, due) in [
        (None, Err(Reason::WaitsForSoak)),
        // The proof is complete before the image is old enough, and after.
        (span(-20, None), Ok(24.0)),
        (span(10, None), Ok(46.0)),
        // A span that ended was long enough or was not.
        (span(-20, Some(16)), Ok(24.0)),
        (span(-20, Some(15)), Err(Reason::WaitsForSoak)),
    ] {
        let mut case = soaks();
        case.evidence.soak = soak;
        assert_eq!(case.when(), due, "{soak:?}");
    }
}

/// Case L9: what was denied, cancelled or failed is for a person, whoever asked again.
#[test]
fn what_was_blocked_before_is_for_a_person() {
    let mut case = Case::new(schedule("dev", 0));
    let labels = case.request.metadata.labels.get_or_insert_default();
    labels.insert(label::ASKED_AGAIN.to_owned(), "true".to_owned());
    assert_eq!(case.when(), Err(Reason::AskedAgain));
}

#[test]
fn only_what_is_open_and_undecided_is_judged() {
    let edits: [fn(&mut InstanceGroupUpgradeRequest); 5] = [
        |request| request.spec.approved = true,
        |request| request.spec.denied = true,
        |request| request.spec.cancelled = true,
        |request| request.metadata.deletion_timestamp = Some(Time(at(OPENED))),
        |request| request.status.get_or_insert_default().phase = Some(Phase::Succeeded),
    ];
    for edit in edits {
        let mut case = Case::new(schedule("dev", 0));
        assert!(case.verdict().is_some());
        edit(&mut case.request);
        assert_eq!(case.verdict(), None);
    }
}

/// Cases D16, D17 and D29: without sound settings, a schedule or the switch, a person decides.
#[test]
fn without_sound_settings_nothing_is_approved() {
    let mut case = Case::new(schedule("dev", 0));
    case.settings = case.settings.next(None);
    assert_eq!(
        (case.when(), case.verdict().unwrap().policy),
        (Err(Reason::SettingsInvalid), MANUAL.to_owned())
    );
    case.settings = InForce::default();
    assert_eq!(case.when(), Err(Reason::NoSchedule));
    case.settings = InForce::of(Settings::default());
    assert_eq!(
        (case.when(), case.verdict().unwrap().policy),
        (Err(Reason::NoSchedule), MANUAL.to_owned())
    );
    case.settings = InForce::of(Settings {
        auto_approver: false,
        schedules: vec![schedule("dev", 0)],
        ..Settings::default()
    });
    assert_eq!(case.when(), Err(Reason::AutoApproverOff));
}
