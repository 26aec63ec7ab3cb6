//! Subnets that a group leaves: what goes first, what stands in the way, and how they come back.

use jiff::SignedDuration;

use crate::api::instance_group::BlockReason;
use crate::api::upgrade_request::Phase;
use crate::api::{ConditionType, annotation, label};
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
        nothing_unasked(&world);
    }
}

/// A rollout that is stopped gives the subnets back before Auto Scaling may move instances again.
#[test]
fn a_removal_that_is_stopped_gives_the_subnet_back_first() {
    type Stop = fn(&mut World);
    let stops: [(&str, bool, Stop); 4] = [
        ("cancelled", true, |world| {
            world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
        }),
        ("vanished", true, |world| world.requests.clear()),
        ("locked", false, |world| {
            let annotations = world.group.metadata.annotations.as_mut().unwrap();
            annotations.insert(annotation::LOCK_UPGRADES.to_owned(), "true".to_owned());
        }),
        ("failed", true, |world| {
            world.bad_images.insert("ami-0b".to_owned());
        }),
    ];
    for (what, locked, stop) in stops {
        let mut world = World::at_rest(locked);
        world.publish("ami-0b");
        leave(&mut world, &["subnet-a", "subnet-b"]);
        world.settle();
        if locked {
            world.approve();
        }
        world.settle();
        let gone = world.aws_actions.iter().any(|action| action.starts_with("terminate"));
        assert!(gone && has(&world) == ["subnet-a", "subnet-b"], "{}", world.transcript);
        stop(&mut world);
        if what == "failed" {
            world.run();
            world.wait(SignedDuration::from_mins(15));
        }
        world.aws_actions.clear();
        world.run();
        nothing_unasked(&world);
        assert_eq!(
            has(&world),
            ["subnet-a", "subnet-b", "subnet-c"],
            "{what}: {}",
            world.transcript
        );
        let place = |words: &str| world.aws_actions.iter().position(|action| action.contains(words));
        let (back, resume) = (place("subnet-c"), place("resume AZRebalance"));
        assert!(back.is_some() && back < resume, "{what}: {:?}", world.aws_actions);
        let status = world.group.status.as_ref().unwrap();
        assert_eq!(
            (status.blocked_targets.len(), status.rollout.is_none()),
            (usize::from(what != "locked"), true),
            "{what}"
        );
    }
}

#[test]
fn a_subnet_that_is_gone_for_good_is_not_given_back() {
    let (mut world, _) = in_hand();
    world.look_ups.subnets.insert("subnet-c".to_owned(), Fact::NotFound);
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
    world.wait(SignedDuration::from_mins(15));
    world.run();
    assert_eq!(
        (world.phases(), has(&world)),
        (vec![Phase::Cancelled], vec!["subnet-a", "subnet-b"])
    );
}

/// An image that failed while a subnet was to leave is no better without that.
#[test]
fn what_failed_together_with_a_removal_is_blocked_without_it_too() {
    for locked in [true, false] {
        let mut world = World::at_rest(locked);
        world.bad_images.insert("ami-0b".to_owned());
        world.publish("ami-0b");
        leave(&mut world, &["subnet-a", "subnet-b"]);
        world.settle();
        if locked {
            world.approve();
        }
        world.run();
        world.wait(SignedDuration::from_mins(15));
        world.run();
        let blocked = world.group.status.as_ref().unwrap().blocked_targets.clone();
        assert_eq!(
            (blocked.len(), blocked[0].reason),
            (1, BlockReason::Failed),
            "{}",
            world.transcript
        );
        let before = world.requests.len();
        for subnets in [&["subnet-a", "subnet-b", "subnet-c"][..], &["subnet-a"]] {
            leave(&mut world, subnets);
            world.aws_actions.clear();
            world.run();
            assert_eq!(
                (&world.aws_actions, world.requests.len()),
                (&Vec::new(), before),
                "{}",
                world.transcript
            );
            let message = world.group.status.as_ref().unwrap().message.clone().unwrap();
            assert!(message.contains(&format!("={}", blocked[0].fingerprint)), "{message}");
        }
        // The removal alone is another matter: what runs has shown that it works.
        world.publish("ami-0a");
        world.run();
        if locked {
            world.approve();
            world.run();
        }
        assert_eq!(has(&world), ["subnet-a"], "{}", world.transcript);
        // A person who asks again is heard, and only a person approves it.
        world.publish("ami-0b");
        world.bad_images.clear();
        let annotations = world.group.metadata.annotations.as_mut().unwrap();
        annotations.insert(annotation::RETRY_UPGRADE.to_owned(), blocked[0].fingerprint.clone());
        world.run();
        if locked {
            let labels = world.request(Phase::Pending).metadata.labels.clone().unwrap();
            assert_eq!(labels.get(label::ASKED_AGAIN).map(String::as_str), Some("true"));
            world.approve();
            world.run();
        }
        assert_eq!(world.running_images(), ["ami-0b"; 3]);
        assert!(world.group.status.as_ref().unwrap().blocked_targets.is_empty());
    }
}

/// A second subnet that goes from the manifest meanwhile is another request's matter.
#[test]
fn another_subnet_removed_in_the_middle_waits_for_its_own_turn() {
    let (mut world, id) = in_hand();
    let in_b = in_zone(&world, "zone-b");
    leave(&mut world, &["subnet-a"]);
    // While its zone cannot be seen, nothing is concluded.
    let known = world
        .look_ups
        .subnets
        .insert("subnet-b".to_owned(), Fact::Unknown(failure(FailureClass::Throttled)));
    world.pods.clear();
    world.run();
    assert_eq!(world.phases(), [Phase::InProgress], "{}", world.transcript);
    world.look_ups.subnets.insert("subnet-b".to_owned(), known.unwrap());
    world.run();
    assert!(
        !world.nodes.contains_key(&id) && in_b.iter().all(|id| world.nodes.contains_key(id)),
        "{}",
        world.transcript
    );
    assert_eq!(
        world.phases(),
        [Phase::Succeeded, Phase::Pending],
        "{}",
        world.transcript
    );
    assert_eq!(world.request(Phase::Pending).spec.target.removed_subnets, ["subnet-b"]);
    let terminated = |world: &World| world.transcript.matches("do    terminate").count();
    assert_eq!((has(&world), terminated(&world)), (vec!["subnet-a", "subnet-b"], 1));
    world.approve();
    world.run();
    assert_eq!(
        (has(&world), zones(&world)),
        (vec!["subnet-a"], vec!["zone-a"; 3]),
        "{}",
        world.transcript
    );
    nothing_unasked(&world);
}

#[test]
fn a_node_that_was_down_before_a_removal_does_not_halt_it() {
    let mut world = leaving(true);
    let id = in_zone(&world, "zone-a")[0].clone();
    world.nodes.get_mut(&id).unwrap().ready = false;
    world.settle();
    world.wait(SignedDuration::from_mins(16));
    world.settle();
    assert_eq!(world.phases(), [Phase::InProgress], "{}", world.transcript);
    world.run();
    assert!(
        world.phases() == [Phase::Succeeded] && world.nodes.contains_key(&id),
        "{}",
        world.transcript
    );
}
