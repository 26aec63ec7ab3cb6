//! What was seen of images over time: what automatic approvals rest on.
//!
//! Owns when values were first seen, which proof was given for an image, and whose clock counts. All of it outlives the process
//! in a `ConfigMap`. Must not read a clock or write anything.

mod clock;
mod history;
mod soak;

pub use clock::{ServerClock, counted};
pub use history::{ParameterHistory, SeenValue};
pub use soak::{SoakRecord, Soaked};
