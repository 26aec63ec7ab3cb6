//! The edge cases of the gate, one test each, named for what must hold.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::{aws, pending};
use crate::api::upgrade_request::{Phase, UpgradeReason};
use crate::api::{ConditionType, annotation};
use crate::plan::facts::{Fact, FailureClass};
use crate::plan::group::TARGET_REVERTED;
use crate::plan::test_world::{World, failure};

#[test]
fn a_new_target_supersedes_a_pending_request() {
    let mut world = pending();
    let first = world.request(Phase::Pending).metadata.name.clone();
    world.publish("ami-0c");
    world.run();
    let second = world.request(Phase::Pending);
    assert_eq!(second.spec.target.image_id.as_deref(), Some("ami-0c"));
    let name = second.metadata.name.clone();
    assert_eq!(
        world.request(Phase::Superseded).status.as_ref().unwrap().superseded_by,
        name
    );
    assert_eq!(world.request(Phase::Superseded).metadata.name, first);
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

#[test]
fn an_approval_does_not_carry_over_to_a_new_target() {
    let mut world = pending();
    world.approve();
    world.publish("ami-0c");
    world.run();
    assert!(!world.request(Phase::Pending).spec.approved);
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

/// A rollout whose first node is Ready, and whose second is on its way.
fn one_node_done() -> World {
    let mut world = pending();
    world.approve();
    world.settle();
    world.boot();
    world.settle();
    world
}

#[test]
fn a_new_target_during_a_rollout_waits_for_its_end() {
    let mut world = pending();
    world.approve();
    world.settle();
    world.publish("ami-0c");
    world.settle();
    assert_eq!(world.phases(), [Phase::InProgress]);
    let image = world.group.status.as_ref().unwrap().image.clone().unwrap();
    assert_eq!(image.pending.as_deref(), Some("ami-0c"));
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert_eq!(world.phases(), [Phase::Succeeded, Phase::Pending]);
}

#[test]
fn a_target_that_reverts_is_superseded_and_nothing_is_touched() {
    let mut world = pending();
    world.publish("ami-0a");
    world.run();
    let status = world.request(Phase::Superseded).status.clone().unwrap();
    assert!(status.message.unwrap().starts_with("TargetReverted"));
    // Nothing took its place; it counts as a flap (case D21).
    assert_eq!(status.superseded_by.as_deref(), Some(TARGET_REVERTED));
    assert_eq!(world.phases(), [Phase::Superseded]);
    assert_eq!(world.state(), "Ready");
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

#[test]
fn a_denied_target_stays_denied_after_others_came_and_went() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.denied = true);
    world.run();
    assert_eq!(world.phases(), [Phase::Denied]);
    for image in ["ami-0c", "ami-0b"] {
        world.publish(image);
        world.run();
    }
    assert!(
        !world.requests.iter().any(|request| request.phase() == Phase::Pending),
        "{:?}",
        world.phases()
    );
    assert_eq!(world.condition(ConditionType::UpgradeBlocked).as_deref(), Some("True"));
    for _ in 0..100 {
        world.settle();
    }
    assert!(!world.requests.iter().any(|request| request.phase() == Phase::Pending));
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

#[test]
fn a_denial_holds_for_its_target_only() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.denied = true);
    world.run();
    world.publish("ami-0c");
    world.run();
    assert_eq!(
        world.request(Phase::Pending).spec.target.image_id.as_deref(),
        Some("ami-0c")
    );
}

#[test]
fn unlocking_does_not_lift_a_denial() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.denied = true);
    world.run();
    world
        .group
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .remove(annotation::LOCK_UPGRADES);
    world.run();
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    assert!(world.requests.is_empty(), "L8: the denied object goes");
    assert_eq!(world.condition(ConditionType::UpgradeBlocked).as_deref(), Some("True"));
}

#[test]
fn a_waiting_request_that_is_deleted_opens_again() {
    let mut world = pending();
    let name = world.request(Phase::Pending).metadata.name.clone();
    world.delete_request(Phase::Pending);
    world.run();
    assert_eq!(world.request(Phase::Pending).metadata.name, name);
    assert!(world.transcript.contains("spec.denied"), "{}", world.transcript);
}

