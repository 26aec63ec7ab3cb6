//! The fleet's settings: what a text of key `upgrades` means.
//!
//! Owns the meaning: locks, freeze, caps, schedules, and which of them concern a group. Must not read a `ConfigMap` or a
//! clock; texts, labels and times come in.

mod check;
mod in_force;
mod model;
mod read;
mod read_schedule;
mod read_scope;
mod summary;
#[cfg(test)]
mod tests;
mod tree;

pub use check::{Warning, check};
pub use in_force::{InForce, Trouble, UPGRADES};
pub use model::{
    Basis, Exception, Freeze, GroupLabels, ImageRule, LockRule, OnNewer, Requirement, Rule, Schedule, Scope, Selector,
    Settings, SettingsError, Soak,
};
pub use read::{read, read_with_lines};
pub use summary::summary;
pub use tree::Lines;
