//! Windows against an oracle that knows no edges, only minutes: it walks them one by one, looks at the clock on the wall and
//! compares fields by hand. It shares no code with what it judges but the zones themselves.

use std::collections::{BTreeSet, HashSet};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{Kind, Repeats, Standing, When, Window, standing};

const ZONES: [&str; 9] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Antarctica/Troll",
];

const DAY: i64 = 1440;

/// Minutes by multiples of which clocks differ and are put.
const QUARTER: i8 = 15;

/// One field of an expression; `None` = any.
type Field = Option<BTreeSet<i8>>;

/// A window of the oracle.
#[derive(Clone, Debug)]
enum Plain {
    Repeats {
        minutes: BTreeSet<i8>,
        hours: Field,
        days: Field,
        months: Field,
        weekdays: Field,
        lasts: i64,
    },
    Dates {
        /// Days from the middle of the span.
        from: i64,
        days: i64,
    },
}

/// Windows with their zones, and where in time they are looked at.
#[derive(Clone, Debug)]
struct Case {
    windows: Vec<(Kind, Plain, usize)>,
    middle: i64,
}

fn listed(values: &BTreeSet<i8>) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(",")
}

fn any_or(field: &Field) -> String {
    field.as_ref().map_or("*".to_owned(), listed)
}

fn in_field(field: &Field, value: i8) -> bool {
    field.as_ref().is_none_or(|values| values.contains(&value))
}

fn local(zone: &TimeZone, minute: i64) -> DateTime {
    zone.to_datetime(Timestamp::from_second(minute * 60).unwrap())
}

fn day_from(middle: i64, days: i64) -> Date {
    local(&TimeZone::UTC, middle + days * DAY).date()
}

impl Plain {
    fn window(&self, kind: Kind, zone: &TimeZone, middle: i64) -> Window {
        let when = match self {
            Self::Repeats {
                minutes,
                hours,
                days,
                months,
                weekdays,
                lasts,
            } => {
                let expression = format!(
                    "{} {} {} {} {}",
                    listed(minutes),
                    any_or(hours),
                    any_or(days),
                    any_or(months),
                    any_or(weekdays)
                );
                When::Repeats(Repeats::parse(&expression, SignedDuration::from_mins(*lasts)).unwrap())
            }
            Self::Dates { from, days } => When::Dates {
                from: day_from(middle, *from),
                to: day_from(middle, from + days),
            },
        };
        Window {
            kind,
            when,
            zone: zone.clone(),
            reason: String::new(),
        }
    }

    /// Whether what the wall shows is a start.
    fn starts(&self, wall: DateTime) -> bool {
        let Self::Repeats {
            minutes,
            hours,
            days,
            months,
            weekdays,
            ..
        } = self
        else {
            return false;
        };
        let (by_day, by_weekday) = (
            in_field(days, wall.day()),
            in_field(weekdays, wall.weekday().to_sunday_zero_offset()),
        );
        // As with every cron: where both are given, one is enough.
        let day = if days.is_some() && weekdays.is_some() {
            by_day || by_weekday
        } else {
            by_day && by_weekday
        };
        day && minutes.contains(&wall.minute()) && in_field(hours, wall.hour()) && in_field(months, wall.month())
    }

    /// The minutes of a span in which it holds.
    fn minutes(&self, zone: &TimeZone, middle: i64, begin: i64, end: i64) -> Vec<bool> {
        let mut holds = vec![false; usize::try_from(end - begin).unwrap()];
        let mut mark = |from: i64, to: i64| {
            for minute in from.max(begin)..to.min(end) {
                holds[usize::try_from(minute - begin).unwrap()] = true;
            }
        };
        match self {
            Self::Repeats { lasts, minutes, .. } => {
                // Walls differ from UTC by whole quarters of an hour, so most minutes need no look at one.
                let near: HashSet<i64> = minutes.iter().map(|minute| i64::from(minute % QUARTER)).collect();
                let mut seen = HashSet::new();
                let mut held = i64::MIN;
                // From longer before the span than the window lasts, so that what began before it counts.
                for now in begin - lasts - 2 * DAY..end {
                    if !near.contains(&now.rem_euclid(i64::from(QUARTER))) {
                        continue;
                    }
                    let wall = local(zone, now);
                    // What is on the wall a second time is no start.
                    if self.starts(wall) && seen.insert(wall) {
                        mark(now.max(held), now + lasts);
                        held = now + lasts;
                    }
                }
            }
            Self::Dates { from, days } => {
                let (first, last) = (day_from(middle, *from), day_from(middle, from + days));
                let quarter = i64::from(QUARTER);
                for now in (begin - begin.rem_euclid(quarter)..end).step_by(usize::from(QUARTER.unsigned_abs())) {
                    let day = local(zone, now).date();
                    if first <= day && day <= last {
                        mark(now, now + quarter);
                    }
                }
            }
        }
        holds
    }
}

impl Case {
    fn zone(&self, index: usize) -> TimeZone {
        super::zone(ZONES[self.windows[index].2]).unwrap()
    }

    fn windows(&self) -> Vec<Window> {
        let windows = self.windows.iter().enumerate();
        windows
            .map(|(index, (kind, plain, _))| plain.window(*kind, &self.zone(index), self.middle))
            .collect()
    }

