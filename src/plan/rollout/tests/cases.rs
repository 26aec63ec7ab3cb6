//! Single situations: what is taken, in which order, and what is said when nothing is.

use jiff::{SignedDuration, Timestamp};

use super::toy::{Nature, Toy, pod};
use super::{limits, play};
use crate::api::{NodeRecord, NodeState, Reason};
use crate::plan::facts::workload::{Budget, PodKind};
use crate::plan::facts::{Fact, Failure, FailureClass};
use crate::plan::rollout::drain::after;
use crate::plan::rollout::{Hold, Outcome, Step, Steps};
use crate::plan::step::NodeEdit;

pub(super) fn toy(size: usize, budget: &str) -> Toy {
    Toy::new(size, limits(budget, size), Nature::calm(), 3)
}

/// The group has shown that the target works: one node of it is Ready.
pub(super) fn proven(size: usize, budget: &str) -> Toy {
    let mut toy = toy(size, budget);
    let member = toy.member("i-001");
    member.on_target = true;
    member.node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Joined, now()));
    for member in &mut toy.members {
        member.node.as_mut().unwrap().avoided = true;
    }
    toy
}

pub(super) fn now() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

fn taken(steps: &Steps) -> Vec<&str> {
    let edits = steps.actions.iter().filter_map(|step| match step {
        Step::Edit {
            instance,
            edit: NodeEdit::Take { .. },
            ..
        } => Some(instance.as_str()),
        _ => None,
    });
    edits.collect()
}

pub(super) fn reasons(steps: &Steps) -> Vec<Reason> {
    steps.waits.iter().map(|wait| wait.reason).collect()
}

pub(super) fn down(toy: &mut Toy, id: &str) {
    toy.member(id).node.as_mut().unwrap().ready = false;
}

#[test]
fn the_first_node_of_a_version_goes_alone_then_the_budget_opens() {
    assert_eq!(taken(&toy(10, "50%").look()), ["i-001"]);
    assert_eq!(
        taken(&proven(10, "50%").look()),
        ["i-002", "i-003", "i-004", "i-005", "i-006"]
    );
}

#[test]
fn nothing_else_is_begun_while_the_first_is_on_its_way() {
    let mut fleet = toy(5, "50%");
    fleet.member("i-001").node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Draining, now()));
    assert!(taken(&fleet.look()).is_empty(), "in hand");
    let mut fleet = toy(5, "50%");
    "Terminating".clone_into(&mut fleet.member("i-001").instance.lifecycle_state);
    let steps = fleet.look();
    assert!(taken(&steps).is_empty() && !steps.waits.is_empty(), "leaving");
    let mut fleet = toy(5, "50%");
    fleet.member("i-001").on_target = true;
    down(&mut fleet, "i-001");
    let steps = fleet.look();
    assert!(taken(&steps).is_empty(), "joining");
    assert_eq!(reasons(&steps), [Reason::NodesNotReady]);
    let mut fleet = toy(5, "50%");
    fleet.nature.no_capacity = true;
    fleet.lose(0);
    let steps = fleet.look();
    assert!(taken(&steps).is_empty(), "missing");
    assert!(steps.waits[0].message.contains("no capacity"), "{:?}", steps.waits);
}

#[test]
fn nodes_that_are_down_go_first_and_cost_nothing_more() {
    let mut fleet = proven(5, "1");
    down(&mut fleet, "i-004");
    assert_eq!(taken(&fleet.look()), ["i-004"]);
    let mut fleet = proven(5, "1");
    down(&mut fleet, "i-003");
    down(&mut fleet, "i-004");
    let steps = fleet.look();
    assert!(
        taken(&steps).is_empty(),
        "the other one that is down uses the budget up"
    );
    assert_eq!(reasons(&steps), [Reason::BudgetSpent]);
    assert!(
        steps.waits[0].message.contains("i-003, i-004"),
        "{}",
        steps.waits[0].message
    );
    let mut fleet = proven(5, "2");
    down(&mut fleet, "i-003");
    down(&mut fleet, "i-004");
    assert_eq!(taken(&fleet.look()), ["i-003", "i-004"]);
}

