//! Locks, freeze, windows and caps by the settings, and settings that are in trouble.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pretty_assertions::assert_eq;

use crate::api::instance_group::{LockSource, LockStatus};
use crate::api::upgrade_request::Phase;
use crate::api::{ConditionType, annotation};
use crate::plan::settings::{InForce, UPGRADES};
use crate::plan::step::Wake;
use crate::plan::test_world::World;

fn data(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(UPGRADES.to_owned(), text.to_owned())])
}

fn set(world: &mut World, text: &str) {
    world.settings = world.settings.next(Some(&data(text)));
    assert_eq!(world.settings.trouble, None, "{text}");
}

fn label(world: &mut World, key: &str, value: &str) {
    let labels = world.group.metadata.labels.get_or_insert_default();
    labels.insert(key.to_owned(), value.to_owned());
}

fn lock(world: &World) -> LockStatus {
    world.group.status.clone().unwrap().lock.unwrap()
}

/// A group at rest that these settings are for.
fn with(text: &str) -> World {
    let mut world = World::at_rest(false);
    set(&mut world, text);
    world.settle();
    world
}

#[test]
fn any_source_locks() {
    let tier = "instancemgr.keikoproj.io/tier";
    for (text, locked) in [
        ("locks: []", false),
        ("locks: [{reason: audit}]", true),
        (
            "locks: [{groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: prod}}}]",
            true,
        ),
        (
            "locks: [{groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: dev}}}]",
            false,
        ),
        (
            "locks: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}}]",
            true,
        ),
        (
            "locks: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}]",
            false,
        ),
        (
            "locks: [{except: {groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: prod}}}}]",
            false,
        ),
        (
            "locks: [{except: {groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: dev}}}}]",
            true,
        ),
        // Any of them suffices.
        (
            "locks: [{groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: dev}}}, {reason: audit}]",
            true,
        ),
    ] {
        let mut world = World::at_rest(false);
        label(&mut world, tier, "prod");
        world
            .namespace_labels
            .insert("kubernetes.io/metadata.name".to_owned(), "team".to_owned());
        set(&mut world, text);
        world.publish("ami-0b");
        world.run();
        assert_eq!(world.phases().len(), usize::from(locked), "{text}");
        assert_eq!(lock(&world).source, locked.then_some(LockSource::Settings), "{text}");
    }
    let mut both = with("locks: [{reason: audit}]");
    both.namespace_lock = Some("true".to_owned());
    both.settle();
    let reason = lock(&both).reason.unwrap();
    assert!(
        reason.contains("audit") && reason.contains("on the namespace"),
        "{reason}"
    );
}

/// The lock lifts at its time with nothing else happening.
#[test]
fn a_lock_ends_at_its_time() {
    let mut world = with("locks: [{reason: audit, until: 2026-11-02T06:00:00Z}]");
    let until: Timestamp = "2026-11-02T06:00:00Z".parse().unwrap();
    assert_eq!(lock(&world).until.map(|time| time.0), Some(until));
    assert_eq!(world.plan().wake, Wake::At(until));
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
    world.now = until - SignedDuration::from_mins(1);
    world.run();
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    world.now = until;
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    // One lock without an end outlasts one with.
    let world = with("locks: [{until: 2026-11-02T06:00:00Z}, {reason: for good}]");
    assert_eq!(lock(&world).until, None);
}

/// Case D29 and gate chapter 3: what is missing or broken unlocks nothing, also after a restart; an explicit list does.
#[test]
fn settings_that_vanish_unlock_nothing() {
    type Next = fn(&InForce) -> InForce;
    let vanished: [(&str, Next); 5] = [
        ("gone", |settings| settings.next(None)),
        ("no key", |settings| settings.next(Some(&BTreeMap::new()))),
        ("blank", |settings| settings.next(Some(&data(" \n")))),
        ("broken", |settings| settings.next(Some(&data("locks: maybe")))),
        ("no list", |settings| settings.next(Some(&data("history: {ttl: 2h}")))),
    ];
    for (what, next) in vanished {
        for restarted in [false, true] {
            let mut world = with("locks: [{reason: audit}]");
            world.settings = next(&if restarted {
                InForce::default()
            } else {
                world.settings.clone()
            });
            world.publish("ami-0b");
            world.run();
            assert_eq!(world.phases(), [Phase::Pending], "{what}, restarted: {restarted}");
            assert_eq!(lock(&world).source, Some(LockSource::Settings));
            set(&mut world, "locks: []");
            world.run();
            assert_eq!(world.running_images(), ["ami-0b"; 3], "{what}, restarted: {restarted}");
        }
    }
}

#[test]
fn a_lock_that_went_missing_still_ends_at_its_time() {
    let mut world = with("locks: [{until: 2026-11-02T06:00:00Z}]");
    world.settings = InForce::default();
    world.publish("ami-0b");
    world.run();
    let reason = lock(&world).reason.unwrap();
    assert!(reason.starts_with("SettingsMissing"), "{reason}");
    assert_eq!(world.condition(ConditionType::SettingsInvalid).as_deref(), Some("True"));
    world.now = "2026-11-02T06:00:00Z".parse().unwrap();
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
}

