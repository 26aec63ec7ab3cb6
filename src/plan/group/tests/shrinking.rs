//! Nodes that go for good: a lowered upper bound, and a deleted group.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::instance_group::{RollingUpdate, UpgradeStrategy};
use crate::plan::facts::workload::{Pod, PodId, PodKind};
use crate::plan::group::resizes;
use crate::plan::test_world::World;

fn pod(id: &str) -> Pod {
    Pod {
        id: PodId {
            namespace: "shop".to_owned(),
            name: format!("web-{id}"),
            uid: format!("uid-{id}"),
        },
        kind: PodKind::Owned,
        ready: true,
        ends_at: None,
        grace_seconds: 30,
        budgets: Vec::new(),
        answer: None,
    }
}

/// A group at rest with a pod on each node.
fn busy(size: i64) -> World {
    let mut world = World::at_rest(true);
    let eks = world.group.spec.eks.as_mut().unwrap();
    (eks.min_size, eks.max_size) = (Some(size), Some(6));
    world.run();
    for id in world.nodes.keys().cloned().collect::<Vec<_>>() {
        world.pods.insert(id.clone(), vec![pod(&id)]);
    }
    world.aws_actions.clear();
    world.transcript.clear();
    world
}

fn resize(world: &mut World, min: i64, max: i64) {
    let eks = world.group.spec.eks.as_mut().unwrap();
    (eks.min_size, eks.max_size) = (Some(min), Some(max));
}

#[test]
fn a_surplus_is_drained_before_the_upper_bound_goes_down() {
    let mut world = busy(5);
    resize(&mut world, 2, 3);
    world.run();
    let group = world.scaling_group.as_ref().unwrap();
    assert_eq!(
        (group.min_size, group.max_size, group.desired_capacity),
        (2, 3, 3),
        "{}",
        world.transcript
    );
    assert_eq!((group.instances.len(), world.state().as_str()), (3, "Ready"));
    assert_eq!(world.transcript.matches("evict shop/web").count(), 2);
    let order: Vec<&str> = world
        .aws_actions
        .iter()
        .map(|action| action.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        order,
        ["update", "terminate", "terminate", "update"],
        "{:?}",
        world.aws_actions
    );
    assert!(world.aws_actions[1].ends_with("for good"));
    assert!(world.nodes.values().all(|node| node.record.is_none()));
}

#[test]
fn an_upper_bound_that_comes_back_lets_nodes_go_again() {
    let mut world = busy(4);
    resize(&mut world, 2, 3);
    world.pass();
    world.pass();
    assert_eq!(
        world.nodes.values().filter(|node| node.cordoned).count(),
        1,
        "{}",
        world.transcript
    );
    resize(&mut world, 2, 6);
    world.run();
    assert_eq!(world.scaling_group.as_ref().unwrap().instances.len(), 4);
    assert!(world.nodes.values().all(|node| node.record.is_none() && !node.cordoned));
}

/// Whoever has grown the group since the last poll must not lose nodes to an older size.
#[test]
fn sizes_are_written_on_a_fresh_read_only_and_at_rest_none_is_made() {
    let mut world = busy(4);
    let asks = |world: &World| resizes(&world.group, world.scaling_group.as_ref().unwrap());
    assert!(!asks(&world), "at rest");
    for (min, max) in [(4, 5), (3, 6), (4, 7)] {
        resize(&mut world, min, max);
        assert!(asks(&world), "{min} to {max}");
    }
    resize(&mut world, 4, 6);
    world.scaling_group.as_mut().unwrap().desired_capacity = 7;
    assert!(asks(&world), "above the bound");
    world.scaling_group.as_mut().unwrap().desired_capacity = 4;
    world.group.spec.eks.as_mut().unwrap().configuration.image = None;
    resize(&mut world, 1, 2);
    assert!(
        !asks(&world),
        "nothing is written for a manifest that is not understood"
    );
}

fn delete(world: &mut World) {
    world.group.metadata.deletion_timestamp = Some(Time(world.now));
}

fn gone(world: &World) -> bool {
    world.group.metadata.finalizers == Some(Vec::new()) && world.scaling_group.is_none() && world.template.is_none()
}

#[test]
fn a_deleted_group_is_drained_first() {
    let mut world = busy(3);
    delete(&mut world);
    world.settle();
    assert!(gone(&world), "{}", world.transcript);
    let evictions = world.transcript.matches("evict shop/web").count();
    let deletion = world.transcript.find("do    delete group").unwrap();
    let last = world.transcript.rfind("evict shop/web").unwrap();
    assert!(evictions == 3 && last < deletion, "{}", world.transcript);
}

#[test]
fn a_deletion_waits_no_longer_than_a_drain_may_take_and_not_at_all_where_nobody_wants_it() {
    let stuck = |world: &mut World| {
        for pods in world.pods.values_mut() {
            pods[0].ends_at = Some(world.now);
        }
    };
    let mut world = busy(3);
    stuck(&mut world);
    delete(&mut world);
    world.settle();
    assert!(world.scaling_group.is_some());
    let message = world.group.status.as_ref().unwrap().message.clone().unwrap();
    assert!(
        message.contains("drains 3 nodes") && message.contains("should have ended"),
        "{message}"
    );
    world.wait(SignedDuration::from_mins(15));
    world.settle();
    assert!(gone(&world), "{}", world.transcript);

    let mut world = busy(3);
    stuck(&mut world);
    world.group.spec.strategy = Some(UpgradeStrategy {
        rolling_update: Some(RollingUpdate {
            drain_on_delete: Some(false),
            ..RollingUpdate::default()
        }),
        ..UpgradeStrategy::default()
    });
    delete(&mut world);
    world.settle();
    assert!(gone(&world) && !world.transcript.contains("cordon"));
}
