//! What a rollout that stops before its end takes back, and what it leaves alone.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::annotation;
use crate::api::instance_group::{RollingUpdate, RolloutRecord, UpgradeStrategy};
use crate::api::upgrade_request::Phase;
use crate::plan::test_world::World;

/// Instances that run an image.
fn on(world: &World, image: &str) -> Vec<String> {
    let ids = world
        .scaling_group
        .as_ref()
        .unwrap()
        .instances
        .iter()
        .map(|one| one.id.clone());
    let images = world.running_images();
    ids.zip(images)
        .filter(|(_, other)| other == image)
        .map(|(id, _)| id)
        .collect()
}

fn record(world: &World) -> &RolloutRecord {
    world.group.status.as_ref().unwrap().rollout.as_ref().unwrap()
}

fn cancel(world: &mut World) {
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
}

/// A rollout to `ami-0b` whose first node is done.
fn first_done() -> World {
    let mut world = super::pending();
    world.approve();
    world.settle();
    world.boot();
    world
}

/// The target is asked for again after a cancel that left one node of it, which has failed since.
fn again() -> (World, String) {
    let mut world = first_done();
    cancel(&mut world);
    world.run();
    let [old] = &on(&world, "ami-0b")[..] else {
        panic!("{}", world.transcript)
    };
    let old = old.clone();
    let key = world.group.status.as_ref().unwrap().blocked_targets[0]
        .fingerprint
        .clone();
    let annotations = world.group.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation::RETRY_UPGRADE.to_owned(), key);
    world.settle();
    world.nodes.get_mut(&old).unwrap().ready = false;
    world.approve();
    (world, old)
}

#[test]
fn a_node_of_the_target_that_was_there_before_neither_halts_nor_goes() {
    let (mut world, old) = again();
    world.settle();
    assert_eq!(record(&world).present_at_start, [old.as_str()]);
    assert!(record(&world).joining.is_empty(), "{}", world.transcript);
    world.wait(SignedDuration::from_mins(16));
    world.settle();
    assert_eq!(world.phases(), [Phase::InProgress], "{}", world.transcript);
    cancel(&mut world);
    world.settle();
    assert_eq!(
        (world.phases(), world.nodes.contains_key(&old)),
        (vec![Phase::Cancelled], true),
        "{}",
        world.transcript
    );

    let (mut world, old) = again();
    world.settle();
    world.run();
    assert_eq!(
        (world.phases(), world.nodes.contains_key(&old)),
        (vec![Phase::Succeeded], true),
        "{}",
        world.transcript
    );
}

#[test]
fn a_record_rebuilt_in_the_middle_takes_no_newcomer_for_an_old_node() {
    let mut world = super::pending();
    world.bad_images.insert("ami-0b".to_owned());
    world.approve();
    world.run();
    world.group.status.as_mut().unwrap().rollout = None;
    world.run();
    assert_eq!(
        (record(&world).present_at_start.len(), record(&world).joining.len()),
        (0, 1)
    );
    world.wait(SignedDuration::from_mins(15));
    world.run();
    assert_eq!(
        (world.phases(), on(&world, "ami-0a").len()),
        (vec![Phase::Failed], 3),
        "{}",
        world.transcript
    );
}

/// A node that was Ready once stays, also where it was seen so only at the very end.
#[test]
fn what_became_ready_just_before_the_end_is_not_taken_back() {
    for cancelled in [true, false] {
        let mut world = World::at_rest(true);
        world.group.spec.strategy = Some(UpgradeStrategy {
            rolling_update: Some(RollingUpdate {
                max_unavailable: Some(IntOrString::Int(2)),
                ..RollingUpdate::default()
            }),
            ..UpgradeStrategy::default()
        });
        world.publish("ami-0b");
        world.settle();
        world.approve();
        world.settle();
        world.boot();
        world.settle();
        let newcomers: Vec<String> = on(&world, "ami-0b")
            .into_iter()
            .filter(|id| !world.nodes.contains_key(id))
            .collect();
        assert_eq!(newcomers.len(), 2, "{}", world.transcript);
        world.bad_images.insert("ami-0b".to_owned());
        let (late, lost) = (newcomers[0].clone(), newcomers[1].clone());
        if cancelled {
            cancel(&mut world);
        } else {
            world.wait(SignedDuration::from_mins(15));
        }
        world.ready(&late);
        world.pass();
        assert!(record(&world).ending.is_some(), "{}", world.transcript);
        world.nodes.get_mut(&late).unwrap().ready = false;
        world.settle();
        let left = |id: &String| on(&world, "ami-0b").contains(id);
        assert!(left(&late) && !left(&lost), "{cancelled}: {}", world.transcript);
    }
}

/// The same once the end is decided: noted before what never was Ready goes.
#[test]
fn what_becomes_ready_at_the_start_of_the_retreat_is_noted() {
    let mut world = super::pending();
    world.bad_images.insert("ami-0b".to_owned());
    world.approve();
    world.run();
    world.wait(SignedDuration::from_mins(15));
    world.pass();
    assert!(record(&world).ending.is_some(), "{}", world.transcript);
    let late = on(&world, "ami-0b")[0].clone();
    world.ready(&late);
    // The pin goes back first, then comes the look for nodes that never were Ready.
    world.pass();
    let plan = world.pass();
    assert!(plan.to_string().contains("welcome"), "{plan}\n{}", world.transcript);
}
