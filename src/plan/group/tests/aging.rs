//! Requests that wait for their date while newer images appear (gate rule L6).

use jiff::SignedDuration;
use pretty_assertions::assert_eq;

use crate::api::ConditionType;
use crate::api::upgrade_request::Phase;
use crate::plan::facts::Fact;
use crate::plan::settings::{ImageRule, InForce, OnNewer, Rule, Schedule, Scope, Settings};
use crate::plan::test_world::World;

/// Settings with one schedule of a week for all.
fn weekly(on_newer: OnNewer) -> InForce {
    InForce::of(Settings {
        schedules: vec![Schedule {
            name: "prod".to_owned(),
            scope: Scope::default(),
            image: Some(ImageRule {
                after: SignedDuration::from_hours(168),
                basis: crate::plan::settings::Basis::default(),
                on_newer,
                settle: SignedDuration::from_mins(10),
                soak: None,
            }),
            spec: Rule::Manual,
            kubernetes_version: Rule::Manual,
            adoption: Rule::Manual,
            rollback: Rule::Manual,
            windows: Vec::new(),
            overrun: false,
            max_concurrent_rollouts: None,
        }],
        ..Settings::default()
    })
}

/// A locked group whose request for `ami-0b` ages.
fn aging(on_newer: OnNewer) -> World {
    let mut world = World::at_rest(true);
    world.settings = weekly(on_newer);
    world.publish("ami-0b");
    world.run();
    world
}

fn asked(world: &World, phase: Phase) -> String {
    world.request(phase).spec.target.image_id.clone().unwrap()
}

#[test]
fn a_newer_image_does_not_restart_the_wait() {
    let mut world = aging(OnNewer::Keep);
    world.publish("ami-0c");
    world.run();
    assert_eq!(
        (world.phases(), asked(&world, Phase::Pending)),
        (vec![Phase::Pending], "ami-0b".to_owned())
    );
    let image = world.group.status.clone().unwrap().image.unwrap();
    assert_eq!(image.pending.as_deref(), Some("ami-0c"), "the next one shows");
    world.approve();
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert_eq!(
        (world.phases(), asked(&world, Phase::Pending)),
        (vec![Phase::Succeeded, Phase::Pending], "ami-0c".to_owned())
    );
}

/// An approved one that waits for its turn keeps its approval, too.
#[test]
fn a_newer_image_takes_no_approval_away() {
    let mut world = aging(OnNewer::Keep);
    world.slots.taken = 10;
    world.approve();
    world.run();
    world.publish("ami-0c");
    world.run();
    assert_eq!(
        (world.phases(), asked(&world, Phase::Approved)),
        (vec![Phase::Approved], "ami-0b".to_owned())
    );
}

#[test]
fn a_schedule_may_restart_the_wait() {
    let mut world = aging(OnNewer::Restart);
    world.publish("ami-0c");
    world.run();
    assert_eq!(
        (world.phases(), asked(&world, Phase::Pending)),
        (vec![Phase::Superseded, Phase::Pending], "ami-0c".to_owned())
    );
}

/// Withdrawn and older images, edits and trouble with the image itself end the wait (gate rule L5).
#[test]
fn anything_but_a_newer_image_ends_the_wait() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 6] = [
        ("an older image", |world| {
            world.publish("ami-09");
        }),
        ("an image of the same age", |world| {
            world.publish("ami-0c");
            let older = world.images["ami-0b"].found().unwrap().created_at;
            if let Some(Fact::Found(image)) = world.images.get_mut("ami-0c") {
                image.created_at = older;
            }
        }),
        ("withdrawn", |world| {
            world.publish("ami-0c");
            world.images.insert("ami-0b".to_owned(), Fact::NotFound);
        }),
        ("deprecated", |world| {
            world.publish("ami-0c");
            let now = world.now;
            if let Some(Fact::Found(image)) = world.images.get_mut("ami-0b") {
                image.deprecated_at = Some(now);
            }
        }),
        ("an edit", |world| {
            world.publish("ami-0c");
            let eks = world.group.spec.eks.as_mut().unwrap();
            eks.configuration.key_pair_name = Some("other".to_owned());
        }),
        ("a minor step", |world| {
            world.upgrade_cluster("1.34", "ami-0c");
        }),
    ];
    for (what, change) in changes {
        let mut world = aging(OnNewer::Keep);
        change(&mut world);
        world.run();
        assert_eq!(world.phases()[0], Phase::Superseded, "{what}: {:?}", world.phases());
    }
}

#[test]
fn a_request_that_waits_too_long_is_shown() {
    let mut world = aging(OnNewer::Keep);
    assert_eq!(world.condition(ConditionType::UpgradeOverdue), None);
    world.wait(SignedDuration::from_hours(2 * 168));
    world.run();
    assert_eq!(world.condition(ConditionType::UpgradeOverdue).as_deref(), Some("True"));
}
