//! Who is recorded for a decision, and when that name counts as verified (promise P12).

use jiff::SignedDuration;
use pretty_assertions::assert_eq;

use super::pending;
use crate::api::upgrade_request::{Decision, DecisionAction, Phase};
use crate::plan::step::Action;
use crate::plan::test_world::World;

/// Looks until nothing more happens; answers the decisions recorded last.
fn recorded(world: &mut World) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for _ in 0..40 {
        for action in &world.pass().actions {
            if let Action::MoveRequest(step) = action {
                decisions.clone_from(&step.status.decisions);
            }
        }
        world.boot();
    }
    decisions
}

#[test]
fn a_name_counts_only_where_the_api_server_vouched_since_before_the_request() {
    for (vouched, by, verified) in [
        (None, "alice", false),
        (Some(SignedDuration::from_secs(-60)), "alice", true),
        (Some(SignedDuration::ZERO), "alice", true),
        // Since after it was made, so perhaps since after somebody wrote into it.
        (Some(SignedDuration::from_secs(1)), "alice", false),
        (Some(SignedDuration::from_secs(-60)), "", false),
    ] {
        let mut world = pending();
        let made = world
            .request(Phase::Pending)
            .metadata
            .creation_timestamp
            .clone()
            .unwrap()
            .0;
        world.vouched_since = vouched.map(|after| made + after);
        world.decide(Phase::Pending, |request| {
            request.spec.denied = true;
            request.spec.approved_by = by.to_owned();
        });
        let decisions = recorded(&mut world);
        assert_eq!(decisions.len(), 1, "{decisions:?}");
        let name = Some(by.to_owned()).filter(|name| !name.is_empty());
        assert_eq!(
            (&decisions[0].by, decisions[0].verified),
            (&name, Some(verified)),
            "{vouched:?} {by:?}"
        );
    }
}

/// Deleting a running request cancels it; the name that it carries is that of who approved.
#[test]
fn who_deletes_a_running_request_is_not_named() {
    let mut world = pending();
    let made = world
        .request(Phase::Pending)
        .metadata
        .creation_timestamp
        .clone()
        .unwrap()
        .0;
    world.vouched_since = Some(made);
    world.approve();
    world.settle();
    world.delete_request(Phase::InProgress);
    let decisions = recorded(&mut world);
    let seen: Vec<_> = decisions
        .iter()
        .map(|it| (it.action, it.by.as_deref(), it.verified))
        .collect();
    assert_eq!(
        seen,
        [
            (DecisionAction::Approved, Some("alice"), Some(true)),
            (DecisionAction::Deleted, None, Some(false)),
        ]
    );
    let blocked = &world.group.status.as_ref().unwrap().blocked_targets;
    assert_eq!(blocked[0].by.as_deref(), Some("unknown"));
    let history = &world.group.status.as_ref().unwrap().history;
    assert_eq!(history[0].by.as_deref(), Some("unknown"));
}

/// A cancel that is written into the request names whoever wrote it.
#[test]
fn who_cancels_a_running_request_is_named() {
    let mut world = pending();
    let made = world
        .request(Phase::Pending)
        .metadata
        .creation_timestamp
        .clone()
        .unwrap()
        .0;
    world.vouched_since = Some(made);
    world.approve();
    world.settle();
    world.decide(Phase::InProgress, |request| {
        request.spec.cancelled = true;
        request.spec.approved_by = "bob".to_owned();
    });
    let decisions = recorded(&mut world);
    let last = decisions.last().map(|it| (it.action, it.by.as_deref(), it.verified));
    assert_eq!(last, Some((DecisionAction::Cancelled, Some("bob"), Some(true))));
    let blocked = &world.group.status.as_ref().unwrap().blocked_targets;
    assert_eq!(blocked[0].by.as_deref(), Some("bob"));
}