#[test]
fn deleting_a_denied_request_lifts_its_block() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.denied = true);
    world.run();
    world.wait(SignedDuration::from_secs(5));
    world.delete_request(Phase::Denied);
    world.run();
    assert!(!world.request(Phase::Pending).spec.denied);
    let blocked = &world.group.status.as_ref().unwrap().blocked_targets;
    assert!(blocked.len() == 1 && blocked[0].lifted);
    // Whatever the schedules say: only a person approves it.
    assert!(world.request(Phase::Pending).asks_again());
    world.approve();
    world.run();
    assert!(
        world.group.status.as_ref().unwrap().blocked_targets.is_empty(),
        "it runs: nothing is held against it any more"
    );
}

#[test]
fn the_retry_annotation_lifts_a_block_once() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.denied = true);
    world.run();
    let fingerprint = world.request(Phase::Denied).spec.target.fingerprint.clone();
    world
        .group
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(annotation::RETRY_UPGRADE.to_owned(), fingerprint);
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
    assert_eq!(world.group.annotation(annotation::RETRY_UPGRADE), None);
}

#[test]
fn deleting_a_running_request_is_a_cancel_and_its_block_stays() {
    let mut world = one_node_done();
    world.wait(SignedDuration::from_secs(5));
    world.delete_request(Phase::InProgress);
    world.run();
    assert!(world.requests.is_empty(), "{:?}", world.phases());
    assert_eq!(world.condition(ConditionType::UpgradeBlocked).as_deref(), Some("True"));
    let images = world.running_images();
    assert_eq!(
        images.iter().filter(|image| *image == "ami-0b").count(),
        1,
        "the node that was Ready stays: {images:?}"
    );
    world.scaling_group.as_mut().unwrap().instances.pop();
    world.fill();
    assert_eq!(
        world.running_images()[2],
        "ami-0a",
        "new nodes boot what was approved before"
    );
}

/// Gate rule L11, also where it was cancelled before or fails in the end.
#[test]
fn a_request_deleted_before_its_end_keeps_its_block_and_one_deleted_after_it_loses_it() {
    let cases = [true, false].map(|cancelled| {
        [
            (cancelled, false, false),
            (cancelled, true, false),
            (cancelled, true, true),
        ]
    });
    for (cancelled, after, soon) in cases.concat() {
        let mut world = super::pending();
        world.bad_images.insert("ami-0b".to_owned());
        world.approve();
        world.run();
        if cancelled {
            world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
        } else {
            world.wait(SignedDuration::from_mins(15));
            world.pass();
        }
        if !after {
            world.delete_request(Phase::InProgress);
            // The clock of the API server may be ahead of ours.
            let ahead = Time(world.now + SignedDuration::from_hours(1));
            world.decide(Phase::InProgress, |request| {
                request.metadata.deletion_timestamp = Some(ahead);
            });
        }
        if after {
            let is = if cancelled { Phase::Cancelled } else { Phase::Failed };
            // As soon as it has ended, or later.
            while world.phases() != [is] || !soon && world.group.status.as_ref().unwrap().rollout.is_some() {
                world.pass();
                world.now += SignedDuration::from_secs(1);
            }
            world.delete_request(is);
            // Or behind.
            let behind = Time(world.now - SignedDuration::from_hours(1));
            world.decide(is, |request| request.metadata.deletion_timestamp = Some(behind));
        }
        world.run();
        assert_eq!(
            world.transcript.contains("event UpgradeUnblocked"),
            after,
            "{}",
            world.transcript
        );
        assert!(!world.transcript.contains("vanished"), "{}", world.transcript);
        let blocks = &world.group.status.as_ref().unwrap().blocked_targets;
        assert_eq!(
            (blocks.len(), blocks[0].lifted),
            (1, after),
            "{cancelled}: {}",
            world.transcript
        );
        assert_eq!(world.requests.len(), usize::from(after), "it opens again only then");
    }
}

#[test]
fn a_cancel_pins_back_and_keeps_the_nodes_that_are_done() {
    let mut world = one_node_done();
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
    world.run();
    assert_eq!(world.phases(), [Phase::Cancelled]);
    let image = world.group.status.as_ref().unwrap().image.clone().unwrap();
    assert_eq!(
        (image.current.as_deref(), image.nodes_on_current, image.nodes_on_other),
        (Some("ami-0a"), Some(2), Some(1))
    );
    // First the pin, then the node that never became Ready, so that its successor is the good one.
    let aws = aws(&mut world);
    let at = |text: &str| aws.iter().rposition(|action| action.contains(text)).unwrap();
    assert!(at("pin lt-1/1") < at("terminate"), "{aws:#?}");
    assert_eq!(aws.last().unwrap(), "resume AZRebalance of group demo-team-workers");
    assert!(
        world
            .nodes
            .values()
            .all(|node| node.record.is_none() && !node.cordoned && !node.avoided)
    );
}

