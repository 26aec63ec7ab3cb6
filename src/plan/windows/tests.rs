//! The rules as examples; `oracle` has them as a property.

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use pretty_assertions::assert_eq;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn repeats(kind: Kind, cron: &str, lasts: SignedDuration, zone: &str) -> Window {
    Window {
        kind,
        when: When::Repeats(Repeats::parse(cron, lasts).unwrap()),
        zone: super::zone(zone).unwrap(),
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
        zone: super::zone("Europe/Berlin").unwrap(),
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
}

/// Also where a start comes each minute, and where windows close what others open.
#[test]
fn what_stays_so_for_good_has_no_end() {
    let hours = SignedDuration::from_hours;
    let all_day = |kind| repeats(kind, "0 0 * * *", hours(24), "UTC");
    assert_eq!(
        standing(&[all_day(Kind::Allow)], at("2026-11-02T00:00:00Z")),
        open(None)
    );
    let dense = repeats(Kind::Allow, "* * * * *", SignedDuration::from_mins(1), "UTC");
    assert_eq!(standing(&[dense], at("2026-11-02T00:00:30Z")), open(None));
    let denied = [
        repeats(Kind::Allow, "0 2 * * *", hours(1), "UTC"),
        repeats(Kind::Deny, "0 1 * * *", hours(4), "UTC"),
    ];
    let never = Standing::Closed {
        why: "outside every window".to_owned(),
        opens: None,
        shown: None,
    };
    assert_eq!(standing(&denied, at("2026-11-02T00:00:00Z")), never);
    // In Berlin a day of 25 hours comes first: all day long is not always.
    let berlin = repeats(Kind::Allow, "0 0 * * *", hours(24), "Europe/Berlin");
    assert_eq!(
        standing(&[berlin], at("2026-11-02T00:00:00Z")),
        open(Some("2027-10-31T22:00:00Z"))
    );
    // Each minute of 27 days, and then not.
    let month = repeats(Kind::Allow, "* * 1-27 * *", SignedDuration::from_mins(1), "UTC");
    assert_eq!(
        standing(&[month], at("2026-11-02T00:00:00Z")),
        open(Some("2026-11-28T00:00:00Z"))
    );
}

#[test]
fn an_opening_is_told_by_the_clock_of_its_window() {
    let windows = [year_end(), nights("America/New_York")];
    let Standing::Closed { shown, .. } = standing(&windows, at("2026-12-29T12:00:00Z")) else {
        panic!("open")
    };
    assert_eq!(shown.as_deref(), Some("window 2027-01-04 02:00 America/New_York"));
    // Where nothing allows, the end of what denies is an opening, too.
    let Standing::Closed { shown, why, .. } = standing(&[year_end()], at("2027-01-02T12:00:00Z")) else {
        panic!("open")
    };
    assert_eq!(shown.as_deref(), Some("window 2027-01-03 00:00 Europe/Berlin"));
    assert_eq!(why, "year-end");
}

/// In Samoa there was no 30 December 2011.
#[test]
fn a_day_that_was_skipped_has_no_length() {
    let days = |from: i8, to: i8| Window {
        when: When::Dates {
            from: date(2011, 12, from),
            to: date(2011, 12, to),
        },
        zone: super::zone("Pacific/Apia").unwrap(),
        ..year_end()
    };
    let now = at("2011-12-29T00:00:00Z");
    assert_eq!(standing(&[days(30, 30)], now), open(None));
    assert_eq!(standing(&[days(30, 31)], now), open(Some("2011-12-30T10:00:00Z")));
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
    // Half past two on the Sunday on which the clock skips it.
    let skipped = repeats(
        Kind::Allow,
        "30 2 25-31 3 +sun",
        SignedDuration::from_hours(1),
        "Europe/Berlin",
    );
    assert_eq!(standing(&[skipped], at("2026-11-02T00:00:00Z")), never);
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
        // No year has such a day.
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        // What the library would take in some other sense.
        "0 2 * * jan",
        "0 2 * mon *",
        "0 2 1mon * *",
        "0 2 1,, * *",
        "0 2 * * mon1",
        "0 2 * * sat-mon",
        "0 0 2 * * mon",
    ] {
        assert!(
            Repeats::parse(expression, SignedDuration::from_hours(1)).is_err(),
            "{expression:?}"
        );
    }
    for expression in [
        "@daily",
        "*/20 2-4 l * *",
        "0 2 15w jan,JUL-sep *",
        "0 2 lw * *",
        "0 2 * * 5l",
        "0 2 * * fri#2",
        "0 2 ? * Sat,sun",
        "0 2 1-7 * +mon",
    ] {
        Repeats::parse(expression, SignedDuration::from_hours(1)).expect(expression);
    }
}
