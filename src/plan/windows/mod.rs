//! Windows: when nodes may be replaced.
//!
//! Owns whether a moment is in the windows of a schedule, and when that changes next. Must not read a clock; the time comes
//! in.

use jiff::Timestamp;

/// One window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {}

/// How windows stand at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nodes may be replaced.
    Open {
        /// When that ends, if it does.
        until: Option<Timestamp>,
    },
    /// They may not.
    Closed {
        /// Why, as `outside every window`, or the reason of the window that denies.
        why: String,
        /// When they may again, if ever.
        opens: Option<Timestamp>,
        /// The same as people of that zone write it, as `02:00 Europe/Berlin` with the date where it is not today.
        shown: Option<String>,
    },
}

/// How windows stand at this time. No window at all = always open.
#[must_use]
pub fn standing(windows: &[Window], now: Timestamp) -> Standing {
    let _ = (windows, now);
    Standing::Open { until: None }
}