#[test]
fn a_cancel_before_the_start_touches_nothing() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.cancelled = true);
    world.run();
    assert_eq!(world.phases(), [Phase::Cancelled]);
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

#[test]
fn a_request_of_an_earlier_group_of_that_name_means_nothing() {
    let mut world = pending();
    world.approve();
    let old = &mut world.requests[0];
    old.spec.instance_group_ref.uid = "older".to_owned();
    // A name is taken once; that the older object is of another target is beside the point here.
    old.metadata.name = Some("workers-older".to_owned());
    let old = old.clone();
    world.run();
    assert_eq!(world.requests.len(), 2, "a request of its own");
    assert_eq!(world.requests[0], old, "the old one is not touched");
    assert!(!world.requests[1].spec.approved);
    assert_eq!(world.phases()[1], Phase::Pending);
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

#[test]
fn a_withdrawal_after_the_approval_was_seen_goes_back_to_pending() {
    let mut world = pending();
    world.approve();
    world.look_ups.cluster = Fact::Unknown(failure(FailureClass::Unavailable));
    world.settle();
    assert_eq!(world.phases(), [Phase::Approved]);
    world.decide(Phase::Approved, |request| request.spec.approved = false);
    world.settle();
    assert_eq!(world.phases(), [Phase::Pending]);
    let actions: Vec<String> = world.requests[0]
        .status
        .as_ref()
        .unwrap()
        .decisions
        .iter()
        .map(|decision| decision.action.to_string())
        .collect();
    assert_eq!(actions, ["Approved", "Withdrawn"]);
    assert_eq!(aws(&mut world), Vec::<String>::new());
    // Also when what it waited for comes back in the same moment: the spec counts, not the phase.
    let mut world = pending();
    world.approve();
    let cluster = std::mem::replace(
        &mut world.look_ups.cluster,
        Fact::Unknown(failure(FailureClass::Unavailable)),
    );
    world.settle();
    world.decide(Phase::Approved, |request| request.spec.approved = false);
    world.look_ups.cluster = cluster;
    world.settle();
    assert_eq!(world.phases(), [Phase::Pending]);
    assert_eq!(aws(&mut world), Vec::<String>::new());
}

#[test]
fn an_edit_is_spec_drift_and_an_edit_with_a_new_image_is_both() {
    let mut world = World::at_rest(true);
    let edit = |world: &mut World| {
        world.group.spec.eks.as_mut().unwrap().configuration.instance_type = Some("m5.xlarge".to_owned());
    };
    edit(&mut world);
    world.run();
    assert_eq!(world.request(Phase::Pending).spec.reason, UpgradeReason::SpecDrift);
    let changes = &world.request(Phase::Pending).spec.target.changes;
    assert_eq!(
        changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(),
        ["instanceType"]
    );
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.request(Phase::Pending).spec.reason, UpgradeReason::Multiple);
}

#[test]
fn an_edit_between_the_claim_and_the_first_write_stops_it() {
    let mut world = pending();
    world.approve();
    world.pass();
    let plan = world.pass();
    assert!(plan.to_string().contains("InProgress"), "{plan}");
    world.group.spec.eks.as_mut().unwrap().configuration.instance_type = Some("m5.xlarge".to_owned());
    world.run();
    assert_eq!(
        world.request(Phase::Superseded).spec.target.image_id.as_deref(),
        Some("ami-0b")
    );
    assert_eq!(aws(&mut world), Vec::<String>::new());
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
}

#[test]
fn unlocking_removes_what_waits_and_rolls_out_once() {
    let mut world = pending();
    world
        .group
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(annotation::LOCK_UPGRADES.to_owned(), "false".to_owned());
    world.run();
    assert!(world.requests.is_empty());
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert_eq!(
        aws(&mut world)
            .iter()
            .filter(|action| action.starts_with("create version"))
            .count(),
        1
    );
}

