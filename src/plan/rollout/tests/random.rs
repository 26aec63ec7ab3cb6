//! Thousands of rollouts with everything that can happen in them, and what has to hold in each at every step.

use super::limits;
use super::toy::{Nature, Random, Toy};
use crate::api::NodeState;
use crate::plan::rollout::{Hold, Outcome, Step};
use crate::plan::step::NodeEdit;

/// How many rollouts; the issue of this room asks for 10,000 within a minute.
const ROLLOUTS: u64 = 10_000;

fn nature(random: &mut Random, size: usize) -> Nature {
    let mut some = |percent: u64| random.chance(percent);
    let (bad_image, no_capacity, budgeted, losses, restarts, stuck) =
        (some(8), some(4), some(60), some(40), some(50), some(8));
    Nature {
        bad_image,
        no_capacity: no_capacity && !bad_image,
        budget: budgeted.then(|| 1 + usize::try_from(random.below(size.max(1) as u64)).unwrap()),
        spot_losses: if losses { 2 } else { 0 },
        restarts: if restarts { 10 } else { 0 },
        stuck_every: (stuck && size > 2).then_some(3),
        ..Nature::calm()
    }
}

/// Plays one rollout and checks every step of it.
fn one(seed: u64) {
    let mut random = Random::new(seed);
    let sizes = [0, 1, 2, 3, 4, 5, 7, 10, 19];
    let size = sizes[usize::try_from(random.below(sizes.len() as u64)).unwrap()];
    let budgets = ["0", "1", "2", "10%", "30%", "50%", "100%"];
    let budget = budgets[usize::try_from(random.below(budgets.len() as u64)).unwrap()];
    let nature = nature(&mut random, size);
    let mut toy = Toy::new(size, limits(budget, size), nature, seed);
    // A node that a person cordoned, on some.
    let by_person = (size > 0 && random.chance(20)).then(|| toy.members[0].instance.id.clone());
    if let Some(id) = &by_person {
        toy.member(id).node.as_mut().unwrap().cordoned = true;
    }
    let cancel_after = random.chance(15).then(|| random.below(60));
    let outcome = play(&mut toy, &mut random, cancel_after);
    let stands = toy.nature.stuck_every.is_some() || toy.nature.no_capacity || toy.nature.bad_image;
    if outcome == Outcome::Going {
        assert!(stands || toy.hold.is_some(), "{seed}: no end\n{}", toy.transcript);
    }
    if matches!(outcome, Outcome::Halt(_)) {
        assert!(
            stands || toy.nature.spot_losses > 0,
            "{seed}: halts without a cause\n{}",
            toy.transcript
        );
    }
    toy.tidy();
    for member in &toy.members {
        let node = member.node.as_ref().unwrap();
        let gone = member.instance.lifecycle_state == "Terminating";
        assert!(
            gone || node.record.is_none() && !node.avoided,
            "{seed}: a note stays on {}",
            node.name
        );
        let person = by_person.as_ref() == Some(&member.instance.id);
        assert_eq!(
            node.cordoned && !gone,
            person && !gone,
            "{seed}: cordon of {}\n{}",
            node.name,
            toy.transcript
        );
    }
}

fn play(toy: &mut Toy, random: &mut Random, cancel_after: Option<u64>) -> Outcome {
    let limit = toy.limits.max_unavailable;
    let mut quiet = 0;
    for look in 0..3_000_u64 {
        if random.chance(toy.nature.restarts) {
            toy.restart();
        }
        if !toy.members.is_empty() && random.chance(toy.nature.spot_losses) {
            let index = usize::try_from(random.below(toy.members.len() as u64)).unwrap();
            toy.lose(index);
        }
        if !toy.members.is_empty() && random.chance(toy.nature.spot_losses) {
            let index = usize::try_from(random.below(toy.members.len() as u64)).unwrap();
            toy.flap(index);
        }
        if random.chance(3) {
            toy.hold = match toy.hold {
                None => Some(Hold::Window {
                    why: "outside every window".to_owned(),
                    opens: None,
                    shown: None,
                }),
                Some(_) => None,
            };
        }
        toy.stopping = cancel_after.is_some_and(|after| look >= after);
        let before = unavailable(toy);
        let (held, stopping) = (toy.hold.is_some(), toy.stopping);
        let proven = toy.members.iter().any(|member| member.on_target && serves(member));
        let steps = toy.look();
        let taken = steps
            .actions
            .iter()
            .filter(|step| {
                matches!(
                    step,
                    Step::Edit {
                        edit: NodeEdit::Take { .. },
                        ..
                    }
                )
            })
            .count();
        let now = unavailable(toy);
        assert!(
            now <= limit.max(before),
            "{}: {now} of {limit} unavailable\n{}",
            toy.desired,
            toy.transcript
        );
        assert!(
            taken == 0 || !(held || stopping),
            "taken while held\n{}",
            toy.transcript
        );
        // A proof can be lost again while others are in hand; then none is added.
        assert!(
            proven || taken == 0 || in_hand(toy) == 1,
            "the first goes alone\n{}",
            toy.transcript
        );
        if steps.outcome != Outcome::Going {
            return steps.outcome;
        }
        if steps.actions.is_empty() {
            assert!(!steps.waits.is_empty(), "waits without a word:\n{}", toy.transcript);
            let moved = toy.pass(steps.look_at);
            quiet = if moved { 0 } else { quiet + 1 };
            if quiet > 20 {
                toy.hold = None;
            }
            if quiet > 60 {
                return Outcome::Going;
            }
        }
    }
    Outcome::Going
}

fn serves(member: &super::toy::ToyMember) -> bool {
    member.instance.lifecycle_state == "InService" && member.node.as_ref().is_some_and(|node| node.ready)
}

fn drained(member: &super::toy::ToyMember) -> bool {
    let record = member.node.as_ref().and_then(|node| node.record.as_ref());
    record.is_some_and(|record| record.state == NodeState::Draining)
}

fn in_hand(toy: &Toy) -> usize {
    let here = toy
        .members
        .iter()
        .filter(|member| member.instance.lifecycle_state != "Terminating");
    here.filter(|member| drained(member)).count()
}

/// Counted by the test itself, not by the code under test.
fn unavailable(toy: &Toy) -> usize {
    let counted_on = toy
        .members
        .iter()
        .filter(|member| serves(member) && !drained(member))
        .count();
    toy.desired.saturating_sub(counted_on)
}

#[test]
fn ten_thousand_rollouts_keep_their_promises() {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    std::thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || {
                (worker..ROLLOUTS)
                    .step_by(usize::try_from(workers).unwrap())
                    .for_each(one);
            });
        }
    });
}
