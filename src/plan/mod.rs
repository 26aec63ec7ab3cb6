//! The decisions, pure: facts and the time go in, a value comes out that prints as text.
//!
//! Owns everything the product exists for. Must not hold a client, read a clock or the environment: all of it can be
//! tested with tables, and a whole rollout can be read as a transcript. It imports `api` only.

pub mod approval;
pub mod evidence;
pub mod facts;
pub mod group;
pub mod image;
pub mod launch;
pub mod leadership;
pub mod naming;
pub mod observed;
pub mod problem;
pub mod rollout;
pub mod settings;
pub mod simulation;
pub mod step;
pub mod support;
pub mod target;
pub mod wanted;
pub mod windows;

#[cfg(test)]
mod test_world;

pub use group::plan as plan_group;
pub use observed::{LookUps, Observed};
pub use step::{Action, Plan};
