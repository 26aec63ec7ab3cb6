//! Windows: when nodes may be replaced.
//!
//! Owns whether a moment is in the windows of a schedule, and when that changes next. Must not read a clock or the zone files
//! of a machine; the time comes in, and zones come with the binary.
//!
//! The rules: without windows it is always open. With an allow window it is closed outside all of them. A deny window beats
//! them. A window belongs to the day on which it starts, and lasts by the clock that runs through, not by the one on the wall.
//! A start in an hour that the clock skips does not happen; one in an hour that comes twice happens once, the first time.

#[cfg(test)]
mod oracle;
mod repeats;
mod standing;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};

pub use repeats::Repeats;
pub use standing::{Standing, standing};

/// One window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Whether it opens or closes.
    pub kind: Kind,
    /// When it holds.
    pub when: When,
    /// The zone of its dates and times.
    pub zone: TimeZone,
    /// Why, in the words of who made it.
    pub reason: String,
}

/// Whether a window opens or closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nodes may be replaced in it.
    Allow,
    /// No node may be taken in it.
    Deny,
}

/// When a window holds.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// Again and again.
    Repeats(Repeats),
    /// Once: from the start of the first day to the end of the last.
    Dates {
        /// First day.
        from: Date,
        /// Last day, which belongs to it.
        to: Date,
    },
}

/// The zone of that IANA name.
#[must_use]
pub fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

impl Window {
    /// Until when it holds at least, if it holds at this time.
    fn covers(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::Repeats(repeats) => repeats.covers(&self.zone, at),
            When::Dates { from, to } => {
                // After the last day that can be written down there is no end.
                let end = to.tomorrow().map_or(Timestamp::MAX, |day| begin(day, &self.zone));
                (begin(*from, &self.zone) <= at && at < end).then_some(end)
            }
        }
    }

    /// When it starts next, after this time.
    fn next_start(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::Repeats(repeats) => repeats.next_start(&self.zone, at),
            When::Dates { from, .. } => Some(begin(*from, &self.zone)).filter(|begin| *begin > at),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.when {
            When::Repeats(repeats) => write!(f, "{repeats}")?,
            When::Dates { from, to } if from == to => write!(f, "on {from}")?,
            When::Dates { from, to } => write!(f, "from {from} to {to}")?,
        }
        let zone = self.zone.iana_name().unwrap_or("UTC");
        if self.reason.is_empty() {
            write!(f, " ({zone})")
        } else {
            write!(f, " ({zone}; {})", self.reason)
        }
    }
}

/// The first moment of a day, also where the clock skips midnight.
fn begin(day: Date, zone: &TimeZone) -> Timestamp {
    // Only days at the ends of the calendar have none.
    let begin = zone.to_timestamp(day.to_datetime(Time::midnight()));
    begin.unwrap_or(Timestamp::MAX)
}
