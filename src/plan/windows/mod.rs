//! Windows: when nodes may be replaced.
//!
//! Owns whether a moment is in the windows of a schedule, and when that changes next. Must not read a clock; the time comes
//! in.
//!
//! The rules: without windows it is always open. With an allow window it is closed outside all of them. A deny window beats
//! them. A window belongs to the day on which it starts, and lasts by the clock that runs through, not by the one on the wall.

mod repeats;
#[cfg(test)]
mod tests;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

pub use repeats::Repeats;

/// Changes looked at to find the next one that matters. More than that many in a row without effect are windows that cover
/// each other for years; then it is looked again at the last.
const CHANGES: usize = 500;

/// How far ahead is looked.
const HORIZON: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

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

/// How windows stand at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nodes may be replaced.
    Open {
        /// When that ends, if it does within ten years.
        until: Option<Timestamp>,
    },
    /// They may not.
    Closed {
        /// Why: `outside every window`, or the reason of the window that denies.
        why: String,
        /// When they may again, if ever within ten years.
        opens: Option<Timestamp>,
        /// The same as people of that zone write it: `window 02:00 Europe/Berlin`, with the date where that is not today.
        shown: Option<String>,
    },
}

/// How windows stand at this time.
#[must_use]
pub fn standing(windows: &[Window], now: Timestamp) -> Standing {
    let moment = Moment::at(windows, now);
    let change = next_change(windows, now, moment.is_open());
    if moment.is_open() {
        return Standing::Open { until: change };
    }
    let why = match moment.denied_by.map(|window| window.reason.as_str()) {
        Some("") => "a window denies".to_owned(),
        Some(reason) => reason.to_owned(),
        None => "outside every window".to_owned(),
    };
    Standing::Closed {
        why,
        opens: change,
        shown: change.map(|opens| shown(windows, now, opens)),
    }
}

/// What holds at one moment, and until when at least.
struct Moment<'a> {
    allowed: bool,
    denied_by: Option<&'a Window>,
    /// Nothing that matters changes before.
    next: Option<Timestamp>,
}

impl<'a> Moment<'a> {
    fn at(windows: &'a [Window], now: Timestamp) -> Self {
        let of = |kind: Kind| windows.iter().filter(move |window| window.kind == kind);
        let denying = of(Kind::Deny).filter_map(|window| Some((window, window.covers(now)?)));
        if let Some((denied_by, end)) = denying.max_by_key(|(_, end)| *end) {
            // Until then nothing that opens matters.
            return Self {
                allowed: false,
                denied_by: Some(denied_by),
                next: Some(end),
            };
        }
        let open_until = of(Kind::Allow).filter_map(|window| window.covers(now)).max();
        let always = of(Kind::Allow).next().is_none();
        let starts = |kind: Kind| of(kind).filter_map(|window| window.next_start(now)).min();
        let next = if always || open_until.is_some() {
            open_until.into_iter().chain(starts(Kind::Deny)).min()
        } else {
            starts(Kind::Allow)
        };
        Self {
            allowed: always || open_until.is_some(),
            denied_by: None,
            next,
        }
    }

    fn is_open(&self) -> bool {
        self.allowed && self.denied_by.is_none()
    }
}

/// When it next becomes what it is not.
fn next_change(windows: &[Window], now: Timestamp, open: bool) -> Option<Timestamp> {
    let horizon = now.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
    let mut time = now;
    for _ in 0..CHANGES {
        time = Moment::at(windows, time)
            .next
            .filter(|next| *next > time && *next <= horizon)?;
        if Moment::at(windows, time).is_open() != open {
            return Some(time);
        }
    }
    // Nothing known of the time after that: looked at again then.
    Some(time)
}

impl Window {
    /// Until when it holds, if it holds now.
    fn covers(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::Repeats(repeats) => repeats.covers(&self.zone, now),
            When::Dates { from, to } => {
                let (start, end) = self.days(*from, *to)?;
                (start <= now && now < end).then_some(end)
            }
        }
    }

    /// When it starts next, after this time.
    fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::Repeats(repeats) => repeats.next_start(&self.zone, now),
            When::Dates { from, to } => {
                let (start, _) = self.days(*from, *to)?;
                (start > now).then_some(start)
            }
        }
    }

    /// Begin of the first day, and of the day after the last.
    fn days(&self, from: Date, to: Date) -> Option<(Timestamp, Timestamp)> {
        let begin = |date: Date| date.to_zoned(self.zone.clone()).map(|begin| begin.timestamp()).ok();
        // After the last day that can be written down there is no end.
        let end = to.tomorrow().ok().and_then(begin).unwrap_or(Timestamp::MAX);
        Some((begin(from)?, end))
    }
}

/// A time as the people of the windows write it.
fn shown(windows: &[Window], now: Timestamp, opens: Timestamp) -> String {
    let starts = |window: &&Window| window.kind == Kind::Allow && window.covers(opens).is_some();
    let window = windows.iter().find(starts).or(windows.first());
    let zone = window.map_or(TimeZone::UTC, |window| window.zone.clone());
    let (today, then): (Zoned, Zoned) = (now.to_zoned(zone.clone()), opens.to_zoned(zone.clone()));
    let name = zone.iana_name().unwrap_or("UTC");
    if today.date() == then.date() {
        format!("window {} {name}", then.strftime("%H:%M"))
    } else {
        format!("window {} {name}", then.strftime("%Y-%m-%d %H:%M"))
    }
}