#[test]
fn a_node_that_is_missing_or_of_the_target_and_down_uses_the_budget_up() {
    let mut fleet = proven(5, "1");
    fleet.nature.no_capacity = true;
    fleet.lose(4);
    assert!(taken(&fleet.look()).is_empty(), "missing");
    let mut fleet = proven(5, "1");
    fleet.member("i-002").on_target = true;
    fleet.member("i-002").node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Joined, now()));
    down(&mut fleet, "i-001");
    let steps = fleet.look();
    assert!(taken(&steps).is_empty(), "of the target");
    assert!(reasons(&steps).contains(&Reason::BudgetSpent) && reasons(&steps).contains(&Reason::NodesNotReady));
    assert!(
        steps.waits.iter().any(|wait| wait.message.contains("Ready again")),
        "{:?}",
        steps.waits
    );
}

#[test]
fn an_instance_without_a_node_is_terminated_at_once() {
    let mut fleet = proven(3, "1");
    fleet.member("i-002").node = None;
    let steps = fleet.look();
    assert_eq!(
        steps.actions,
        [Step::Terminate {
            instance: "i-002".to_owned()
        }]
    );
}

#[test]
fn the_operators_own_node_is_last_and_only_with_another_to_go_to() {
    let mut fleet = proven(3, "2");
    fleet.member("i-002").hosts_operator = true;
    assert_eq!(taken(&fleet.look()), ["i-003", "i-002"]);
    let mut fleet = proven(3, "2");
    fleet.member("i-002").hosts_operator = true;
    fleet.refuge = false;
    let steps = fleet.look();
    assert_eq!(taken(&steps), ["i-003"]);
    assert_eq!(reasons(&steps), [Reason::HostsOperator]);
}

#[test]
fn a_drain_that_was_given_up_rests_and_others_come_first() {
    let gave_up = |seconds: i64| {
        let mut fleet = proven(3, "1");
        let since = after(now(), SignedDuration::from_secs(-seconds));
        fleet.member("i-002").node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::GaveUp, since));
        fleet
    };
    assert_eq!(taken(&gave_up(3_000).look()), ["i-003"], "others first");
    for (seconds, again) in [(299, false), (300, true)] {
        let mut fleet = gave_up(seconds);
        fleet.member("i-003").on_target = true;
        let steps = fleet.look();
        assert_eq!(taken(&steps).len(), usize::from(again), "{seconds}");
        assert_eq!(reasons(&steps).contains(&Reason::DrainGivenUp), !again);
        assert!(again || steps.look_at == Some(after(now(), SignedDuration::from_secs(1))));
    }
}

#[test]
fn a_drain_is_given_up_at_its_deadline_to_the_second() {
    for (seconds, given_up) in [(899, false), (900, true)] {
        let mut fleet = proven(3, "1");
        let since = after(now(), SignedDuration::from_secs(-seconds));
        fleet.member("i-002").node.as_mut().unwrap().record =
            Some(NodeRecord::new("target", NodeState::Draining, since));
        let steps = fleet.look();
        let released = steps.actions.iter().any(|step| {
            matches!(step, Step::Edit { edit: NodeEdit::Release { keep: Some(record) }, .. } if record.state == NodeState::GaveUp)
        });
        assert_eq!(released, given_up, "{seconds} s");
        assert_eq!(steps.warnings.len(), usize::from(given_up));
        assert!(given_up || steps.look_at == Some(after(now(), SignedDuration::from_secs(1))));
    }
}

#[test]
fn a_node_that_was_just_cordoned_is_not_believed_empty() {
    for (seconds, terminated) in [(0, false), (1, false), (2, true)] {
        let mut fleet = proven(3, "1");
        let since = after(now(), SignedDuration::from_secs(-seconds));
        let member = fleet.member("i-002");
        member.node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Draining, since));
        member.pods = Fact::Found(vec![pod("log-1", PodKind::Daemon)]);
        let steps = fleet.look();
        assert_eq!(!steps.actions.is_empty(), terminated, "{seconds} s after the cordon");
        assert!(terminated || steps.look_at == Some(after(since, SignedDuration::from_secs(2))));
    }
}

