//! Subnets that a group leaves: what goes first, what stands in the way, and how they come back.

use crate::api::upgrade_request::Phase;
use crate::plan::test_world::World;

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
