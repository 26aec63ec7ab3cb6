//! Checks of the tree itself: layers, file headers, sizes, generated files. They need no control plane.
//!
//! Owns what would otherwise be a habit. `UPDATE=1` rewrites generated files.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read is a failed test")]

mod examples;
mod generated;
mod layers;
mod promises;
mod rights;
mod runbook;
mod simulate;
mod tree;
