//! New instances: how long they are waited for, and what becomes of a rollout whose nodes do not come up.

use jiff::SignedDuration;

use super::cases::{down, now, proven, reasons, toy};
use crate::api::Reason;
use crate::plan::rollout::drain::after;
use crate::plan::rollout::{Halt, Outcome};

#[test]
fn a_newcomer_that_is_not_ready_in_time_halts_and_the_clock_outlives_a_restart() {
    for (seconds, halts) in [(899, false), (900, true)] {
        let mut fleet = toy(3, "1");
        fleet.nature.bad_image = true;
        fleet.lose(0);
        let first = fleet.look();
        let (newcomer, since) = first.joining.iter().next().unwrap();
        assert_eq!(*since, now());
        fleet.restart();
        fleet.now = after(now(), SignedDuration::from_secs(seconds));
        let steps = fleet.look();
        let Outcome::Halt(Halt { reason, instance, .. }) = steps.outcome else {
            assert!(!halts, "{seconds}");
            continue;
        };
        assert!(halts && reason == Reason::NodeNeverReady && instance.as_ref() == Some(newcomer));
        assert_eq!(steps.counts.failed, 1);
        assert!(steps.actions.is_empty());
    }
}

/// Rule R5 also where a health check or an auto-scaler takes the nodes that do not come up.
#[test]
fn newcomers_that_end_one_after_another_share_one_time() {
    for gap in [false, true] {
        let mut fleet = toy(3, "1");
        fleet.nature.bad_image = true;
        fleet.lose(0);
        fleet.look();
        for minutes in [5, 10, 14] {
            fleet.now = after(now(), SignedDuration::from_mins(minutes));
            fleet.nature.no_capacity = gap;
            fleet.lose(2);
            // Looked at while none is there, and once it is.
            fleet.look();
            fleet.restart();
            fleet.nature.no_capacity = false;
            fleet.look();
            assert_eq!(fleet.look().outcome, Outcome::Going, "{}", fleet.transcript);
        }
        fleet.now = after(now(), SignedDuration::from_secs(899));
        assert_eq!(fleet.look().outcome, Outcome::Going);
        fleet.now = after(now(), SignedDuration::from_mins(15));
        let Outcome::Halt(halt) = fleet.look().outcome else {
            panic!("{}", fleet.transcript)
        };
        assert_eq!(halt.reason, Reason::NodeNeverReady);
    }
}

#[test]
fn a_gap_after_a_newcomer_that_ended_goes_on_with_its_time() {
    let mut fleet = toy(3, "1");
    fleet.nature.bad_image = true;
    fleet.lose(0);
    fleet.look();
    fleet.now = after(now(), SignedDuration::from_mins(10));
    fleet.nature.no_capacity = true;
    let id = fleet.members[2].instance.id.clone();
    fleet.lose(2);
    assert_eq!(fleet.look().short_since, Some(now()));
    fleet.now = after(now(), SignedDuration::from_mins(15));
    let Outcome::Halt(halt) = fleet.look().outcome else {
        panic!("{}", fleet.transcript)
    };
    assert_eq!(halt.reason, Reason::LaunchFailed);
    assert!(
        halt.message.contains(&format!("{id} of the new version ended before")),
        "{}",
        halt.message
    );
}

#[test]
fn the_time_starts_anew_once_a_new_node_is_ready_or_nothing_is_missing() {
    for shrunk in [true, false] {
        let mut fleet = toy(3, "1");
        fleet.nature.bad_image = true;
        fleet.lose(0);
        fleet.look();
        fleet.now = after(now(), SignedDuration::from_mins(10));
        if shrunk {
            fleet.desired = 2;
            fleet.lose(2);
        } else {
            fleet.lose(2);
            fleet.look();
            fleet.members[2].node.as_mut().unwrap().ready = true;
            "InService".clone_into(&mut fleet.members[2].instance.lifecycle_state);
        }
        let steps = fleet.look();
        assert!(steps.joining.is_empty(), "{:?}", steps.joining);
        fleet.desired = 3;
        fleet.lose(0);
        let joining = fleet.look().joining;
        assert!(
            !joining.is_empty() && joining.into_values().all(|since| since == fleet.now),
            "{}",
            fleet.transcript
        );
    }
}

#[test]
fn an_instance_that_was_there_before_says_nothing_about_the_target() {
    let mut fleet = toy(3, "1");
    fleet.member("i-001").on_target = true;
    fleet.present = vec!["i-001".to_owned()];
    down(&mut fleet, "i-001");
    for minutes in [0, 15] {
        fleet.now = after(now(), SignedDuration::from_mins(minutes));
        let steps = fleet.look();
        assert!(steps.joining.is_empty() && steps.outcome == Outcome::Going, "{minutes}");
        assert!(reasons(&steps).contains(&Reason::BudgetSpent), "{:?}", steps.waits);
    }
}

#[test]
fn what_became_ready_is_noted_also_when_another_halts_the_rollout() {
    let mut fleet = toy(3, "1");
    for id in ["i-001", "i-002"] {
        fleet.member(id).on_target = true;
    }
    down(&mut fleet, "i-001");
    down(&mut fleet, "i-002");
    fleet.look();
    fleet.now = after(now(), SignedDuration::from_mins(15));
    fleet.member("i-002").node.as_mut().unwrap().ready = true;
    let steps = fleet.look();
    assert!(matches!(steps.outcome, Outcome::Halt(_)));
    let texts: Vec<String> = steps.actions.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["welcome i-002"]);
}

#[test]
fn a_node_that_was_ready_once_does_not_halt_the_rollout() {
    let mut fleet = proven(2, "1");
    down(&mut fleet, "i-001");
    fleet.look();
    fleet.now = after(now(), SignedDuration::from_hours(5));
    let steps = fleet.look();
    assert!(steps.joining.is_empty() && steps.outcome == Outcome::Going);
}
