//! Windows that come again and again: a cron expression and how long each lasts.
//!
//! Owns when they start where clocks are put forward and back: a start in an hour that is skipped does not happen, one in an
//! hour that comes twice happens once, the first time. The expression itself is read by a library, on plain local times.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

/// Further than that no zone puts its clock at once (Antarctica/Troll: 2 h; Samoa skipped a day, and the islands of the date
/// line changed by that, too).
const LARGEST_SHIFT: SignedDuration = SignedDuration::from_hours(25);

/// Starts looked at around a change of the clock. A change is at most a day, and a start a minute the densest.
const STARTS: usize = 4_000;

/// A window that comes again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeats {
    cron: Box<Cron>,
    lasts: SignedDuration,
}

impl Repeats {
    /// From five fields (minute, hour, day of the month, month, day of the week) and a length.
    ///
    /// # Errors
    /// What is wrong with the expression, in words.
    pub fn parse(expression: &str, lasts: SignedDuration) -> Result<Self, String> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(expression).map_err(|error| error.to_string())?;
        let cron = Box::new(cron);
        Ok(Self { cron, lasts })
    }

    /// How long each lasts.
    #[must_use]
    pub fn lasts(&self) -> SignedDuration {
        self.lasts
    }

    /// The expression in English.
    #[must_use]
    pub fn describe(&self) -> String {
        self.cron.describe()
    }

    /// Until when it holds, if it holds now.
    pub(super) fn covers(&self, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let start = self.last_start(zone, now)?;
        let end = start.saturating_add(self.lasts).unwrap_or(Timestamp::MAX);
        (now < end).then_some(end)
    }

    /// The last start at or before this time.
    fn last_start(&self, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let around = Around::new(zone, now);
        // The earliest start that could still last.
        let oldest = zone.to_datetime(now.saturating_sub(self.lasts).unwrap_or(Timestamp::MIN));
        let mut local = around.latest;
        let mut inclusive = true;
        let mut best: Option<(Timestamp, DateTime)> = None;
        for _ in 0..STARTS {
            let found = self
                .cron
                .find_previous_occurrence(&plain(local)?, inclusive)
                .ok()?
                .datetime();
            inclusive = false;
            local = found;
            if let Some(start) = instant(zone, found).filter(|start| *start <= now)
                && best.is_none_or(|(known, _)| start > known)
            {
                best = Some((start, found));
            }
            // Starts in order on the wall may be out of order in time only as far as a clock is put.
            let done = best.is_some_and(|(_, at)| !around.shifts || at.duration_since(found) > LARGEST_SHIFT);
            if done || oldest.duration_since(found) > LARGEST_SHIFT {
                break;
            }
        }
        best.map(|(start, _)| start)
    }

    /// The first start after this time.
    pub(super) fn next_start(&self, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let around = Around::new(zone, now);
        let mut local = around.earliest;
        let mut best: Option<(Timestamp, DateTime)> = None;
        for _ in 0..STARTS {
            let Some(found) = self.next_local(local) else { break };
            local = found;
            if let Some(start) = instant(zone, found).filter(|start| *start > now)
                && best.is_none_or(|(known, _)| start < known)
            {
                best = Some((start, found));
            }
            if best.is_some_and(|(_, at)| !around.shifts || found.duration_since(at) > LARGEST_SHIFT) {
                break;
            }
        }
        best.map(|(start, _)| start)
    }

    fn next_local(&self, after: DateTime) -> Option<DateTime> {
        let found = self.cron.find_next_occurrence(&plain(after)?, false).ok()?;
        Some(found.datetime())
    }
}

/// A local time as the library reads it: in a zone whose clock is never put.
fn plain(local: DateTime) -> Option<Zoned> {
    local.to_zoned(TimeZone::UTC).ok()
}

/// The moment of a local time. None = the clock skips it. Of two the first.
fn instant(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => None,
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
    }
}

/// The local times around a moment between which starts may be out of order.
struct Around {
    earliest: DateTime,
    latest: DateTime,
    shifts: bool,
}

impl Around {
    fn new(zone: &TimeZone, now: Timestamp) -> Self {
        let local = zone.to_datetime(now);
        let day = LARGEST_SHIFT;
        let offsets = [now.saturating_sub(day), now.saturating_add(day)];
        let here = zone.to_offset(now);
        let shifts = offsets.into_iter().flatten().any(|time| zone.to_offset(time) != here);
        let margin = if shifts { day } else { SignedDuration::ZERO };
        Self {
            earliest: local.saturating_sub(margin),
            latest: local.saturating_add(margin),
            shifts,
        }
    }
}
