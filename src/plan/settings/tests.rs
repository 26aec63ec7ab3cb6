//! What is read, and what is refused with which line and field.

use std::fmt::Write as _;

use jiff::SignedDuration;
use pretty_assertions::assert_eq;

use super::*;

const TIERS: &str = r#"
locks:
- {namespaceSelector: {matchLabels: {instancemgr.keikoproj.io/tier: prod}}, except: {groupSelector: {matchLabels: {instancemgr.keikoproj.io/canary: "yes"}}}, reason: audit, until: "2026-12-31T18:00:00+01:00"}
- {}
freeze: {enabled: false, reason: "", until: ""}
maxConcurrentRollouts: 10
autoApprover: {enabled: true}
schedules:
- name: dev
  match: {namespaceSelector: {matchLabels: {instancemgr.keikoproj.io/tier: dev}}}
  image: {after: 0s}
- name: staging
  match: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [staging]}]}}
  image: {after: 48h}
  spec: {after: 1d12h}
  kubernetesVersion: manual
  rollback: manual
- name: prod
  match: {groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: prod}}}
  image: {after: 7d, onNewer: restart, basis: FirstSeen, settle: 20m, soak: {schedule: staging, for: 48h}}
  windows:
  - {kind: allow, schedule: "0 2 * * mon-thu", duration: 4h, timeZone: Europe/Berlin}
  - {kind: deny, from: 2026-12-20, to: 2027-01-02, reason: year-end}
  overrun: true
  maxConcurrentRollouts: 2
history: {ttl: 0s}
"#;

#[test]
fn the_whole_text_is_read() {
    let hours = SignedDuration::from_hours;
    let settings = read(TIERS).unwrap();
    let locks = settings.locks.unwrap();
    assert_eq!(locks.len(), 2);
    assert_eq!(
        (locks[0].reason.as_str(), locks[0].until.unwrap().to_string().as_str()),
        ("audit", "2026-12-31T17:00:00Z")
    );
    assert_eq!(locks[1], LockRule::default());
    assert_eq!(settings.freeze, Freeze::default());
    assert_eq!(
        (settings.max_concurrent_rollouts, settings.auto_approver),
        (Some(10), true)
    );
    assert_eq!(settings.finished_kept, SignedDuration::ZERO);
    let [dev, staging, prod] = settings.schedules.as_slice() else {
        panic!()
    };
    let image = dev.image.clone().unwrap();
    assert_eq!(
        (image.after, image.settle, image.on_newer),
        (SignedDuration::ZERO, SignedDuration::ZERO, OnNewer::Restart)
    );
    assert_eq!(
        (dev.spec, dev.rollback),
        (Rule::Manual, Rule::After(SignedDuration::ZERO))
    );
    let image = staging.image.clone().unwrap();
    assert_eq!(
        (image.after, image.settle, image.on_newer),
        (hours(48), SignedDuration::from_mins(10), OnNewer::Keep)
    );
    assert_eq!(image.basis, Basis::SsmLastModified);
    assert_eq!((staging.spec, staging.rollback), (Rule::After(hours(36)), Rule::Manual));
    let image = prod.image.clone().unwrap();
    assert_eq!(
        (image.after, image.settle, image.on_newer, image.basis),
        (
            hours(168),
            SignedDuration::from_mins(20),
            OnNewer::Restart,
            Basis::FirstSeen
        )
    );
    assert_eq!(
        image.soak,
        Some(Soak {
            schedule: "staging".to_owned(),
            lasts: hours(48)
        })
    );
    assert_eq!(
        (prod.windows.len(), prod.overrun, prod.max_concurrent_rollouts),
        (2, true, Some(2))
    );
    assert_eq!(prod.windows[1].reason, "year-end");
}

