//! Reading schedules.
//!
//! Owns the shape of a schedule and its defaults. Must not read the top of the text; `read` does.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::read::{count, flag, length, words};
use super::read_scope::scope;
use super::tree::{Fields, Item, Mistakes};
use super::{Basis, ImageRule, OnNewer, Rule, Schedule, Scope, Soak};
use crate::plan::approval::MANUAL;
use crate::plan::windows::{self, Kind, Repeats, When, Window};

/// How long a request is open at least where a rule waits at all.
const SETTLE: SignedDuration = SignedDuration::from_mins(10);

/// The list of schedules.
pub fn schedules(list: &Item, mistakes: &mut Mistakes) -> Vec<Schedule> {
    let items = list.list(mistakes);
    let schedules: Vec<Schedule> = items.iter().map(|item| schedule(item, mistakes)).collect();
    let mut names: BTreeMap<&str, &Item> = BTreeMap::new();
    for (schedule, item) in schedules.iter().zip(&items) {
        if let Some(first) = names.get(schedule.name.as_str()) {
            let why = format!("{} is called {:?} already", first.path, schedule.name);
            item.within(&["name"]).mistake(mistakes, why);
        } else if !schedule.name.is_empty() {
            names.insert(&schedule.name, item);
        }
    }
    for (schedule, item) in schedules.iter().zip(&items) {
        let Some(soak) = schedule.image.as_ref().and_then(|image| image.soak.as_ref()) else {
            continue;
        };
        let place = item.within(&["image", "soak", "schedule"]);
        if soak.schedule == schedule.name {
            place.mistake(
                mistakes,
                "its own groups would wait for themselves; name another schedule",
            );
        } else if !names.contains_key(soak.schedule.as_str()) {
            let known: Vec<&str> = names.keys().copied().collect();
            let why = format!(
                "there is no schedule {:?}; there are {}",
                soak.schedule,
                known.join(", ")
            );
            place.mistake(mistakes, why);
        }
    }
    schedules
}

fn schedule(item: &Item, mistakes: &mut Mistakes) -> Schedule {
    let known = [
        "name",
        "match",
        "image",
        "spec",
        "kubernetesVersion",
        "adoption",
        "rollback",
        "windows",
        "overrun",
        "maxConcurrentRollouts",
    ];
    let fields = item.fields(mistakes, &known);
    let name = words(&fields, "name", mistakes);
    if name.trim().is_empty() || name == MANUAL || name.len() > 63 {
        item.within(&["name"]).mistake(
            mistakes,
            format!("needs a name of its own, at most 63 characters, other than {MANUAL}"),
        );
    }
    let matched = if let Some(selectors) = fields.get("match") {
        let selectors = selectors.fields(mistakes, &["namespaceSelector", "groupSelector"]);
        scope(&selectors, mistakes)
    } else {
        let place = item.within(&["match"]);
        place.mistake(
            mistakes,
            "does not say for which groups; write match: {} for every group",
        );
        Scope::default()
    };
    let windows = fields.get("windows").map(|windows| windows.list(mistakes));
    Schedule {
        name,
        scope: matched,
        image: fields.get("image").and_then(|image| image_rule(image, mistakes)),
        spec: rule(&fields, "spec", Rule::Manual, mistakes),
        kubernetes_version: rule(&fields, "kubernetesVersion", Rule::Manual, mistakes),
        adoption: rule(&fields, "adoption", Rule::Manual, mistakes),
        rollback: rule(&fields, "rollback", Rule::After(SignedDuration::ZERO), mistakes),
        windows: windows
            .iter()
            .flatten()
            .filter_map(|item| window(item, mistakes))
            .collect(),
        overrun: flag(&fields, "overrun", false, mistakes),
        max_concurrent_rollouts: count(&fields, "maxConcurrentRollouts", mistakes),
    }
}

/// `manual`, or `{after: 1h}`.
fn rule(fields: &Fields, key: &str, otherwise: Rule, mistakes: &mut Mistakes) -> Rule {
    let Some(item) = fields.get(key) else {
        return otherwise;
    };
    if item.is_word(MANUAL) {
        return Rule::Manual;
    }
    after(item, &item.fields(mistakes, &["after"]), mistakes).map_or(Rule::Manual, Rule::After)
}

fn after(item: &Item, fields: &Fields, mistakes: &mut Mistakes) -> Option<SignedDuration> {
    let Some(after) = fields.get("after") else {
        item.mistake(mistakes, format!("write {{after: 48h}}, or {MANUAL}"));
        return None;
    };
    length(after, mistakes)
}

