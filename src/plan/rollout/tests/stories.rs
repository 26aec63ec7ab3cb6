//! Whole rollouts as text, compared with files that a person reviews. `UPDATE=1` rewrites them.

use std::fmt::Write;
use std::path::Path;

use pretty_assertions::assert_eq;

use super::toy::{Nature, Toy};
use super::{limits, play};
use crate::plan::rollout::Outcome;

fn golden(name: &str, transcript: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/rollout")
        .join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, transcript).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        transcript, expected,
        "{name}: review the difference; UPDATE=1 accepts it"
    );
}

/// Every size with every budget, on nodes that take their time and a workload with a budget of its own.
#[test]
fn sizes_and_budgets() {
    for size in [0_usize, 1, 2, 3, 7, 19, 100] {
        let mut transcript = String::new();
        for budget in ["0", "1", "10%", "30%", "50%", "100%"] {
            let nature = Nature {
                budget: (size > 1).then_some(size.div_ceil(4)),
                ..Nature::calm()
            };
            let mut toy = Toy::new(size, limits(budget, size), nature, 7);
            let outcome = play(&mut toy);
            assert_eq!(outcome, Outcome::Done, "{}", toy.transcript);
            let _ = writeln!(
                transcript,
                "== {size} nodes, maxUnavailable {budget}\n{}",
                toy.transcript
            );
        }
        golden(&format!("size_{size}"), &transcript);
    }
}

#[test]
fn a_bad_image_stops_after_its_first_node() {
    let nature = Nature {
        bad_image: true,
        ..Nature::calm()
    };
    let mut toy = Toy::new(7, limits("50%", 7), nature, 7);
    assert!(matches!(play(&mut toy), Outcome::Halt(_)));
    let old = toy.members.iter().filter(|member| !member.on_target).count();
    assert_eq!(old, 6, "{}", toy.transcript);
    golden("bad_image", &toy.transcript);
}

#[test]
fn no_capacity_for_the_new_version_halts_with_the_reason() {
    let nature = Nature {
        no_capacity: true,
        ..Nature::calm()
    };
    let mut toy = Toy::new(3, limits("1", 3), nature, 7);
    assert!(matches!(play(&mut toy), Outcome::Halt(_)));
    golden("no_capacity", &toy.transcript);
}

#[test]
fn a_pod_that_never_ends_is_given_up_and_others_go_on() {
    let nature = Nature {
        stuck_every: Some(3),
        ..Nature::calm()
    };
    let mut toy = Toy::new(4, limits("1", 4), nature, 7);
    let mut looks = 0;
    // It ends by itself in no case: the story is cut after two hours.
    while toy.now < "2026-11-30T12:00:00Z".parse().unwrap() && looks < 5_000 {
        looks += 1;
        let steps = toy.look();
        if steps.actions.is_empty() {
            toy.pass(steps.look_at);
        }
    }
    golden("stuck_pod", &toy.transcript);
}