#[test]
fn settings_never_understood_lock_all() {
    let mut world = World::at_rest(false);
    world.settings = InForce::default().next(Some(&data("locks: [")));
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
    assert_eq!(world.condition(ConditionType::SettingsInvalid).as_deref(), Some("True"));
    assert!(lock(&world).reason.unwrap().contains("line 1"));
    // A fleet that never had settings is not locked and does not complain.
    let mut world = World::at_rest(false);
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert_eq!(world.condition(ConditionType::SettingsInvalid), None);
}

/// Case D10: until its time, with nothing else happening.
#[test]
fn a_freeze_ends_at_its_time() {
    let mut world = with("freeze: {enabled: true, reason: sale, until: 2026-11-02T06:00:00Z}");
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.aws_actions, Vec::<String>::new());
    let message = world.group.status.clone().unwrap().message.unwrap();
    assert!(message.contains("frozen: sale"), "{message}");
    let until: Timestamp = "2026-11-02T06:00:00Z".parse().unwrap();
    assert_eq!(world.plan().wake, Wake::At(until));
    world.now = until;
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
}

/// Scenario C32: what a lock or a freeze does not stop.
#[test]
fn life_goes_on_under_lock_and_freeze() {
    for text in ["locks: [{reason: audit}]", "freeze: {enabled: true}"] {
        let mut world = with(text);
        let eks = world.group.spec.eks.as_mut().unwrap();
        (eks.min_size, eks.max_size) = (Some(4), Some(8));
        world.publish("ami-0b");
        world.run();
        let group = world.scaling_group.clone().unwrap();
        assert_eq!((group.min_size, group.max_size), (4, 8), "{text}");
        assert_eq!(world.running_images(), ["ami-0a"; 4], "{text}");
    }
}

const NIGHTS: &str = "schedules: [{name: prod, match: {}, overrun: OVERRUN, windows: [{kind: allow, schedule: 0 2 * * *, \
                      duration: 4h, timeZone: Europe/Berlin}]}]";

/// Cases D11 and D12: at midnight UTC it is 01:00 in Berlin.
#[test]
fn windows_bind_the_start_and_each_batch() {
    for overrun in [false, true] {
        let mut world = World::at_rest(true);
        set(&mut world, &NIGHTS.replace("OVERRUN", &overrun.to_string()));
        world.publish("ami-0b");
        world.run();
        world.approve();
        world.run();
        let message = world.request(Phase::Approved).status.clone().unwrap().message.unwrap();
        assert!(message.contains("waits for window 02:00 Europe/Berlin"), "{message}");
        let opens: Timestamp = "2026-11-02T01:00:00Z".parse().unwrap();
        assert_eq!(world.plan().wake, Wake::At(opens));
        world.now = opens;
        world.settle();
        world.settle();
        assert_eq!(world.phases(), [Phase::InProgress]);
        world.boot();
        world.now = "2026-11-02T05:00:00Z".parse().unwrap();
        world.run();
        let done = world.running_images().iter().filter(|image| *image == "ami-0b").count();
        assert_eq!(
            done,
            if overrun { 3 } else { 1 },
            "the node in hand is finished: {}",
            world.transcript
        );
        if !overrun {
            // The cancel works while it waits.
            assert_eq!(world.plan().wake, Wake::At("2026-11-03T01:00:00Z".parse().unwrap()));
            world.now = "2026-11-03T01:00:00Z".parse().unwrap();
            world.run();
            assert_eq!(world.running_images(), ["ami-0b"; 3]);
        }
    }
}

/// While a window is open, its end is looked at as well.
#[test]
fn the_end_of_a_window_is_not_missed() {
    let mut world = World::at_rest(true);
    set(&mut world, &NIGHTS.replace("OVERRUN", "false"));
    world.now = "2026-11-02T02:00:00Z".parse().unwrap();
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.settle();
    let Wake::At(time) = world.plan().wake else {
        panic!("no time to look again")
    };
    assert!(time <= "2026-11-02T05:00:00Z".parse().unwrap());
}

#[test]
fn a_schedule_has_a_cap_of_its_own() {
    let mut world = with("schedules: [{name: prod, match: {}, maxConcurrentRollouts: 2}]");
    world.slots.of_schedule = Some((2, 2));
    world.publish("ami-0b");
    world.run();
    let message = world.group.status.clone().unwrap().message.unwrap();
    assert!(message.contains("2 of 2 rollouts of schedule prod run"), "{message}");
    world.slots.of_schedule = Some((1, 2));
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
}

#[test]
fn a_wrong_clock_is_shown() {
    let mut world = World::at_rest(false);
    world.clock_skew = Some(SignedDuration::from_hours(-2));
    world.settle();
    let status = world.group.status.clone().unwrap();
    let shown = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "ClockSkew");
    assert!(shown.unwrap().message.contains("2h ahead of AWS"), "{shown:?}");
}

/// The annotation of the group may be there and say no.
#[test]
fn a_no_of_one_source_is_no_unlock() {
    let mut world = with("locks: [{reason: audit}]");
    let annotations = world.group.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::LOCK_UPGRADES.to_owned(), "false".to_owned());
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
}