    /// Whether nodes may be replaced, minute by minute.
    fn open(&self, begin: i64, end: i64) -> Vec<bool> {
        let holds: Vec<(Kind, Vec<bool>)> = self
            .windows
            .iter()
            .enumerate()
            .map(|(index, (kind, plain, _))| (*kind, plain.minutes(&self.zone(index), self.middle, begin, end)))
            .collect();
        let any = |kind: Kind, at: usize| holds.iter().any(|(other, holds)| *other == kind && holds[at]);
        let always = holds.iter().all(|(kind, _)| *kind == Kind::Deny);
        (0..usize::try_from(end - begin).unwrap())
            .map(|at| (always || any(Kind::Allow, at)) && !any(Kind::Deny, at))
            .collect()
    }
}

fn field(all: std::ops::Range<i8>, most: usize, any: u32) -> impl Strategy<Value = Field> {
    prop_oneof![
        any => Just(None),
        2 => prop::collection::btree_set(all, 1..=most).prop_map(Some),
    ]
}

fn repeating() -> impl Strategy<Value = Plain> {
    let minutes = prop_oneof![
        3 => (0i8..60).prop_map(|minute| BTreeSet::from([minute])),
        2 => prop::sample::select(vec![0i8, 15, 30, 45]).prop_map(|minute| BTreeSet::from([minute])),
        1 => prop::sample::select(vec![1usize, 7, 20, 30]).prop_map(|step| (0i8..60).step_by(step).collect()),
    ];
    // Mostly around the hours at which clocks are put.
    let hours = prop_oneof![
        3 => prop::collection::btree_set(0i8..5, 1..4).prop_map(Some),
        1 => field(0..24, 6, 1),
    ];
    let lasts = prop_oneof![4 => 1i64..300, 2 => 300i64..2 * DAY, 1 => 2 * DAY..5 * DAY];
    (
        minutes,
        hours,
        field(1..29, 8, 4),
        field(1..13, 6, 8),
        field(0..7, 5, 2),
        lasts,
    )
        .prop_map(|(minutes, hours, days, months, weekdays, lasts)| Plain::Repeats {
            minutes,
            hours,
            days,
            months,
            weekdays,
            lasts,
        })
}

fn plain() -> impl Strategy<Value = Plain> {
    prop_oneof![
        4 => repeating(),
        1 => (-4i64..5, 0i64..4).prop_map(|(from, days)| Plain::Dates { from, days }),
    ]
}

/// A minute: near a change of one zone's clock, or any.
fn middle() -> impl Strategy<Value = i64> {
    (0..ZONES.len(), 2007i16..2040, 0i64..365, prop::bool::weighted(0.75)).prop_map(|(zone, year, day, near)| {
        let begin = Date::constant(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp();
        let some = begin + SignedDuration::from_hours(24 * day);
        let zone = super::zone(ZONES[zone]).unwrap();
        let change = zone.following(some).next().filter(|_| near);
        let there = change
            .map(|change| change.timestamp())
            .filter(|change| *change < begin + SignedDuration::from_hours(800 * 24));
        there.unwrap_or(some).as_second() / 60
    })
}

fn case() -> impl Strategy<Value = Case> {
    let window = (prop::bool::weighted(0.65), plain(), 0..ZONES.len());
    (prop::collection::vec(window, 1..4), middle()).prop_map(|(windows, middle)| {
        let kind = |allows| if allows { Kind::Allow } else { Kind::Deny };
        let windows = windows
            .into_iter()
            .map(|(allows, plain, zone)| (kind(allows), plain, zone));
        Case {
            windows: windows.collect(),
            middle,
        }
    })
}

fn ask(windows: &[Window], second: i64) -> (bool, Option<i64>) {
    let (open, change) = match standing(windows, Timestamp::from_second(second).unwrap()) {
        Standing::Open { until } => (true, until),
        Standing::Closed { opens, .. } => (false, opens),
    };
    (
        open,
        change.map(|change| {
            assert_eq!(change.as_second() % 60, 0, "all windows here change on the minute");
            change.as_second() / 60
        }),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// State and next change, at six seconds of some days.
    #[test]
    fn state_and_next_change_are_those_of_the_oracle(
        case in case(),
        probes in prop::collection::vec((0i64..6 * DAY, 0i64..60), 6),
    ) {
        let windows = case.windows();
        let (begin, end) = (case.middle - 3 * DAY, case.middle + 4 * DAY);
        let open = case.open(begin, end);
        let at = |minute: i64| open[usize::try_from(minute - begin).unwrap()];
        for (probe, second) in probes {
            let minute = begin + probe;
            let (is_open, change) = ask(&windows, minute * 60 + second);
            prop_assert_eq!(is_open, at(minute), "minute {}: {:?}", minute, &windows);
            match (minute + 1..end).find(|later| at(*later) != is_open) {
                Some(expected) => prop_assert_eq!(change, Some(expected), "minute {}: {:?}", minute, &windows),
                None => prop_assert!(change.is_none_or(|change| change >= end), "minute {}: {:?}", minute, &windows),
            }
        }
    }

    /// A change that is far away is one, and nothing changes before.
    #[test]
    fn a_far_change_is_one(case in case(), between in prop::collection::vec(0.0f64..1.0, 3)) {
        let windows = case.windows();
        let (is_open, Some(change)) = ask(&windows, case.middle * 60) else { return Ok(()) };
        prop_assert_eq!(case.open(change - 1, change + 1), vec![is_open, !is_open], "{:?}", &windows);
        for part in between {
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any minute will do")]
            let minute = case.middle + ((change - case.middle) as f64 * part) as i64;
            prop_assert_eq!(case.open(minute, minute + 1), vec![is_open], "minute {}: {:?}", minute, &windows);
        }
    }
}
