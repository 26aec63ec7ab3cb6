//! Windows against an oracle that walks minute by minute, and the rules as examples.

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn repeats(kind: Kind, cron: &str, lasts: SignedDuration, zone: &str) -> Window {
    Window {
        kind,
        when: When::Repeats(Repeats::parse(cron, lasts).unwrap()),
        zone: TimeZone::get(zone).unwrap(),
        reason: String::new(),
    }
}

fn nights(zone: &str) -> Window {
    repeats(Kind::Allow, "0 2 * * mon-thu", SignedDuration::from_hours(4), zone)
}

fn year_end() -> Window {
    Window {
        kind: Kind::Deny,
        when: When::Dates {
            from: date(2026, 12, 20),
            to: date(2027, 1, 2),
        },
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        reason: "year-end".to_owned(),
    }
}

fn open(until: Option<&str>) -> Standing {
    Standing::Open { until: until.map(at) }
}

fn closed(why: &str, opens: &str, shown: &str) -> Standing {
    Standing::Closed {
        why: why.to_owned(),
        opens: Some(at(opens)),
        shown: Some(shown.to_owned()),
    }
}

#[test]
fn without_windows_it_is_open() {
    assert_eq!(standing(&[], at("2026-11-02T00:00:00Z")), open(None));
}

/// Scenario C29: one allow window closes the rest.
#[test]
fn outside_of_allow_windows_it_is_closed() {
    let windows = [nights("Europe/Berlin")];
    for (now, want) in [
        // Monday, 01:30 in Berlin.
        (
            "2026-11-02T00:30:00Z",
            closed(
                "outside every window",
                "2026-11-02T01:00:00Z",
                "window 02:00 Europe/Berlin",
            ),
        ),
        ("2026-11-02T01:00:00Z", open(Some("2026-11-02T05:00:00Z"))),
        ("2026-11-02T04:59:59Z", open(Some("2026-11-02T05:00:00Z"))),
        (
            "2026-11-02T05:00:00Z",
            closed(
                "outside every window",
                "2026-11-03T01:00:00Z",
                "window 2026-11-03 02:00 Europe/Berlin",
            ),
        ),
        // Thursday morning: the next is on Monday.
        (
            "2026-11-05T06:00:00Z",
            closed(
                "outside every window",
                "2026-11-09T01:00:00Z",
                "window 2026-11-09 02:00 Europe/Berlin",
            ),
        ),
    ] {
        assert_eq!(standing(&windows, at(now)), want, "{now}");
    }
}

#[test]
fn deny_beats_allow_and_its_days_belong_to_it() {
    let windows = [nights("Europe/Berlin"), year_end()];
    for (now, want) in [
        ("2026-12-17T02:00:00Z", open(Some("2026-12-17T05:00:00Z"))),
        // In Berlin the 20th begins at 23:00 UTC.
        (
            "2026-12-19T22:59:59Z",
            closed(
                "outside every window",
                "2027-01-04T01:00:00Z",
                "window 2027-01-04 02:00 Europe/Berlin",
            ),
        ),
        (
            "2026-12-21T02:00:00Z",
            closed(
                "year-end",
                "2027-01-04T01:00:00Z",
                "window 2027-01-04 02:00 Europe/Berlin",
            ),
        ),
    ] {
        assert_eq!(standing(&windows, at(now)), want, "{now}");
    }
    // Deny windows alone close nothing else (scenario C28).
    let only_deny = [year_end()];
    assert_eq!(
        standing(&only_deny, at("2026-11-02T00:00:00Z")),
        open(Some("2026-12-19T23:00:00Z"))
    );
    assert_eq!(standing(&only_deny, at("2027-01-02T23:00:00Z")), open(None));
}

/// A window belongs to the day of its start: that of Thursday reaches into Friday.
#[test]
fn the_weekday_is_that_of_the_start() {
    let windows = [repeats(
        Kind::Allow,
        "0 22 * * thu",
        SignedDuration::from_hours(8),
        "UTC",
    )];
    assert_eq!(
        standing(&windows, at("2026-11-06T05:59:00Z")),
        open(Some("2026-11-06T06:00:00Z"))
    );
    let next = closed(
        "outside every window",
        "2026-11-12T22:00:00Z",
        "window 2026-11-12 22:00 UTC",
    );
    assert_eq!(standing(&windows, at("2026-11-06T06:00:00Z")), next);
}

