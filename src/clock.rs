//! The one place that reads the time of day.
//!
//! Owns the clock. Everything else takes the time as an argument, so that tests can set it.

use jiff::Timestamp;

/// The current time.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    Timestamp::now()
}
