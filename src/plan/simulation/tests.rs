//! Replays: tiers, weekly releases against a one-week rule, withdrawals, windows, caps.

use pretty_assertions::assert_eq;

use super::*;
use crate::plan::settings::read;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn group(namespace: &str, name: &str) -> Group {
    Group {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        namespace_labels: BTreeMap::from([("instancemgr.keikoproj.io/tier".to_owned(), namespace.to_owned())]),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        takes: SignedDuration::from_hours(1),
    }
}

fn release(at_: &str, image: &str) -> Release {
    Release {
        at: at(at_),
        image: image.to_owned(),
        withdrawn: None,
    }
}

fn tier(name: &str, image: &str, rest: &str) -> String {
    format!(
        "- name: {name}\n  match: {{namespaceSelector: {{matchLabels: {{instancemgr.keikoproj.io/tier: {name}}}}}}}\n  image: {image}\n{rest}"
    )
}

fn run(schedules: &[String], groups: &[Group], releases: &[Release]) -> Vec<Outcome> {
    let text = format!("locks: [{{}}]\nschedules:\n{}", schedules.concat());
    let settings = read(&text).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    replay(&settings, 10, groups, releases, at("2027-01-01T00:00:00Z"))
}

/// Hours from a release to what came of it: approved, started, finished.
fn hours(outcome: &Outcome, since: &str) -> [Option<i64>; 3] {
    [outcome.approved, outcome.started, outcome.finished]
        .map(|time| time.map(|time| time.duration_since(at(since)).as_hours()))
}

const FIRST: &str = "2026-03-02T12:00:00Z";
const SECOND: &str = "2026-03-09T12:00:00Z";

#[test]
fn tiers_follow_at_their_times() {
    let schedules = [
        tier("dev", "{after: 0s}", ""),
        tier("staging", "{after: 48h}", ""),
        tier("prod", "{after: 7d}", ""),
    ];
    let groups = [
        group("dev", "a"),
        group("staging", "a"),
        group("prod", "a"),
        group("none", "a"),
    ];
    let outcomes = run(
        &schedules,
        &groups,
        &[release(FIRST, "ami-1"), release(SECOND, "ami-2")],
    );
    let seen: Vec<_> = outcomes.iter().map(|outcome| hours(outcome, SECOND)).collect();
    assert_eq!(
        seen,
        [
            [Some(0), Some(0), Some(1)],
            [Some(48), Some(48), Some(49)],
            [Some(168), Some(168), Some(169)],
            [None, None, None],
        ]
    );
    assert_eq!(outcomes[3].waited, ["no schedule is for this group"]);
}

/// Gate rule L6: releases faster than the rule do not starve it.
#[test]
fn weekly_releases_do_not_starve_a_longer_rule() {
    let releases: Vec<Release> = (0..12)
        .map(|week| Release {
            at: at(FIRST) + SignedDuration::from_hours(week * 100),
            image: format!("ami-{week}"),
            withdrawn: None,
        })
        .collect();
    let finished = |rule: &str| {
        let outcomes = run(&[tier("prod", rule, "")], &[group("prod", "a")], &releases);
        outcomes.iter().filter(|outcome| outcome.finished.is_some()).count()
    };
    // Each is done 168 hours after its release; of the first the fleet is made.
    assert_eq!(finished("{after: 7d, onNewer: keep}"), 11);
    assert_eq!(
        finished("{after: 7d, onNewer: restart}"),
        1,
        "only the last one lives long enough"
    );
}

/// Scenario C15: a pending upgrade ends by itself, and who runs the image goes back at once.
#[test]
fn a_withdrawal_ends_what_waits_and_turns_back_what_runs() {
    let schedules = [tier("dev", "{after: 0s}", ""), tier("prod", "{after: 7d}", "")];
    let mut bad = release(SECOND, "ami-2");
    bad.withdrawn = Some(at(SECOND) + SignedDuration::from_hours(24));
    let outcomes = run(
        &schedules,
        &[group("dev", "a"), group("prod", "a")],
        &[release(FIRST, "ami-1"), bad],
    );
    assert_eq!(outcomes.len(), 3);
    assert_eq!(outcomes[1].dropped.as_deref(), Some("went back to what runs"));
    assert_eq!(
        (outcomes[2].image.as_str(), hours(&outcomes[2], SECOND)),
        ("ami-1", [Some(24), Some(24), Some(25)])
    );
}

#[test]
fn windows_proof_and_caps_are_waited_for() {
    let nights = "  windows: [{kind: allow, schedule: 0 2 * * *, duration: 2h}]\n";
    let outcomes = run(
        &[tier("prod", "{after: 0s}", nights)],
        &[Group {
            takes: SignedDuration::from_hours(3),
            ..group("prod", "a")
        }],
        &[release(FIRST, "ami-1"), release(SECOND, "ami-2")],
    );
    // Two hours of the first night, one of the second.
    assert_eq!(hours(&outcomes[0], SECOND), [Some(0), Some(14), Some(39)]);
    assert_eq!(outcomes[0].waited, ["window closed (outside every window)"]);

    let schedules = [
        tier("dev", "{after: 10h}", ""),
        tier("prod", "{after: 12h, soak: {schedule: dev, for: 24h}}", ""),
    ];
    let outcomes = run(
        &schedules,
        &[group("dev", "a"), group("prod", "a")],
        &[release(FIRST, "ami-1"), release(SECOND, "ami-2")],
    );
    assert_eq!(hours(&outcomes[1], SECOND), [Some(35), Some(35), Some(36)]);

    let groups: Vec<Group> = (0..5).map(|number| group("dev", &number.to_string())).collect();
    let outcomes = run(
        &[tier("dev", "{after: 0s}", "  maxConcurrentRollouts: 2\n")],
        &groups,
        &[release(FIRST, "ami-1"), release(SECOND, "ami-2")],
    );
    let finished: Vec<_> = outcomes
        .iter()
        .map(|outcome| hours(outcome, SECOND)[2].unwrap())
        .collect();
    assert_eq!(finished, [1, 1, 2, 2, 3]);
    assert_eq!(outcomes[4].waited, ["slot"]);
}
