//! Subnets that a group leaves: what goes first, what stands in the way, and how they come back.

use jiff::SignedDuration;

use crate::api::ConditionType;
use crate::api::upgrade_request::Phase;
use crate::plan::facts::workload::{Pod, PodId, PodKind};
use crate::plan::facts::{Fact, FailureClass};
use crate::plan::test_world::{World, failure};

/// Takes a subnet out of the manifest, or puts it back.
fn leave(world: &mut World, subnets: &[&str]) {
    let configuration = &mut world.group.spec.eks.as_mut().unwrap().configuration;
    configuration.subnets = subnets.iter().map(|&subnet| subnet.to_owned()).collect();
}

/// The subnets that the Auto Scaling group has.
fn has(world: &World) -> Vec<&str> {
    let group = world.scaling_group.as_ref().unwrap();
    group.subnets.iter().map(String::as_str).collect()
}

/// Zones in which instances run, one word for each.
fn zones(world: &World) -> Vec<&str> {
    let group = world.scaling_group.as_ref().unwrap();
    let mut zones: Vec<&str> = group.instances.iter().map(|one| one.zone.as_str()).collect();
    zones.sort_unstable();
    zones
}

/// A group that leaves `subnet-c`, approved if it is locked.
fn leaving(locked: bool) -> World {
    let mut world = World::at_rest(locked);
    leave(&mut world, &["subnet-a", "subnet-b"]);
    if locked {
        world.settle();
        world.approve();
    }
    world
}

/// Nothing goes without having been drained by us.
fn nothing_unasked(world: &World) {
    assert!(!world.transcript.contains("unasked"), "{}", world.transcript);
}

#[test]
fn a_subnet_leaves_only_once_auto_scaling_moves_nothing_by_itself() {
    for locked in [true, false] {
        let mut world = leaving(locked);
        let mut left = false;
        for _ in 0..30 {
            world.pass();
            let group = world.scaling_group.as_ref().unwrap();
            left |= !group.subnets.contains("subnet-c");
            let rollout = world.group.status.as_ref().unwrap().rollout.as_ref();
            let ours = rollout.is_some_and(|record| record.suspended_processes == ["AZRebalance"]);
            let suspended = group.suspended_processes.contains("AZRebalance");
            assert!(ours || !suspended, "recorded before: {}", world.transcript);
        }
        assert!(left, "{}", world.transcript);
        world.run();
        nothing_unasked(&world);
        assert_eq!(
            (has(&world), zones(&world).contains(&"zone-c")),
            (vec!["subnet-a", "subnet-b"], false)
        );
        assert!(world.scaling_group.as_ref().unwrap().suspended_processes.is_empty());
        assert!(!locked || world.phases() == [Phase::Succeeded]);
        assert_eq!(
            world
                .aws_actions
                .iter()
                .filter(|action| action.starts_with("terminate"))
                .count(),
            1
        );
    }
}

/// The group leaves a zone, and its node there is in hand.
fn in_hand() -> (World, String) {
    let mut world = leaving(true);
    let id = in_zone(&world, "zone-c")[0].clone();
    world.pods.insert(id.clone(), vec![ending(&world)]);
    world.settle();
    assert!(world.nodes[&id].cordoned, "{}", world.transcript);
    (world, id)
}

fn in_zone(world: &World, zone: &str) -> Vec<String> {
    let group = world.scaling_group.as_ref().unwrap();
    let there = group.instances.iter().filter(|one| one.zone == zone);
    there.map(|one| one.id.clone()).collect()
}

/// A pod that is on its way out.
fn ending(world: &World) -> Pod {
    Pod {
        id: PodId {
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
            uid: "uid-1".to_owned(),
        },
        kind: PodKind::Owned,
        ready: true,
        ends_at: Some(world.now),
        grace_seconds: 30,
        budgets: Vec::new(),
        answer: None,
    }
}

/// What cannot be seen is no success: a removal does not end while it is not known which zones are left.
#[test]
fn a_removal_does_not_end_while_the_ground_cannot_be_seen() {
    for gone in [true, false] {
        let (mut world, id) = in_hand();
        let answer = if gone {
            Fact::NotFound
        } else {
            Fact::Unknown(failure(FailureClass::Throttled))
        };
        world.look_ups.profile = answer;
        world.run();
        assert_eq!(world.phases(), [Phase::InProgress], "{}", world.transcript);
        assert!(world.nodes.contains_key(&id));
        assert!(world.group.status.as_ref().unwrap().history.len() == 1);
        let shown = [ConditionType::AwsUnavailable, ConditionType::TargetUnusable];
        assert_eq!(world.condition(shown[usize::from(gone)]).as_deref(), Some("True"));
        // The node in hand is not forgotten meanwhile, nor is its drain's time.
        world.wait(SignedDuration::from_mins(15));
        world.run();
        assert!(
            !world.nodes[&id].cordoned && world.phases() == [Phase::InProgress],
            "{}",
            world.transcript
        );
        // A cancel needs no ground.
        world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
        world.run();
        assert_eq!(world.phases(), [Phase::Cancelled], "{}", world.transcript);
    }
}
