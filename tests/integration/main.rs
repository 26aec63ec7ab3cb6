//! The integration tests: one binary on one shared control plane and simulated AWS.
//!
//! Owns the list of modules. What can be shown on the pure plan is tested there; here is what needs real parts.

#[path = "../testbed/mod.rs"]
mod testbed;

mod crd_rules;
mod definitions;
mod drains;
mod gate;
mod leadership;
mod operator;
mod rights;
mod rollouts;
mod running;
mod schedules;
mod testbed_itself;