fn image_rule(item: &Item, mistakes: &mut Mistakes) -> Option<ImageRule> {
    if item.is_word(MANUAL) {
        return None;
    }
    let fields = item.fields(mistakes, &["after", "basis", "onNewer", "settle", "soak"]);
    let after = after(item, &fields, mistakes)?;
    let mut word = |key: &str, known: &[&str]| {
        let item = fields.get(key)?;
        let text = item.text(mistakes)?;
        if !known.contains(&text.as_str()) {
            item.mistake(mistakes, format!("{text:?} is none of {}", known.join(", ")));
        }
        Some(text)
    };
    let basis = match word("basis", &["SSMLastModified", "ImageCreated", "FirstSeen"]).as_deref() {
        Some("ImageCreated") => Basis::ImageCreated,
        Some("FirstSeen") => Basis::FirstSeen,
        _ => Basis::SsmLastModified,
    };
    let on_newer = match word("onNewer", &["keep", "restart"]).as_deref() {
        Some("keep") => OnNewer::Keep,
        Some(_) => OnNewer::Restart,
        None if after.is_zero() => OnNewer::Restart,
        None => OnNewer::Keep,
    };
    let settle = fields.get("settle").and_then(|settle| length(settle, mistakes));
    let by_default = if after.is_zero() { SignedDuration::ZERO } else { SETTLE };
    Some(ImageRule {
        after,
        basis,
        on_newer,
        settle: settle.unwrap_or(by_default),
        soak: fields.get("soak").and_then(|soak| soak_rule(soak, mistakes)),
    })
}

fn soak_rule(item: &Item, mistakes: &mut Mistakes) -> Option<Soak> {
    let fields = item.fields(mistakes, &["schedule", "for"]);
    let schedule = words(&fields, "schedule", mistakes);
    let lasts = fields.get("for").and_then(|lasts| positive(lasts, mistakes));
    if schedule.is_empty() || !fields.has("for") {
        item.mistake(mistakes, "write {schedule: NAME, for: 48h}");
    }
    Some(Soak {
        schedule,
        lasts: lasts?,
    })
}

/// A length of time above 0.
fn positive(item: &Item, mistakes: &mut Mistakes) -> Option<SignedDuration> {
    let length = length(item, mistakes)?;
    if length.is_zero() {
        item.mistake(mistakes, "has to be longer than nothing");
        return None;
    }
    Some(length)
}

fn window(item: &Item, mistakes: &mut Mistakes) -> Option<Window> {
    let known = ["kind", "schedule", "duration", "timeZone", "from", "to", "reason"];
    let fields = item.fields(mistakes, &known);
    let kind = match fields.get("kind").and_then(|kind| kind.text(mistakes)).as_deref() {
        Some("allow") => Some(Kind::Allow),
        Some("deny") => Some(Kind::Deny),
        _ => {
            item.within(&["kind"])
                .mistake(mistakes, "write kind: allow or kind: deny");
            None
        }
    };
    let zone = zone(&fields, mistakes);
    let has = |keys: [&str; 2]| keys.map(|key| fields.has(key));
    let when = match (has(["schedule", "duration"]), has(["from", "to"])) {
        ([true, true], [false, false]) => repeats(&fields, mistakes),
        ([false, false], [true, true]) => dates(item, &fields, mistakes),
        _ => {
            item.mistake(mistakes, "write either schedule and duration, or from and to");
            None
        }
    };
    Some(Window {
        kind: kind?,
        when: when?,
        zone: zone?,
        reason: words(&fields, "reason", mistakes),
    })
}

fn zone(fields: &Fields, mistakes: &mut Mistakes) -> Option<TimeZone> {
    let Some(item) = fields.get("timeZone") else {
        return Some(TimeZone::UTC);
    };
    let name = item.text(mistakes)?;
    let zone = windows::zone(&name);
    if zone.is_none() {
        item.mistake(
            mistakes,
            format!("{name:?} is no time zone; write an IANA name, as Europe/Berlin"),
        );
    }
    zone
}

fn repeats(fields: &Fields, mistakes: &mut Mistakes) -> Option<When> {
    let lasts = fields.get("duration").and_then(|item| positive(item, mistakes));
    let schedule = fields.get("schedule")?;
    let expression = schedule.text(mistakes)?;
    match Repeats::parse(&expression, lasts.unwrap_or(SignedDuration::from_hours(1))) {
        Ok(repeats) => lasts.map(|_| When::Repeats(repeats)),
        Err(why) => {
            schedule.mistake(
                mistakes,
                format!(
                    "{expression:?} is no schedule ({why}); write minute, hour, day of the month, month, day of the week, \
                     as 0 2 * * mon-thu"
                ),
            );
            None
        }
    }
}

fn dates(item: &Item, fields: &Fields, mistakes: &mut Mistakes) -> Option<When> {
    let mut date = |key: &str| -> Option<Date> {
        let item = fields.get(key)?;
        let text = item.text(mistakes)?;
        let date = text.parse().ok().filter(|_| text.len() == 10);
        if date.is_none() {
            item.mistake(mistakes, format!("{text:?} is no date; write 2026-12-20"));
        }
        date
    };
    let (from, to) = (date("from"), date("to"));
    let (from, to) = (from?, to?);
    if to < from {
        item.within(&["to"]).mistake(mistakes, "is before from");
        return None;
    }
    Some(When::Dates { from, to })
}
