//! How all windows of a schedule stand together.
//!
//! Owns their weighing and the walk to the next change. Must not know what a window is made of.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Kind, Window};

/// Edges that the walk passes before it takes things as staying so for good: ten years of one window a day.
const EDGES: usize = 4_000;

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
        /// Why: `outside every window`, or the reason of the window that denies.
        why: String,
        /// When they may again, if ever.
        opens: Option<Timestamp>,
        /// The same as people of that zone write it: `window 02:00 Europe/Berlin`, with the date where that is not today.
        shown: Option<String>,
    },
}

/// How windows stand at this time. No window at all = always open.
///
/// A change that is told is exact. None is told where none comes, or only after more windows than ten years of daily ones.
#[must_use]
pub fn standing(windows: &[Window], now: Timestamp) -> Standing {
    let moment = Moment::at(windows, now);
    let change = change(windows, now, &moment);
    if moment.is_open() {
        return Standing::Open { until: change };
    }
    Standing::Closed {
        why: why(windows, now),
        opens: change,
        shown: change.map(|opens| shown(now, opens, &zone_of(windows, now, opens))),
    }
}

/// What holds at one moment, and until when at least.
enum Moment {
    /// A window denies; what allows does not matter.
    Denied(Timestamp),
    /// A window allows and none denies; without an end where no window has to allow.
    Allowed(Option<Timestamp>),
    /// Outside every window.
    Outside,
}

impl Moment {
    fn at(windows: &[Window], at: Timestamp) -> Self {
        let end = |kind| of(windows, kind).filter_map(|window| window.covers(at)).max();
        if let Some(end) = end(Kind::Deny) {
            return Self::Denied(end);
        }
        match end(Kind::Allow) {
            None if of(windows, Kind::Allow).next().is_some() => Self::Outside,
            end => Self::Allowed(end),
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }
}

/// When it is different from now for the first time: from one edge at which it may be to the next.
fn change(windows: &[Window], now: Timestamp, present: &Moment) -> Option<Timestamp> {
    let start = |kind, at| of(windows, kind).filter_map(|window| window.next_start(at)).min();
    let mut edge = match present {
        Moment::Denied(end) => Some(*end),
        Moment::Allowed(end) => *end,
        Moment::Outside => start(Kind::Allow, now),
    };
    // What denies ends an open time in the middle; in a closed one it is met at its edges.
    let denial = start(Kind::Deny, now).filter(|_| present.is_open());
    for _ in 0..EDGES {
        let at = edge.into_iter().chain(denial).min().filter(|at| *at < Timestamp::MAX)?;
        let moment = Moment::at(windows, at);
        if moment.is_open() != present.is_open() {
            return Some(at);
        }
        edge = match moment {
            Moment::Denied(end) => Some(end),
            Moment::Allowed(end) => end,
            Moment::Outside => start(Kind::Allow, at),
        };
    }
    None
}

fn of(windows: &[Window], kind: Kind) -> impl Iterator<Item = &Window> {
    windows.iter().filter(move |window| window.kind == kind)
}

fn denying(windows: &[Window], at: Timestamp) -> Option<&Window> {
    of(windows, Kind::Deny).find(|window| window.covers(at).is_some())
}

fn why(windows: &[Window], now: Timestamp) -> String {
    match denying(windows, now) {
        Some(window) if window.reason.is_empty() => "a window denies".to_owned(),
        Some(window) => window.reason.clone(),
        None => "outside every window".to_owned(),
    }
}

/// Whose clock an opening is told by: that of the window it is in, or else of the one whose end it is.
fn zone_of(windows: &[Window], now: Timestamp, opens: Timestamp) -> TimeZone {
    let entered = of(windows, Kind::Allow).find(|window| window.covers(opens).is_some());
    let window = entered.or_else(|| denying(windows, now));
    window.map_or(TimeZone::UTC, |window| window.zone.clone())
}

/// A time as the people of the windows write it.
fn shown(now: Timestamp, opens: Timestamp, zone: &TimeZone) -> String {
    let local = zone.to_datetime(opens);
    let name = zone.iana_name().unwrap_or("UTC");
    let today = local.date() == zone.to_datetime(now).date();
    let format = if today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    format!("window {} {name}", local.strftime(format))
}
