//! Checks of the tree itself: layers, file headers, sizes, generated files. They need no control plane.
//!
//! Owns what would otherwise be a habit. `UPDATE=1` rewrites generated files.

mod generated;
mod layers;
mod promises;
