//! Nodes that go for good: a lowered upper bound, and a deleted group.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::instance_group::{RollingUpdate, UpgradeStrategy};
use crate::plan::facts::workload::{Budget, Pod, PodId, PodKind};
use crate::plan::group::resizes;
use crate::plan::step::Action;
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

/// Nothing goes without having been drained by us.
fn nothing_unasked(world: &World) {
    assert!(!world.transcript.contains("unasked"), "{}", world.transcript);
}

/// How many nodes may be unavailable at a time.
fn allow(world: &mut World, max_unavailable: i32) {
    world.group.spec.strategy = Some(UpgradeStrategy {
        rolling_update: Some(RollingUpdate {
            max_unavailable: Some(IntOrString::Int(max_unavailable)),
            ..RollingUpdate::default()
        }),
        ..UpgradeStrategy::default()
    });
}

fn cordoned(world: &World) -> usize {
    world.nodes.values().filter(|node| node.cordoned).count()
}

fn bounds(world: &World) -> (i32, i32) {
    let group = world.scaling_group.as_ref().unwrap();
    (group.max_size, group.desired_capacity)
}

fn message(world: &World) -> String {
    world.group.status.as_ref().unwrap().message.clone().unwrap()
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
    // The bound follows the size, so that an autoscaler cannot make the group grow again.
    let order: Vec<&str> = world
        .aws_actions
        .iter()
        .map(|action| action.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        order,
        ["update", "terminate", "update", "terminate", "update"],
        "{:?}",
        world.aws_actions
    );
    nothing_unasked(&world);
    assert!(world.aws_actions[1].ends_with("for good"));
    assert!(world.nodes.values().all(|node| node.record.is_none()));
}

/// Promise P3 holds for a scale-in as well.
#[test]
fn a_surplus_goes_within_the_budget_and_one_at_a_time() {
    for budget in [1, 2, 5] {
        let mut world = busy(6);
        allow(&mut world, budget);
        resize(&mut world, 2, 3);
        let mut most = 0;
        for _ in 0..60 {
            let plan = world.pass();
            let terminations = plan
                .actions
                .iter()
                .filter(|action| matches!(action, Action::Terminate { .. }));
            assert!(terminations.count() <= 1, "{plan}");
            most = most.max(cordoned(&world));
            world.now += SignedDuration::from_secs(2);
        }
        assert_eq!(
            (most, bounds(&world)),
            (usize::try_from(budget.min(3)).unwrap(), (3, 3))
        );
        nothing_unasked(&world);
    }
    // Others that are down leave no room; being surplus, they go first.
    let mut world = busy(5);
    let down: Vec<String> = world.nodes.keys().take(2).cloned().collect();
    for id in &down {
        world.nodes.get_mut(id).unwrap().ready = false;
    }
    resize(&mut world, 2, 4);
    world.settle();
    assert_eq!((cordoned(&world), bounds(&world)), (0, (5, 5)));
    assert!(
        message(&world).contains("maxUnavailable allows 1"),
        "{}",
        message(&world)
    );
    world.nodes.get_mut(&down[0]).unwrap().ready = true;
    world.settle();
    assert!(
        !world.nodes.contains_key(&down[1]) && bounds(&world) == (4, 4),
        "{}",
        world.transcript
    );
}

#[test]
fn a_bound_that_costs_no_instance_goes_down_at_once() {
    for (there, max, first) in [(3, 3, (3, 3)), (2, 3, (3, 3)), (4, 3, (4, 4))] {
        let mut world = busy(4);
        let group = world.scaling_group.as_mut().unwrap();
        // No capacity for the rest.
        group.instances.truncate(there);
        group.desired_capacity = 6;
        resize(&mut world, 1, max);
        let plan = world.plan();
        let [Action::UpdateGroup { change, .. }] = &plan.actions[..] else {
            panic!("{plan}")
        };
        assert_eq!(change.sizes, Some((1, first.0)), "{there} of {max}");
        world.run();
        assert_eq!(bounds(&world), (3, 3));
        nothing_unasked(&world);
    }
}

/// A successor that is about to come would be one too many, and AWS would take any node.
#[test]
fn a_gap_that_is_about_to_be_filled_lowers_no_bound() {
    let lowered = |world: &World| match &world.plan().actions[..] {
        [Action::UpdateGroup { change, .. }] => change.sizes.map(|(_, max)| max),
        _ => None,
    };
    let mut world = busy(4);
    let group = world.scaling_group.as_mut().unwrap();
    "Terminating".clone_into(&mut group.instances[0].lifecycle_state);
    resize(&mut world, 1, 3);
    assert_eq!(lowered(&world), Some(4));
    let mut world = busy(4);
    world.pods.clear();
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.settle();
    let group = world.scaling_group.as_mut().unwrap();
    group.instances.pop();
    resize(&mut world, 1, 3);
    assert_eq!(lowered(&world), Some(4), "{}", world.transcript);
    world.run();
    assert_eq!((bounds(&world), world.running_images().len()), ((3, 3), 3));
    nothing_unasked(&world);
}

#[test]
fn a_surplus_node_that_a_budget_holds_is_not_cordoned() {
    let mut world = busy(4);
    for pods in world.pods.values_mut() {
        pods[0].budgets = vec![Budget {
            name: "web".to_owned(),
            disruptions_allowed: 0,
            never: true,
        }];
    }
    resize(&mut world, 2, 3);
    world.settle();
    assert_eq!((cordoned(&world), bounds(&world)), (0, (4, 4)));
    assert!(
        message(&world).contains("shop/web never lets pod"),
        "{}",
        message(&world)
    );
    world.pods.clear();
    world.run();
    assert_eq!(bounds(&world), (3, 3));
}

#[test]
fn a_surplus_node_whose_drain_was_given_up_rests() {
    let mut world = busy(1);
    let id = world.nodes.keys().next().unwrap().clone();
    world.pods.get_mut(&id).unwrap()[0].ends_at = Some(world.now);
    resize(&mut world, 0, 0);
    world.settle();
    assert_eq!(cordoned(&world), 1);
    world.wait(SignedDuration::from_mins(15));
    world.settle();
    assert_eq!(cordoned(&world), 0, "{}", world.transcript);
    assert!(message(&world).contains("is tried again at"), "{}", message(&world));
    // Nor is it begun again with that pod on it.
    world.wait(SignedDuration::from_mins(6));
    world.settle();
    assert_eq!(cordoned(&world), 0);
    assert!(message(&world).contains("should have ended"), "{}", message(&world));
    world.now -= SignedDuration::from_mins(6);
    world.pods.clear();
    world.settle();
    assert_eq!(cordoned(&world), 0, "not before its rest");
    world.wait(SignedDuration::from_mins(5));
    world.settle();
    assert_eq!((world.nodes.len(), bounds(&world)), (0, (0, 0)));
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