#[test]
fn any_doubtful_lock_value_locks() {
    for value in ["true", "TRUE", "yes", "", "0", "flase"] {
        let mut world = World::at_rest(false);
        world
            .group
            .metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert(annotation::LOCK_UPGRADES.to_owned(), value.to_owned());
        world.publish("ami-0b");
        world.run();
        assert_eq!(world.phases(), [Phase::Pending], "{value:?}");
    }
    for value in ["false", "False", "FALSE"] {
        let mut world = World::at_rest(true);
        world
            .group
            .metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert(annotation::LOCK_UPGRADES.to_owned(), value.to_owned());
        world.publish("ami-0b");
        world.run();
        assert!(world.requests.is_empty(), "{value:?}");
    }
}

#[test]
fn a_namespace_locks_its_groups() {
    let mut world = World::at_rest(false);
    world.namespace_lock = Some("true".to_owned());
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
    assert!(world.group.status.as_ref().unwrap().lock.as_ref().unwrap().locked);
}

#[test]
fn finished_requests_go_after_their_time() {
    let mut world = pending();
    world.approve();
    world.run();
    world.wait(SignedDuration::from_mins(59));
    world.run();
    assert_eq!(world.phases(), [Phase::Succeeded]);
    world.wait(SignedDuration::from_mins(1));
    world.run();
    assert!(world.requests.is_empty());
    let history = &world.group.status.as_ref().unwrap().history;
    assert_eq!(history.len(), 2, "the record stays: {history:?}");
    assert_eq!(history[0].by.as_deref(), Some("alice"));
}

#[test]
fn a_target_that_comes_back_is_approved_anew_each_time() {
    let mut world = World::at_rest(true);
    for image in ["ami-0b", "ami-0a", "ami-0b", "ami-0a"] {
        world.wait(SignedDuration::from_mins(5));
        world.publish(image);
        world.run();
        world.approve();
        world.run();
        assert_eq!(world.running_images(), [image; 3], "{}", world.transcript);
        assert_eq!(world.state(), "Ready");
        let status = world.group.status.as_ref().unwrap();
        assert_eq!(
            status.image.as_ref().unwrap().current.as_deref(),
            Some(image),
            "what is approved moved"
        );
        assert_eq!(
            world.template.as_ref().unwrap().versions.len(),
            2,
            "the version of that content serves again"
        );
        let before = world.aws_actions.len();
        world.run();
        assert_eq!(world.aws_actions.len(), before, "it rests: {:?}", world.aws_actions);
    }
}

#[test]
fn versions_that_nothing_needs_are_pruned() {
    for locked in [true, false] {
        let mut world = World::at_rest(locked);
        for image in ["ami-0b", "ami-0c", "ami-0d", "ami-0e"] {
            world.wait(SignedDuration::from_hours(2));
            world.publish(image);
            world.run();
            if locked {
                world.approve();
                world.run();
            }
        }
        let kept: Vec<i64> = world.template.as_ref().unwrap().versions.keys().copied().collect();
        assert!(
            kept.contains(&5) && kept.contains(&4),
            "approved and previous stay: {kept:?}"
        );
        assert!(kept.len() <= 3, "locked {locked}: {kept:?}");
    }
}

#[test]
fn a_denied_subnet_removal_blocks_only_itself() {
    let mut world = World::at_rest(true);
    world.group.spec.eks.as_mut().unwrap().configuration.subnets.pop();
    world.run();
    world.decide(Phase::Pending, |request| request.spec.denied = true);
    world.run();
    assert_eq!(world.phases(), [Phase::Denied]);
    // Another removal is another target, and the way back to what runs is open.
    world.group.spec.eks.as_mut().unwrap().configuration.subnets = vec!["subnet-b".to_owned(), "subnet-c".to_owned()];
    world.run();
    assert_eq!(world.request(Phase::Pending).spec.target.removed_subnets, ["subnet-a"]);
}

#[test]
fn the_way_out_names_only_what_exists() {
    let mut world = pending();
    world.decide(Phase::Pending, |request| request.spec.cancelled = true);
    world.run();
    let message = |world: &World| world.group.status.as_ref().unwrap().message.clone().unwrap();
    assert!(message(&world).contains("delete upgraderequest"), "{}", message(&world));
    world.wait(SignedDuration::from_hours(2));
    world.run();
    assert!(world.requests.is_empty());
    assert!(
        !message(&world).contains("delete upgraderequest"),
        "{}",
        message(&world)
    );
    assert!(message(&world).contains("retry-upgrade=sha256:"), "{}", message(&world));
}
