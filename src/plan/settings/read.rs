//! Reading settings: text in, [`Settings`] or every mistake with its line and field out.
//!
//! Owns the top of the text: locks, freeze, caps. Must not judge whether schedules make sense together beyond what would be
//! ambiguous; `check` warns of that.

use jiff::{SignedDuration, Timestamp};

use super::read_schedule::schedules;
use super::read_scope::scope;
use super::tree::{Fields, Item, Lines, Mistakes};
use super::{Exception, Freeze, LockRule, Settings, SettingsError};
use crate::api::duration::parse_duration;

/// Longer than any wait that is meant.
const LONGEST: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// Reads the text of key `upgrades`. The caller deals with an absent or blank text.
///
/// # Errors
/// Every mistake, in the order of lines; of YAML itself the first.
pub fn read(text: &str) -> Result<Settings, Vec<SettingsError>> {
    read_with_lines(text).map(|(settings, _)| settings)
}

/// The same, with the line of each path for whoever has more to say about it.
///
/// # Errors
/// As with [`read`].
pub fn read_with_lines(text: &str) -> Result<(Settings, Lines), Vec<SettingsError>> {
    let root = Item::parse(text).map_err(|mistake| vec![mistake])?;
    let mut mistakes = Mistakes::default();
    let settings = settings(&root, &mut mistakes);
    if mistakes.is_empty() {
        Ok((settings, root.lines()))
    } else {
        Err(mistakes.in_order())
    }
}

fn settings(root: &Item, mistakes: &mut Mistakes) -> Settings {
    let mut settings = Settings::default();
    let known = [
        "locks",
        "freeze",
        "maxConcurrentRollouts",
        "autoApprover",
        "schedules",
        "history",
    ];
    // Comments alone say nothing.
    if root.is_nothing() {
        return settings;
    }
    let fields = root.fields(mistakes, &known);
    if let Some(locks) = fields.get("locks") {
        let rules = locks.list(mistakes);
        settings.locks = Some(rules.iter().map(|rule| lock(rule, mistakes)).collect());
    } else if fields.has("locks") {
        root.within(&["locks"])
            .mistake(mistakes, "says nothing; to unlock, write locks: []");
    }
    if let Some(freeze) = fields.get("freeze") {
        let fields = freeze.fields(mistakes, &["enabled", "reason", "until"]);
        settings.freeze = Freeze {
            enabled: flag(&fields, "enabled", false, mistakes),
            reason: words(&fields, "reason", mistakes),
            until: until(&fields, mistakes),
        };
    }
    settings.max_concurrent_rollouts = count(&fields, "maxConcurrentRollouts", mistakes);
    if let Some(approver) = fields.get("autoApprover") {
        let fields = approver.fields(mistakes, &["enabled"]);
        settings.auto_approver = flag(&fields, "enabled", true, mistakes);
    }
    if let Some(list) = fields.get("schedules") {
        settings.schedules = schedules(list, mistakes);
    }
    if let Some(history) = fields.get("history") {
        let fields = history.fields(mistakes, &["ttl"]);
        if let Some(ttl) = fields.get("ttl").and_then(|ttl| length(ttl, mistakes)) {
            settings.finished_kept = ttl;
        }
    }
    settings
}

fn lock(item: &Item, mistakes: &mut Mistakes) -> LockRule {
    let known = ["namespaceSelector", "groupSelector", "except", "reason", "until"];
    let fields = item.fields(mistakes, &known);
    let except = fields.get("except").map(|except| {
        let selectors = except.fields(mistakes, &["namespaceSelector", "groupSelector"]);
        let except_scope = scope(&selectors, mistakes);
        if except_scope.namespace.requirements.is_empty() && except_scope.group.requirements.is_empty() {
            except.mistake(
                mistakes,
                "selects everything, which would lift the lock for all; write a selector, or leave it out",
            );
        }
        Exception(except_scope)
    });
    LockRule {
        scope: scope(&fields, mistakes),
        except,
        reason: words(&fields, "reason", mistakes),
        until: until(&fields, mistakes),
    }
}

/// A flag, or what holds without it.
pub(super) fn flag(fields: &Fields, key: &str, otherwise: bool, mistakes: &mut Mistakes) -> bool {
    let flag = fields.get(key).and_then(|item| item.flag(mistakes));
    flag.unwrap_or(otherwise)
}

/// A text that may be absent.
pub(super) fn words(fields: &Fields, key: &str, mistakes: &mut Mistakes) -> String {
    let text = fields.get(key).and_then(|item| item.text(mistakes));
    text.unwrap_or_default()
}

/// A number from 1 that may be absent.
pub(super) fn count(fields: &Fields, key: &str, mistakes: &mut Mistakes) -> Option<usize> {
    fields.get(key)?.count(mistakes)
}

/// A length of time, 0 included.
pub(super) fn length(item: &Item, mistakes: &mut Mistakes) -> Option<SignedDuration> {
    let text = item.text(mistakes)?;
    let length = parse_duration(&text).and_then(|length| SignedDuration::try_from(length).ok());
    match length {
        Some(length) if length <= LONGEST => Some(length),
        Some(_) => {
            item.mistake(mistakes, "is longer than ten years");
            None
        }
        None => {
            item.mistake(
                mistakes,
                format!("{text:?} is no duration; write whole numbers with s, m, h, d or w, as 48h or 1d12h"),
            );
            None
        }
    }
}

/// When something ends by itself; blank = it does not.
fn until(fields: &Fields, mistakes: &mut Mistakes) -> Option<Timestamp> {
    let item = fields.get("until")?;
    let text = item.text(mistakes)?;
    if text.trim().is_empty() {
        return None;
    }
    let time = text.parse().ok();
    if time.is_none() {
        item.mistake(
            mistakes,
            format!(
                "{text:?} is no time; write it with its offset, as 2026-12-31T18:00:00Z or 2026-12-31T19:00:00+01:00"
            ),
        );
    }
    time
}
