//! Rollouts of a whole group: halt, cancel, lock and hold in the middle, slots, and what outlives a restart.

use jiff::SignedDuration;

use crate::api::instance_group::{BlockReason, HistoryResult, RollingUpdate, UpgradeStrategy};
use crate::api::upgrade_request::Phase;
use crate::api::{ConditionType, InstanceGroupStatus, NodeState, annotation};
use crate::plan::facts::FailedActivity;
use crate::plan::facts::workload::{Budget, Pod, PodId, PodKind};
use crate::plan::rollout::Hold;
use crate::plan::step::{Action, Wake};
use crate::plan::test_world::World;

/// A group with a new image, approved if it is locked.
fn started(locked: bool) -> World {
    let mut world = World::at_rest(locked);
    world.publish("ami-0b");
    world.settle();
    if locked {
        world.approve();
        world.settle();
    }
    world
}

fn status(world: &World) -> &InstanceGroupStatus {
    world.group.status.as_ref().unwrap()
}

fn count(world: &World, image: &str) -> usize {
    world.running_images().iter().filter(|other| *other == image).count()
}

fn lock(world: &mut World, value: &str) {
    let annotations = world.group.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation::LOCK_UPGRADES.to_owned(), value.to_owned());
}

fn untouched(world: &World) {
    for node in world.nodes.values() {
        assert!(node.record.is_none() && !node.cordoned && !node.avoided, "{node:?}");
    }
    let group = world.scaling_group.as_ref().unwrap();
    assert!(group.suspended_processes.is_empty(), "{:?}", group.suspended_processes);
    assert_eq!(status(world).rollout, None);
}

/// Promise P4 and case D34.
#[test]
fn a_bad_image_stops_after_one_node_locked_or_not() {
    for locked in [true, false] {
        let mut world = World::at_rest(locked);
        world.group.spec.strategy = Some(UpgradeStrategy {
            rolling_update: Some(RollingUpdate {
                max_unavailable: Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(3)),
                ..RollingUpdate::default()
            }),
            ..UpgradeStrategy::default()
        });
        world.bad_images.insert("ami-0b".to_owned());
        world.publish("ami-0b");
        world.settle();
        if locked {
            world.approve();
        }
        world.run();
        assert_eq!(
            (count(&world, "ami-0a"), count(&world, "ami-0b")),
            (2, 1),
            "the first goes alone"
        );
        world.wait(SignedDuration::from_mins(15));
        world.run();
        assert_eq!(count(&world, "ami-0a"), 3, "{}", world.transcript);
        untouched(&world);
        let blocked = &status(&world).blocked_targets;
        assert_eq!((blocked.len(), blocked[0].reason), (1, BlockReason::Failed));
        assert_eq!(status(&world).history[0].result, HistoryResult::Failed);
        assert_eq!(world.condition(ConditionType::UpgradeBlocked).as_deref(), Some("True"));
        let message = status(&world).message.clone().unwrap();
        assert!(
            message.contains("its upgrade failed, status.history says why; to ask again"),
            "{message}"
        );
        assert_eq!(blocked[0].by.as_deref(), Some("sluice"));
        if locked {
            let failure = world.request(Phase::Failed).status.clone().unwrap().failure.unwrap();
            assert_eq!(failure.reason, "NodeNeverReady");
            assert!(failure.instance_id.is_some() && failure.message.unwrap().contains("was not Ready within 15m"));
        } else {
            assert!(world.requests.is_empty());
        }
        // No loop: the same target does not start again.
        world.aws_actions.clear();
        world.wait(SignedDuration::from_hours(5));
        world.run();
        assert_eq!(world.aws_actions, Vec::<String>::new());
    }
}

#[test]
fn no_capacity_for_the_new_image_ends_with_the_words_of_auto_scaling() {
    let mut world = started(true);
    world.scaling_group.as_mut().unwrap().instances.pop();
    world.failed_activity = Some(FailedActivity {
        at: world.now,
        message: "no m5.large in zone-a".to_owned(),
    });
    world.settle();
    assert!(
        status(&world)
            .message
            .clone()
            .unwrap()
            .contains("no m5.large in zone-a")
    );
    world.wait(SignedDuration::from_mins(15));
    world.settle();
    let failure = world.request(Phase::Failed).status.clone().unwrap().failure.unwrap();
    assert_eq!(failure.reason, "LaunchFailed");
    assert!(failure.message.unwrap().contains("no m5.large in zone-a"));
    untouched(&world);
}

