//! Whole rollouts as text, compared with files that a person reviews. `UPDATE=1` rewrites them.

use std::path::Path;

use pretty_assertions::assert_eq;

use crate::api::upgrade_request::Phase;
use crate::plan::test_world::World;

/// Compares a transcript with its file.
fn golden(name: &str, transcript: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/gate")
        .join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, transcript).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        transcript, expected,
        "{name}: review the difference; UPDATE=1 accepts it"
    );
}

#[test]
fn a_locked_group_from_nothing_to_the_next_image() {
    let mut world = World::new(true);
    world.run();
    world.publish("ami-0b");
    world.run();
    world.say("scale-out while the request waits");
    world.group.spec.eks.as_mut().unwrap().min_size = Some(4);
    world.run();
    assert_eq!(world.running_images(), ["ami-0a"; 4]);
    world.approve();
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 4]);
    assert_eq!(world.phases(), [Phase::Succeeded]);
    golden("locked_group", &world.transcript);
}

#[test]
fn an_unlocked_group_goes_on_its_own() {
    let mut world = World::at_rest(false);
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert!(world.requests.is_empty());
    golden("unlocked_group", &world.transcript);
}

#[test]
fn a_deletion_takes_everything_along() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.run();
    world.say("the group is deleted");
    world.group.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    world.settle();
    assert!(world.scaling_group.is_none() && world.template.is_none() && world.requests.is_empty());
    assert_eq!(world.group.metadata.finalizers, Some(Vec::new()));
    golden("deletion", &world.transcript);
}