#[test]
fn a_node_whose_pods_are_unknown_is_neither_taken_nor_terminated() {
    let unknown = Fact::Unknown(Failure {
        class: FailureClass::Unavailable,
        action: "kubernetes:list pods".to_owned(),
        code: None,
        message: "no right to watch pods".to_owned(),
    });
    let mut fleet = proven(3, "1");
    for member in &mut fleet.members {
        member.pods = unknown.clone();
    }
    let steps = fleet.look();
    assert!(steps.actions.is_empty() && reasons(&steps) == [Reason::Draining]);
    assert_eq!(
        steps.waits[0].message,
        "looks which pods run on node-i-002: no right to watch pods"
    );
    assert_eq!(
        steps.look_at_pods.into_iter().collect::<Vec<_>>(),
        ["node-i-002"],
        "no more than could be taken"
    );
    fleet.member("i-002").node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Draining, now()));
    let steps = fleet.look();
    assert!(steps.actions.is_empty(), "{:?}", steps.actions);
    fleet.now = after(now(), SignedDuration::from_mins(15));
    assert!(matches!(
        fleet.look().actions[..],
        [Step::Edit {
            edit: NodeEdit::Release { .. },
            ..
        }]
    ));
}

#[test]
fn a_node_that_a_budget_holds_is_passed_over() {
    let held = |never: bool| {
        let mut fleet = proven(3, "1");
        if let Fact::Found(pods) = &mut fleet.member("i-002").pods {
            pods[0].budgets = vec![Budget {
                name: "web".to_owned(),
                disruptions_allowed: 0,
                never,
            }];
        }
        fleet
    };
    let steps = held(false).look();
    assert_eq!(
        (taken(&steps), reasons(&steps)),
        (vec!["i-003"], vec![Reason::PodDisruptionBudget])
    );
    assert!(steps.waits[0].message.contains("shop/web"));
    assert_eq!(steps.look_at_pods.len(), 2, "the one that is held is watched as well");
    assert!(held(true).look().waits[0].message.contains("never lets pod"));
}

#[test]
fn suspended_launches_block_before_the_first_drain_and_before_a_termination() {
    let mut fleet = proven(3, "1");
    fleet.suspended = vec!["Launch"];
    let steps = fleet.look();
    assert!(taken(&steps).is_empty() && reasons(&steps) == [Reason::LaunchSuspended]);
    let member = fleet.member("i-002");
    let since = after(now(), SignedDuration::from_secs(-5));
    member.node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Draining, since));
    member.pods = Fact::Found(vec![pod("log-1", PodKind::Daemon)]);
    let steps = fleet.look();
    assert!(steps.actions.is_empty() && reasons(&steps).contains(&Reason::LaunchSuspended));
    fleet.suspended.clear();
    assert_eq!(fleet.look().actions.len(), 1);
    // Nothing is concluded from missing instances meanwhile.
    let mut fleet = proven(3, "1");
    fleet.suspended = vec!["Launch", "Terminate"];
    fleet.lose(2);
    let steps = fleet.look();
    assert_eq!(steps.short_since, None);
    assert!(
        steps.waits[0].message.contains("Launch and Terminate"),
        "{:?}",
        steps.waits
    );
}

#[test]
fn standby_is_left_alone_and_told() {
    let mut fleet = proven(3, "1");
    "Standby".clone_into(&mut fleet.member("i-002").instance.lifecycle_state);
    fleet.desired = 2;
    let steps = fleet.look();
    assert_eq!(
        (taken(&steps), reasons(&steps)),
        (vec!["i-003"], vec![Reason::InstanceInStandby])
    );
    let mut fleet = proven(2, "1");
    "Standby".clone_into(&mut fleet.member("i-002").instance.lifecycle_state);
    fleet.desired = 1;
    let steps = fleet.look();
    assert_eq!(
        (steps.outcome.clone(), reasons(&steps)),
        (Outcome::Going, vec![Reason::InstanceInStandby])
    );
}

#[test]
fn an_old_instance_that_still_starts_is_waited_for() {
    let mut fleet = proven(2, "1");
    "Pending:Wait".clone_into(&mut fleet.member("i-002").instance.lifecycle_state);
    let steps = fleet.look();
    assert!(taken(&steps).is_empty() && steps.waits[0].message.contains("still starting (Pending:Wait)"));
}