/// Gate rule L8 and case D9: locked in the middle of a rollout that needed no approval.
#[test]
fn a_lock_in_the_middle_stops_at_the_batch_edge_and_asks_for_the_rest() {
    let mut world = started(false);
    world.boot();
    world.settle();
    lock(&mut world, "true");
    world.run();
    assert_eq!((count(&world, "ami-0b"), world.phases()), (1, vec![Phase::Pending]));
    untouched(&world);
    assert!(
        status(&world).blocked_targets.is_empty(),
        "a lock is no verdict on the target"
    );
    world.approve();
    world.run();
    assert_eq!(count(&world, "ami-0b"), 3);
}

#[test]
fn on_and_off_again_within_a_batch_changes_nothing() {
    let mut world = World::at_rest(false);
    let first = world.nodes.keys().next().cloned().unwrap();
    world.pods.insert(first.clone(), vec![pod("web-1")]);
    world.pods.get_mut(&first).unwrap()[0].ends_at = Some(world.now);
    world.publish("ami-0b");
    world.settle();
    assert!(world.nodes[&first].cordoned, "one is in hand: {}", world.transcript);
    for value in ["true", "false", "true", "false"] {
        lock(&mut world, value);
        world.settle();
        let message = status(&world).message.clone().unwrap();
        assert_eq!(message.contains("asked to stop"), value == "true", "{message}");
        assert!(world.requests.is_empty());
    }
    world.pods.clear();
    world.run();
    assert!(world.requests.is_empty() && count(&world, "ami-0b") == 3);
}

#[test]
fn an_unlock_in_the_middle_lets_the_approved_rollout_finish() {
    let mut world = started(true);
    lock(&mut world, "false");
    world.run();
    assert_eq!((count(&world, "ami-0b"), world.phases()), (3, vec![Phase::Succeeded]));
    untouched(&world);
}

/// A window that is closed for good.
fn closed() -> Hold {
    Hold::Window {
        why: String::new(),
        opens: None,
        shown: None,
    }
}

/// Cases D10 and D11.
#[test]
fn held_nothing_is_claimed_and_no_further_node_is_taken() {
    for hold in [
        Hold::Freeze {
            reason: "sale".to_owned(),
            until: None,
        },
        closed(),
    ] {
        for locked in [true, false] {
            let mut world = World::at_rest(locked);
            world.hold = Some(hold.clone());
            world.publish("ami-0b");
            world.settle();
            if locked {
                world.approve();
            }
            world.run();
            assert_eq!(world.aws_actions, Vec::<String>::new(), "{hold:?}");
            assert!(locked == (world.phases() == [Phase::Approved]));
            assert_eq!(world.condition(ConditionType::UpgradePending).as_deref(), Some("True"));
            world.hold = None;
            world.settle();
            world.hold = Some(hold.clone());
            world.run();
            assert_eq!(
                count(&world, "ami-0b"),
                1,
                "the node in hand is finished: {}",
                world.transcript
            );
            assert!(
                status(&world)
                    .message
                    .clone()
                    .unwrap()
                    .contains("no further node is taken")
            );
            world.hold = None;
            world.run();
            assert_eq!(count(&world, "ami-0b"), 3, "it goes on where it was");
        }
    }
}

#[test]
fn a_cancel_right_after_the_claim_touches_nothing_at_aws() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.settle();
    world.approve();
    while world.phases() != [Phase::InProgress] {
        world.pass();
    }
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
    world.run();
    assert_eq!(
        (world.phases(), world.aws_actions.len()),
        (vec![Phase::Cancelled], 0),
        "{:?}",
        world.aws_actions
    );
    untouched(&world);
}

#[test]
fn a_cancel_works_while_held() {
    let mut world = started(true);
    world.hold = Some(closed());
    world.settle();
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
    world.run();
    assert_eq!(world.phases(), [Phase::Cancelled]);
    untouched(&world);
}

