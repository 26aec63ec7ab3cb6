//! Windows that come again and again: a cron expression and how long each lasts.
//!
//! Owns when they start where clocks are put forward and back. The expression is read by a library and asked on plain local
//! times, because its own rules for such hours differ between expressions. Must not weigh windows against each other.

use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{DateTime, Time, date};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

use crate::api::duration::format_duration;

/// Starts looked at before a search is given up: all of them can lie in hours that the clock skips.
const STARTS: usize = 2_000;

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat", "l"];

/// A window that comes again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeats {
    cron: Box<Cron>,
    lasts: SignedDuration,
    /// The last start of a day, if all of a day touch each other.
    last_of_a_run: Option<Time>,
}

impl Repeats {
    /// From five fields (minute, hour, day of the month, month, day of the week) and a length.
    ///
    /// # Errors
    /// What is wrong with the expression, in words.
    pub fn parse(expression: &str, lasts: SignedDuration) -> Result<Self, String> {
        meant(expression)?;
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(expression).map_err(|error| error.to_string())?;
        let times = times(&cron);
        let any_day = date(2000, 1, 1).at(0, 0, 0, 0);
        if cron.find_next_occurrence(&any_day, true).is_err() {
            return Err("no year has such a day".to_owned());
        }
        let touch = times.windows(2).all(|pair| pair[0].duration_until(pair[1]) <= lasts);
        Ok(Self {
            cron: Box::new(cron),
            lasts,
            last_of_a_run: times.last().copied().filter(|_| times.len() > 1 && touch),
        })
    }

    /// Until when it holds at least, if it holds at this time.
    pub(super) fn covers(&self, zone: &TimeZone, at: Timestamp) -> Option<Timestamp> {
        // All last equally long: if one holds, the latest to start does.
        let start = self.run(self.last_start(zone, at)?, zone);
        let end = start.saturating_add(self.lasts).unwrap_or(Timestamp::MAX);
        (at < end).then_some(end)
    }

    /// The first start after this time.
    pub(super) fn next_start(&self, zone: &TimeZone, at: Timestamp) -> Option<Timestamp> {
        let mut local = whole_seconds(zone.to_datetime(at));
        for look in 0..STARTS {
            local = self.cron.find_next_occurrence(&local, look == 0).ok()?;
            // In an hour that comes twice, what the wall shows next may have been before.
            if let Some(start) = instant(zone, local).filter(|start| *start > at) {
                return Some(start);
            }
        }
        None
    }

    /// The last start at or before this time that may matter.
    fn last_start(&self, zone: &TimeZone, at: Timestamp) -> Option<Timestamp> {
        let oldest = zone.to_datetime(at.saturating_sub(self.lasts).unwrap_or(Timestamp::MIN));
        // No clock was ever put by more than a day.
        let oldest = oldest.saturating_sub(Span::new().days(2));
        let mut local = latest(zone, at);
        for look in 0..STARTS {
            local = self.cron.find_previous_occurrence(&local, look == 0).ok()?;
            if local < oldest {
                return None;
            }
            if let Some(start) = instant(zone, local).filter(|start| *start <= at) {
                return Some(start);
            }
        }
        None
    }

    /// The last start of that day, if the window holds from this one on without a break. So an expression with a start each
    /// minute is walked day by day; days on which the clock is put are walked start by start.
    fn run(&self, start: Timestamp, zone: &TimeZone) -> Timestamp {
        let Some(last) = self.last_of_a_run else {
            return start;
        };
        let day = zone.to_datetime(start).date();
        let Ok(next) = day.tomorrow() else {
            return start;
        };
        let (begin, end) = (super::begin(day, zone), super::begin(next, zone));
        let even =
            zone.to_offset(begin) == zone.to_offset(end) && end.duration_since(begin) == SignedDuration::from_hours(24);
        let last = instant(zone, day.to_datetime(last)).filter(|_| even);
        last.map_or(start, |last| last.max(start))
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let starts = self.cron.describe();
        let starts = starts.trim_end_matches('.').replacen("At", "at", 1);
        write!(f, "{starts}, for {}", format_duration(self.lasts.unsigned_abs()))
    }
}

/// The moment of a local time. None = the clock skips it. Of two the first.
fn instant(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => None,
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
    }
}

/// A local time after which nothing has come yet. In the second pass of an hour that comes twice that is not what the wall
/// shows: the first pass went further.
fn latest(zone: &TimeZone, at: Timestamp) -> DateTime {
    let local = whole_seconds(zone.to_datetime(at));
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { before, after } if zone.to_offset(at) == after => {
            let repeated = i64::from(before.seconds() - after.seconds());
            local.saturating_add(SignedDuration::from_secs(repeated))
        }
        _ => local,
    }
}

fn whole_seconds(local: DateTime) -> DateTime {
    local.with().subsec_nanosecond(0).build().unwrap_or(local)
}

/// The times of day of an expression, in order.
fn times(cron: &Cron) -> Vec<Time> {
    let (hours, minutes) = (cron.pattern.hours.values(), cron.pattern.minutes.values());
    let pairs = hours
        .iter()
        .flat_map(|hour| minutes.iter().map(move |minute| (*hour, *minute)));
    pairs
        .filter_map(|(hour, minute)| Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok())
        .collect()
}

/// Refuses what the library takes in a sense that nobody means: months among weekdays, words within numbers, empty items.
fn meant(expression: &str) -> Result<(), String> {
    if expression.starts_with('@') {
        return Ok(());
    }
    let fields: Vec<&str> = expression.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!("it has {} fields", fields.len()));
    }
    let known: [&[&str]; 5] = [&[], &[], &["l", "w", "lw"], MONTHS, WEEKDAYS];
    for (field, known) in fields.iter().zip(known) {
        if field.split(',').any(str::is_empty) {
            return Err(format!("{field} has an empty item"));
        }
        let field = field.to_lowercase();
        let mut words = field.split(|letter: char| !letter.is_alphanumeric());
        // Some letters belong to a number, as in 5l, the last Friday; names do not.
        let odd = words.find(|word| {
            let letters = word.trim_matches(|letter: char| letter.is_ascii_digit());
            let fits = letters == *word || ["l", "w"].contains(&letters);
            !(letters.is_empty() || (fits && known.contains(&letters)))
        });
        if let Some(word) = odd {
            return Err(format!("{word} means nothing at that place"));
        }
    }
    Ok(())
}