#[test]
fn what_is_absent_has_a_default_and_locks_have_none() {
    for text in ["{}", "# nothing\n", "history: {}"] {
        assert_eq!(read(text).unwrap(), Settings::default(), "{text}");
    }
    assert_eq!(read("locks: []").unwrap().locks, Some(Vec::new()));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn mistakes_are_told_with_line_and_field() {
    let schedule = |rest: &str| format!("schedules:\n- name: a\n  match: {{}}\n  {rest}\n");
    let windows = |window: &str| schedule(&format!("windows:\n  - {{{window}}}"));
    let selector = |selector: &str| format!("locks:\n- groupSelector: {{{selector}}}");
    let cases: Vec<(String, usize, &str, &str)> = vec![
        ("lock: []".into(), 1, "lock", "no such key; there are locks, freeze"),
        ("locks:".into(), 1, "locks", "to unlock, write locks: []"),
        ("locks: {}".into(), 1, "locks", "holds a map; write a list"),
        ("- locks".into(), 1, "", "holds a list; write a map"),
        ("maybe".into(), 1, "", "holds a text; write a map"),
        ("locks: [\n".into(), 1, "", "unclosed bracket"),
        ("locks: []\nlocks: []".into(), 2, "locks", "second time"),
        (
            "freeze:\n  enabled: maybe".into(),
            2,
            "freeze.enabled",
            "write true or false",
        ),
        (
            "freeze:\n  enabled: \"true\"".into(),
            2,
            "freeze.enabled",
            "write true or false",
        ),
        ("freeze: {until: tomorrow}".into(), 1, "freeze.until", "with its offset"),
        (
            "freeze: {until: 2026-12-31}".into(),
            1,
            "freeze.until",
            "with its offset",
        ),
        (
            "maxConcurrentRollouts: 0".into(),
            1,
            "maxConcurrentRollouts",
            "a number from 1",
        ),
        (
            "maxConcurrentRollouts: ten".into(),
            1,
            "maxConcurrentRollouts",
            "a number from 1",
        ),
        ("history: {ttl: 1 hour}".into(), 1, "history.ttl", "as 48h or 1d12h"),
        ("history: {ttl: 100000d}".into(), 1, "history.ttl", "ten years"),
        ("history: {ttl: 5}".into(), 1, "history.ttl", "a text"),
        (
            "locks:\n- except: {}".into(),
            2,
            "locks[0].except",
            "lift the lock for all",
        ),
        (
            selector("matchLabels: {team: blue}"),
            2,
            "locks[0].groupSelector.matchLabels.team",
            "tenants may change",
        ),
        (
            selector("matchLabels: {kubernetes.io/metadata.name: x}"),
            2,
            "locks[0].groupSelector.matchLabels.kubernetes.io/metadata.name",
            "tenants may change",
        ),
        (
            selector("matchLabels: {instancemgr.keikoproj.io/x: true}"),
            2,
            "locks[0].groupSelector.matchLabels.instancemgr.keikoproj.io/x",
            "in quotes",
        ),
        (
            selector("matchExpressions: [{key: instancemgr.keikoproj.io/x, operator: Is}]"),
            2,
            "locks[0].groupSelector.matchExpressions[0]",
            "In, NotIn, Exists or DoesNotExist",
        ),
        (
            selector("matchExpressions: [{key: instancemgr.keikoproj.io/x, operator: In, values: []}]"),
            2,
            "locks[0].groupSelector.matchExpressions[0]",
            "at least one",
        ),
        (
            selector("matchExpressions: [{key: instancemgr.keikoproj.io/x, operator: Exists, values: [a]}]"),
            2,
            "locks[0].groupSelector.matchExpressions[0]",
            "takes no values",
        ),
        ("schedules:\n- match: {}".into(), 2, "schedules[0]", "needs a name"),
        (
            "schedules:\n- name: manual\n  match: {}".into(),
            2,
            "schedules[0].name",
            "needs a name",
        ),
        (
            "schedules:\n- name: a".into(),
            2,
            "schedules[0]",
            "match: {} for every group",
        ),
        (
            "schedules:\n- {name: a, match: {}}\n- {name: a, match: {}}".into(),
            3,
            "schedules[1].name",
            "schedules[0] is called \"a\" already",
        ),
        (
            schedule("image: {}"),
            4,
            "schedules[0].image",
            "write {after: 48h}, or manual",
        ),
        (schedule("image: {after: -1h}"), 4, "schedules[0].image.after", "as 48h"),
        (schedule("image: later"), 4, "schedules[0].image", "write a map"),
        (
            schedule("image: {after: 1h, onNewer: drop}"),
            4,
            "schedules[0].image.onNewer",
            "keep, restart",
        ),
        (
            schedule("image: {after: 1h, basis: Birthday}"),
            4,
            "schedules[0].image.basis",
            "SSMLastModified",
        ),
        (
            schedule("image: {after: 1h, soak: {schedule: b, for: 1h}}"),
            4,
            "schedules[0].image.soak.schedule",
            "no schedule \"b\"; there are a",
        ),
        (
            schedule("image: {after: 1h, soak: {schedule: a, for: 1h}}"),
            4,
            "schedules[0].image.soak.schedule",
            "its own groups",
        ),
        (
            schedule("image: {after: 1h, soak: {schedule: a}}"),
            4,
            "schedules[0].image.soak",
            "for: 48h",
        ),
        (
            schedule("image: {after: 1h, soak: {schedule: a, for: 0s}}"),
            4,
            "schedules[0].image.soak.for",
            "longer than nothing",
        ),
        (schedule("spec: {after: soon}"), 4, "schedules[0].spec.after", "as 48h"),
        (schedule("overrun: perhaps"), 4, "schedules[0].overrun", "true or false"),
        (
            windows("kind: open, from: 2026-01-01, to: 2026-01-02"),
            5,
            "schedules[0].windows[0].kind",
            "kind: allow",
        ),
        (
            windows("kind: allow"),
            5,
            "schedules[0].windows[0]",
            "either schedule and duration",
        ),
        (
            windows("kind: allow, schedule: 0 2 * * *, duration: 1h, from: 2026-01-01"),
            5,
            "schedules[0].windows[0]",
            "either",
        ),
        (
            windows("kind: allow, schedule: 0 25 * * *, duration: 1h"),
            5,
            "schedules[0].windows[0].schedule",
            "is no schedule",
        ),
        (
            windows("kind: allow, schedule: 0 2 * * *, duration: 0s"),
            5,
            "schedules[0].windows[0].duration",
            "longer",
        ),
        (
            windows("kind: allow, schedule: 0 2 * * *, duration: 1h, timeZone: Berlin"),
            5,
            "schedules[0].windows[0].timeZone",
            "IANA name",
        ),
        (
            windows("kind: deny, from: 2026-02-30, to: 2026-03-01"),
            5,
            "schedules[0].windows[0].from",
            "is no date",
        ),
        (
            windows("kind: deny, from: 2026-03-02, to: 2026-03-01"),
            5,
            "schedules[0].windows[0].to",
            "before from",
        ),
        (
            windows("kind: allow, schedule: 0 2 30 2 *, duration: 1h"),
            5,
            "schedules[0].windows[0].schedule",
            "no year has such a day",
        ),
        // An entry that lost its value widens nothing.
        (
            "schedules:\n- name: a\n  match:\n    groupSelector:".into(),
            4,
            "schedules[0].match.groupSelector",
            "says nothing",
        ),
        (schedule("windows:"), 4, "schedules[0].windows", "says nothing"),
        (schedule("image:"), 4, "schedules[0].image", "says nothing"),
        ("schedules:\n- ".into(), 2, "schedules[0]", "holds nothing"),
        (
            selector("matchLabels: {instancemgr.keikoproj.io/x: \"a b\"}"),
            2,
            "locks[0].groupSelector.matchLabels.instancemgr.keikoproj.io/x",
            "no label has the value",
        ),
        (
            selector("matchLabels: {instancemgr.keikoproj.io/x: a, instancemgr.keikoproj.io/x: b}"),
            2,
            "locks[0].groupSelector.matchLabels.instancemgr.keikoproj.io/x",
            "second time",
        ),
        (
            selector("matchLabels: {instancemgr.keikoproj.io/: a}"),
            2,
            "locks[0].groupSelector.matchLabels.instancemgr.keikoproj.io/",
            "use one under",
        ),
        (
            "schedules: [{name: 1e3, match: {}}]".into(),
            1,
            "schedules[0].name",
            "in quotes",
        ),
        (
            "freeze: &a {}\nhistory: {<<: *a}".into(),
            2,
            "",
            "write the entries out",
        ),
        ("freeze: {}\n---\nfreeze: {}".into(), 3, "", "a second document"),
    ];
    for (text, line, field, message) in cases {
        let mistakes = read(&text).expect_err(&text);
        let found = mistakes.iter().any(|mistake| {
            (mistake.line, mistake.field.as_str()) == (line, field) && mistake.message.contains(message)
        });
        assert!(found, "{text}\n{mistakes:#?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "freeze: {enabled: 1}\nschedules:\n- name: a\n  match: {}\n  image: {after: x}\n  oops: 1\n";
    let lines: Vec<usize> = read(text).unwrap_err().iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [1, 5, 6]);
}

#[test]
fn input_that_would_hurt_is_refused() {
    assert!(
        read(&"# \n".repeat(100_000)).unwrap_err()[0]
            .message
            .contains("longer than")
    );
    let deep = format!("locks: {}", "[".repeat(10_000));
    assert!(read(&deep).is_err());
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i"]
        .iter()
        .zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        let _ = writeln!(bomb, "{name}: &{name} [{}]", vec![format!("*{before}"); 10].join(", "));
    }
    assert!(read(&bomb).is_err());
}

#[test]
fn the_first_schedule_that_matches_is_the_one() {
    let text = "schedules:\n- {name: a, match: {groupSelector: {matchExpressions: [{key: instancemgr.keikoproj.io/tier, operator: NotIn, values: [prod]}]}}}\n\
                - {name: b, match: {groupSelector: {matchExpressions: [{key: instancemgr.keikoproj.io/tier, operator: Exists}]}}}\n\
                - {name: c, match: {}}\n";
    let settings = read(text).unwrap();
    let none = std::collections::BTreeMap::new();
    for (tier, name) in [(None, "a"), (Some("dev"), "a"), (Some("prod"), "b")] {
        let group = tier.map(|tier: &str| ("instancemgr.keikoproj.io/tier".to_owned(), tier.to_owned()));
        let group = group.into_iter().collect();
        let labels = GroupLabels {
            namespace: &none,
            group: &group,
        };
        assert_eq!(settings.schedule(&labels).unwrap().name, name, "{tier:?}");
    }
}