/// Gate rule L11: the node in hand finishes, at the latest when its drain is given up, and meanwhile the group says so.
#[test]
fn a_cancel_waits_for_the_node_in_hand_and_says_so() {
    let mut world = World::at_rest(true);
    let first = world.nodes.keys().next().cloned().unwrap();
    let stuck = Pod {
        ends_at: Some(world.now),
        ..pod("web-1")
    };
    world.pods.insert(first.clone(), vec![stuck]);
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.settle();
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
    world.settle();
    assert!(world.nodes[&first].cordoned);
    let message = status(&world).message.clone().unwrap();
    assert!(
        message.contains("1 in hand; asked to stop") && message.contains("should have ended"),
        "{message}"
    );
    world.wait(SignedDuration::from_mins(15));
    world.run();
    assert_eq!((world.phases(), count(&world, "ami-0a")), (vec![Phase::Cancelled], 3));
    untouched(&world);
}

#[test]
fn an_urgent_request_passes_a_window_and_no_freeze() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.settle();
    world.decide(Phase::Pending, |request| request.spec.urgent = true);
    world.approve();
    world.hold = Some(Hold::Freeze {
        reason: String::new(),
        until: Some(world.now + SignedDuration::from_hours(2)),
    });
    world.settle();
    let waits = world
        .request(Phase::Approved)
        .status
        .clone()
        .unwrap()
        .waits_for
        .unwrap();
    assert_eq!((waits.reason.as_str(), waits.until.is_some()), ("Frozen", true));
    assert!(matches!(world.plan().wake, Wake::At(_)));
    world.hold = Some(closed());
    world.run();
    assert_eq!(world.phases(), [Phase::Succeeded]);
}

/// Rule R8.
#[test]
fn no_slot_no_start() {
    for locked in [true, false] {
        let mut world = World::at_rest(locked);
        world.slots.taken = 10;
        world.publish("ami-0b");
        world.settle();
        if locked {
            world.approve();
        }
        world.run();
        assert_eq!(world.aws_actions, Vec::<String>::new());
        assert!(
            status(&world)
                .message
                .clone()
                .unwrap()
                .contains("10 of 10 rollouts run")
        );
        world.slots.taken = 9;
        let plan = world.plan();
        assert_eq!(plan.actions, [Action::TakeSlot], "before anything else");
        world.run();
        assert_eq!(
            (count(&world, "ami-0b"), world.slots.held, world.slots.taken),
            (3, false, 9)
        );
    }
}

fn pod(name: &str) -> Pod {
    Pod {
        id: PodId {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
        },
        kind: PodKind::Owned,
        ready: true,
        ends_at: None,
        grace_seconds: 30,
        budgets: Vec::new(),
        answer: None,
    }
}

#[test]
fn a_budget_that_can_never_be_met_blocks_at_once_and_is_named() {
    let mut world = World::at_rest(true);
    let ids: Vec<String> = world.nodes.keys().cloned().collect();
    for id in &ids {
        let mut pod = pod(&format!("web-{id}"));
        pod.budgets = vec![Budget {
            name: "web".to_owned(),
            disruptions_allowed: 0,
            never: true,
        }];
        world.pods.insert(id.clone(), vec![pod]);
    }
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.settle();
    assert_eq!(world.condition(ConditionType::Blocked).as_deref(), Some("True"));
    let request = world.request(Phase::InProgress).status.clone().unwrap();
    assert_eq!(request.waits_for.unwrap().reason, "PodDisruptionBudget");
    assert!(request.message.unwrap().contains("shop/web never lets pod"));
    assert!(
        world.nodes.values().all(|node| !node.cordoned),
        "no node is cordoned for nothing"
    );
    assert_eq!(
        world.transcript.matches("event RolloutBlocked").count(),
        1,
        "{}",
        world.transcript
    );
    world.pods.clear();
    world.run();
    assert_eq!(world.phases(), [Phase::Succeeded]);
    assert_eq!(world.condition(ConditionType::Blocked), None);
}

#[test]
fn a_pod_that_should_have_ended_long_ago_blocks_and_is_named() {
    let mut world = World::at_rest(true);
    for id in world.nodes.keys() {
        let stuck = Pod {
            ends_at: Some(world.now - SignedDuration::from_mins(1)),
            ..pod(&format!("web-{id}"))
        };
        world.pods.insert(id.clone(), vec![stuck]);
    }
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.run();
    assert_eq!(world.condition(ConditionType::Blocked).as_deref(), Some("True"));
    assert!(status(&world).message.clone().unwrap().contains("should have ended"));
    assert!(world.nodes.values().all(|node| !node.cordoned));
    world.pods.clear();
    world.run();
    assert_eq!(world.phases(), [Phase::Succeeded]);
}