#[test]
fn windows_that_touch_are_one() {
    let hours = SignedDuration::from_hours;
    let windows = [
        repeats(Kind::Allow, "0 2 * * *", hours(2), "UTC"),
        repeats(Kind::Allow, "0 4 * * *", hours(2), "UTC"),
        repeats(Kind::Allow, "30 5 * * *", hours(1), "UTC"),
    ];
    assert_eq!(
        standing(&windows, at("2026-11-02T02:00:00Z")),
        open(Some("2026-11-02T06:30:00Z"))
    );
    // Day after day without an end: looked at again far away.
    let always = [repeats(Kind::Allow, "0 0 * * *", hours(24), "UTC")];
    match standing(&always, at("2026-11-02T00:00:00Z")) {
        Standing::Open { until: Some(until) } => assert!(until > at("2027-11-02T00:00:00Z")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_never_comes_has_no_time() {
    let never = Standing::Closed {
        why: "outside every window".to_owned(),
        opens: None,
        shown: None,
    };
    let past = Window {
        kind: Kind::Allow,
        when: When::Dates {
            from: date(2020, 1, 1),
            to: date(2020, 1, 1),
        },
        ..year_end()
    };
    assert_eq!(standing(&[past], at("2026-11-02T00:00:00Z")), never);
    let no_such_day = repeats(Kind::Allow, "0 0 30 2 *", SignedDuration::from_hours(1), "UTC");
    assert_eq!(standing(&[no_such_day], at("2026-11-02T00:00:00Z")), never);
    let leap = repeats(Kind::Allow, "0 0 29 2 *", SignedDuration::from_hours(1), "UTC");
    let Standing::Closed { opens, .. } = standing(&[leap], at("2026-11-02T00:00:00Z")) else {
        panic!("open")
    };
    assert_eq!(opens, Some(at("2028-02-29T00:00:00Z")));
}

/// Scenario C30: Berlin skips 02:00 to 03:00 on 29 March 2026, and has it twice on 25 October.
#[test]
fn where_clocks_are_put() {
    let window = |cron: &str| {
        [repeats(
            Kind::Allow,
            cron,
            SignedDuration::from_hours(2),
            "Europe/Berlin",
        )]
    };
    let skipped = standing(&window("30 2 * * *"), at("2026-03-28T23:30:00Z"));
    let Standing::Closed { opens, .. } = skipped else {
        panic!("open")
    };
    assert_eq!(
        opens,
        Some(at("2026-03-30T00:30:00Z")),
        "the skipped start does not happen"
    );
    let twice = window("30 2 * * *");
    assert_eq!(
        standing(&twice, at("2026-10-25T00:30:00Z")),
        open(Some("2026-10-25T02:30:00Z"))
    );
    let Standing::Closed { opens, .. } = standing(&twice, at("2026-10-25T02:30:00Z")) else {
        panic!("once only")
    };
    assert_eq!(opens, Some(at("2026-10-26T01:30:00Z")));
    // It lasts two hours by a clock that is not put: 01:30 to 04:30 on the wall in spring, 01:30 to 02:30 in autumn.
    let across = window("30 1 * * *");
    assert_eq!(
        standing(&across, at("2026-03-29T00:30:00Z")),
        open(Some("2026-03-29T02:30:00Z"))
    );
    assert_eq!(
        standing(&across, at("2026-10-24T23:30:00Z")),
        open(Some("2026-10-25T01:30:00Z"))
    );
}

#[test]
fn nonsense_is_refused() {
    for expression in [
        "",
        "* * * *",
        "0 2 * * mon-thu *",
        "61 * * * *",
        "0 25 * * *",
        "0 2 * * funday",
        "@daily @daily",
    ] {
        assert!(
            Repeats::parse(expression, SignedDuration::from_hours(1)).is_err(),
            "{expression:?}"
        );
    }
}

/// A window of the oracle: fields by hand, none of the product's code.
#[derive(Clone, Debug)]
enum Plain {
    Repeats {
        minute: i8,
        hours: Vec<i8>,
        weekdays: Vec<i8>,
        lasts: i64,
    },
    Dates {
        from: Date,
        days: i64,
    },
}

const NAMES: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Plain {
    fn window(&self, kind: Kind, zone: &TimeZone) -> Window {
        let when = match self {
            Self::Repeats {
                minute,
                hours,
                weekdays,
                lasts,
            } => {
                let hours: Vec<String> = hours.iter().map(ToString::to_string).collect();
                let days: Vec<&str> = weekdays
                    .iter()
                    .map(|day| NAMES[usize::try_from(*day).unwrap()])
                    .collect();
                let cron = format!("{minute} {} * * {}", hours.join(","), days.join(","));
                When::Repeats(Repeats::parse(&cron, SignedDuration::from_mins(*lasts)).unwrap())
            }
            Self::Dates { from, days } => When::Dates {
                from: *from,
                to: from.checked_add(SignedDuration::from_hours(24 * days)).unwrap(),
            },
        };
        Window {
            kind,
            when,
            zone: zone.clone(),
            reason: String::new(),
        }
    }

    /// The minutes of a span in which it holds.
    fn minutes(&self, zone: &TimeZone, begin: i64, end: i64) -> Vec<bool> {
        let mut holds = vec![false; usize::try_from(end - begin).unwrap()];
        match self {
            Self::Repeats {
                minute,
                hours,
                weekdays,
                lasts,
            } => {
                let mut seen = std::collections::HashSet::new();
                // Longer before the span than any window lasts, so that what began before it counts.
                for now in begin - lasts - 2 * 1440..end {
                    let local = zone.to_datetime(Timestamp::from_second(now * 60).unwrap());
                    let weekday = local.weekday().to_sunday_zero_offset();
                    let starts =
                        local.minute() == *minute && hours.contains(&local.hour()) && weekdays.contains(&weekday);
                    // What is on the wall a second time is no start.
                    if starts && seen.insert(local) {
                        for held in now.max(begin)..(now + lasts).min(end) {
                            holds[usize::try_from(held - begin).unwrap()] = true;
                        }
                    }
                }
            }
            Self::Dates { from, days } => {
                for now in begin..end {
                    let day = zone.to_datetime(Timestamp::from_second(now * 60).unwrap()).date();
                    let last = from.checked_add(SignedDuration::from_hours(24 * days)).unwrap();
                    holds[usize::try_from(now - begin).unwrap()] = *from <= day && day <= last;
                }
            }
        }
        holds
    }
}

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Africa/Casablanca",
];

/// Days around which clocks were put somewhere, and some on which none was.
const DAYS: [&str; 10] = [
    "2026-03-29",
    "2026-10-25",
    "2026-03-08",
    "2026-11-01",
    "2026-04-05",
    "2026-10-04",
    "2011-12-30",
    "2018-11-04",
    "2027-02-28",
    "2028-02-29",
];

fn plain() -> impl Strategy<Value = Plain> {
    let repeats = (
        prop_oneof![Just(0i8), Just(30), 0i8..60],
        prop::collection::btree_set(0i8..24, 1..4),
        prop::collection::btree_set(0i8..7, 1..8),
        prop_oneof![Just(60i64), Just(240), 1i64..3000],
    );
    prop_oneof![
        4 => repeats.prop_map(|(minute, hours, weekdays, lasts)| Plain::Repeats {
            minute,
            hours: hours.into_iter().collect(),
            weekdays: weekdays.into_iter().collect(),
            lasts,
        }),
        1 => (0usize..DAYS.len(), -3i64..3, 0i64..3).prop_map(|(day, shift, days)| Plain::Dates {
            from: DAYS[day].parse::<Date>().unwrap().checked_add(SignedDuration::from_hours(24 * shift)).unwrap(),
            days,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// State and next change are those of an oracle that knows no edges, only minutes.
    #[test]
    fn as_the_oracle_sees_it(
        allow in prop::collection::vec((plain(), 0usize..ZONES.len()), 0..3),
        deny in prop::collection::vec((plain(), 0usize..ZONES.len()), 0..2),
        day in 0usize..DAYS.len(),
        shift in -2i64..3,
        probes in prop::collection::vec(0i64..4 * 1440, 6),
    ) {
        let zone = |index: usize| TimeZone::get(ZONES[index]).unwrap();
        let midnight = DAYS[day].parse::<Date>().unwrap().to_zoned(TimeZone::UTC).unwrap().timestamp();
        let begin = midnight.as_second() / 60 + shift * 1440;
        let end = begin + 9 * 1440;
        let of = |list: &[(Plain, usize)]| -> Vec<Vec<bool>> {
            list.iter().map(|(plain, index)| plain.minutes(&zone(*index), begin, end)).collect()
        };
        let (allowing, denying) = (of(&allow), of(&deny));
        let open_at = |minute: i64| {
            let at = usize::try_from(minute - begin).unwrap();
            let allowed = allowing.is_empty() || allowing.iter().any(|holds| holds[at]);
            allowed && !denying.iter().any(|holds| holds[at])
        };
        let mut windows: Vec<Window> = allow.iter().map(|(plain, index)| plain.window(Kind::Allow, &zone(*index))).collect();
        windows.extend(deny.iter().map(|(plain, index)| plain.window(Kind::Deny, &zone(*index))));
        for probe in probes {
            let minute = begin + probe;
            let now = Timestamp::from_second(minute * 60).unwrap();
            let (is_open, change) = match standing(&windows, now) {
                Standing::Open { until } => (true, until),
                Standing::Closed { opens, .. } => (false, opens),
            };
            prop_assert_eq!(is_open, open_at(minute), "at {}: {:?}", now, &windows);
            let expected = (minute + 1..end).find(|later| open_at(*later) != is_open);
            let change = change.map(|change| change.as_second() / 60);
            match expected {
                Some(expected) => prop_assert_eq!(change, Some(expected), "from {}: {:?}", now, &windows),
                None => prop_assert!(change.is_none_or(|change| change >= end), "from {}: {:?}", now, &windows),
            }
        }
    }
}