#[test]
fn held_back_no_further_node_is_taken_and_the_node_in_hand_is_finished() {
    let until = after(now(), SignedDuration::from_hours(1));
    for (hold, reason) in [
        (
            Hold::Freeze {
                reason: "sale".to_owned(),
                until: Some(until),
            },
            Reason::Frozen,
        ),
        (
            Hold::Window {
                why: "outside every window".to_owned(),
                opens: Some(until),
                shown: None,
            },
            Reason::WindowClosed,
        ),
    ] {
        let mut fleet = proven(3, "1");
        fleet.hold = Some(hold.clone());
        let steps = fleet.look();
        assert!(steps.actions.is_empty() && reasons(&steps) == [reason]);
        assert_eq!((steps.look_at, steps.waits[0].until), (Some(until), Some(until)));
        fleet.member("i-002").node.as_mut().unwrap().record =
            Some(NodeRecord::new("target", NodeState::Draining, now()));
        assert!(matches!(fleet.look().actions[..], [Step::Evict { .. }]), "{hold:?}");
    }
}

#[test]
fn asked_to_stop_it_finishes_what_is_in_hand() {
    let mut fleet = proven(3, "1");
    fleet.stopping = true;
    assert_eq!(fleet.look().outcome, Outcome::Idle);
    fleet.member("i-002").node.as_mut().unwrap().record = Some(NodeRecord::new("target", NodeState::Draining, now()));
    let steps = fleet.look();
    assert!(matches!(steps.actions[..], [Step::Evict { .. }]) && steps.outcome == Outcome::Going);
    assert_eq!(play(&mut fleet), Outcome::Idle);
    assert_eq!(fleet.transcript.matches("terminate").count(), 1, "{}", fleet.transcript);
}

#[test]
fn a_termination_under_way_explains_a_missing_instance() {
    let mut fleet = proven(2, "1");
    fleet.nature.no_capacity = true;
    "Terminating:Wait".clone_into(&mut fleet.member("i-002").instance.lifecycle_state);
    let steps = fleet.look();
    assert_eq!(steps.short_since, None);
    assert!(steps.waits[0].message.contains("terminating"), "{:?}", steps.waits);
}

#[test]
fn done_means_all_that_is_wanted_and_nothing_else() {
    let mut fleet = proven(1, "1");
    assert_eq!(fleet.look().outcome, Outcome::Done);
    fleet.desired = 2;
    assert_eq!(fleet.look().outcome, Outcome::Going, "one is missing");
    assert_eq!(toy(0, "1").look().outcome, Outcome::Done, "none is wanted");
    let mut fleet = proven(2, "1");
    fleet.desired = 1;
    assert_eq!(fleet.look().outcome, Outcome::Going, "an old one is left");
}

#[test]
fn notes_of_another_rollout_are_taken_back_before_a_node_is_taken() {
    let mut fleet = proven(2, "1");
    fleet.member("i-002").node.as_mut().unwrap().record = Some(NodeRecord::new("other", NodeState::Draining, now()));
    let steps = fleet.look();
    assert!(matches!(
        steps.actions[..],
        [Step::Edit {
            edit: NodeEdit::Release { keep: None },
            ..
        }]
    ));
    assert_eq!(taken(&fleet.look()), ["i-002"]);
}

#[test]
fn fresh_nodes_are_welcomed_and_old_ones_avoided_once_the_target_works() {
    let mut fleet = toy(3, "1");
    let steps = fleet.look();
    assert!(steps.actions.iter().all(|step| !matches!(
        step,
        Step::Edit {
            edit: NodeEdit::Avoid,
            ..
        }
    )));
    let mut fleet = toy(3, "1");
    fleet.member("i-001").on_target = true;
    let texts: Vec<String> = fleet.look().actions.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "welcome i-001",
            "prefer others to i-002",
            "prefer others to i-003",
            "cordon and drain i-002"
        ]
    );
}

#[test]
fn a_pod_with_a_long_grace_period_is_warned_of_when_its_node_is_taken() {
    let mut fleet = proven(2, "1");
    if let Fact::Found(pods) = &mut fleet.member("i-002").pods {
        pods[0].grace_seconds = 3_600;
    }
    let steps = fleet.look();
    assert_eq!(taken(&steps), ["i-002"]);
    assert!(
        steps.warnings[0].1.contains("longer than drainTimeout"),
        "{:?}",
        steps.warnings
    );
}
