//! Tests of the rollout on a toy fleet.

mod cases;
mod drains;
mod newcomers;
mod random;
mod stories;
pub(in crate::plan) mod toy;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Limits, Outcome, resolve};
use crate::api::instance_group::RollingUpdate;
use toy::Toy;

/// Limits of a strategy that only says how many nodes may be unavailable.
fn limits(max_unavailable: &str, size: usize) -> Limits {
    let max_unavailable = max_unavailable
        .parse::<i32>()
        .map_or_else(|_| IntOrString::String(max_unavailable.to_owned()), IntOrString::Int);
    let strategy = RollingUpdate {
        max_unavailable: Some(max_unavailable),
        ..RollingUpdate::default()
    };
    resolve(Some(&strategy), size).limits
}

/// Plays until the rollout ends; fails if it stands still without saying why, or never ends.
fn play(toy: &mut Toy) -> Outcome {
    for _ in 0..50_000 {
        let steps = toy.look();
        if steps.outcome != Outcome::Going {
            return steps.outcome;
        }
        if steps.actions.is_empty() {
            assert!(!steps.waits.is_empty(), "waits without a word:\n{}", toy.transcript);
            if !toy.pass(steps.look_at) {
                return steps.outcome;
            }
        }
    }
    panic!("no end:\n{}", toy.transcript);
}