/// Case D22: what a rollout knows is on nodes, on the group and at AWS.
#[test]
fn a_restart_resumes_the_same_nodes() {
    let mut world = World::at_rest(true);
    let first = world.nodes.keys().next().cloned().unwrap();
    world.pods.insert(first.clone(), vec![pod("web-1")]);
    world.publish("ami-0b");
    world.settle();
    world.approve();
    while world.nodes[&first].record.is_none() {
        world.pass();
    }
    assert_eq!(world.nodes[&first].record.as_ref().unwrap().state, NodeState::Draining);
    // A status that lost the rollout's record is rebuilt from the request.
    world.group.status.as_mut().unwrap().rollout = None;
    world.settle();
    assert!(
        !world.nodes.contains_key(&first),
        "the same node went: {}",
        world.transcript
    );
    assert_eq!(
        world.transcript.matches("cordon and drain").count(),
        1,
        "{}",
        world.transcript
    );
    world.run();
    assert_eq!(world.phases(), [Phase::Succeeded]);
}

#[test]
fn rebalancing_is_suspended_for_the_rollout_and_left_alone_where_a_person_suspended_it() {
    let mut world = started(true);
    let suspended = |world: &World| world.scaling_group.as_ref().unwrap().suspended_processes.len();
    assert_eq!(suspended(&world), 1);
    world.run();
    untouched(&world);
    let mut world = World::at_rest(true);
    let group = world.scaling_group.as_mut().unwrap();
    group.suspended_processes.insert("AZRebalance".to_owned());
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.run();
    assert_eq!((world.phases(), suspended(&world)), (vec![Phase::Succeeded], 1));
    assert!(!world.aws_actions.iter().any(|action| action.contains("AZRebalance")));
}

/// Rule R6: what is suspended at AWS reaches the rollout.
#[test]
fn a_group_that_launches_nothing_is_blocked_before_a_node_is_cordoned() {
    for process in ["Launch", "Terminate"] {
        let mut world = World::at_rest(true);
        let group = world.scaling_group.as_mut().unwrap();
        group.suspended_processes.insert(process.to_owned());
        world.publish("ami-0b");
        world.settle();
        world.approve();
        world.settle();
        assert_eq!(world.condition(ConditionType::Blocked).as_deref(), Some("True"));
        let waits = world.request(Phase::InProgress).status.clone().unwrap().waits_for;
        assert_eq!(waits.unwrap().reason, "LaunchSuspended");
        assert!(world.nodes.values().all(|node| !node.cordoned));
        let group = world.scaling_group.as_mut().unwrap();
        group.suspended_processes.clear();
        world.run();
        assert_eq!(world.phases(), [Phase::Succeeded]);
    }
}

#[test]
fn a_request_that_vanishes_with_its_finalizer_is_a_cancel() {
    let mut world = started(true);
    world.boot();
    world.settle();
    world.requests.clear();
    world.run();
    assert_eq!(status(&world).blocked_targets[0].reason, BlockReason::Cancelled);
    untouched(&world);
    assert_eq!(
        world
            .aws_actions
            .iter()
            .filter(|action| action.contains("pin lt-1/1"))
            .count(),
        1
    );
    assert!(world.requests.is_empty(), "its target is blocked");
}

#[test]
fn a_budget_that_makes_no_sense_is_bent_and_told() {
    let mut world = World::at_rest(true);
    world.group.spec.strategy = Some(UpgradeStrategy {
        rolling_update: Some(RollingUpdate {
            max_unavailable: Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(0)),
            ..RollingUpdate::default()
        }),
        ..UpgradeStrategy::default()
    });
    world.publish("ami-0b");
    world.settle();
    world.approve();
    world.run();
    assert_eq!(world.phases(), [Phase::Succeeded]);
    assert_eq!(
        world.transcript.matches("event StrategyAdjusted").count(),
        1,
        "{}",
        world.transcript
    );
}
