//! Launch rendering: from a manifest and resolved facts to what a new node gets.
//!
//! Owns the inputs, their fingerprint, the rendering rules by version, the user data and the list of changes
//! between two inputs. Must not look anything up or decide whether a change may roll out.

pub mod changes;
pub mod inputs;
pub mod render;
pub mod user_data;

pub use inputs::LaunchInputs;
pub use render::{Ground, RENDER_VERSION, render};
