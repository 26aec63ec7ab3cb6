//! Settings as people read them: a few plain sentences.
//!
//! Owns the words. Must not judge; `check` does.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::check::groups_of;
use super::{Basis, GroupLabels, ImageRule, LockRule, OnNewer, Requirement, Rule, Schedule, Scope, Selector, Settings};
use crate::api::PREFIX;
use crate::api::duration::format_duration;
use crate::plan::windows::{self, Kind, Standing};

/// What the settings say, a sentence a line. With the groups of a cluster, also how many each concerns.
#[must_use]
pub fn summary(settings: &Settings, now: Timestamp, groups: Option<&[GroupLabels<'_>]>) -> Vec<String> {
    let mut lines = Vec::new();
    match settings.locks.as_deref() {
        None => lines.push("locks: nothing is said; what settings locked before stays locked".to_owned()),
        Some([]) => lines.push("locks: none; what settings locked before is unlocked".to_owned()),
        Some(rules) => lines.extend(rules.iter().map(|rule| lock(rule, now, groups))),
    }
    let freeze = &settings.freeze;
    let frozen = if freeze.holds(now) { "on" } else { "off" };
    lines.push(format!("freeze: {frozen}{}", details(freeze.until, &freeze.reason)));
    lines.push(match settings.max_concurrent_rollouts {
        Some(most) => format!("rollouts at the same time: {most}"),
        None => "rollouts at the same time: as many as the operator's command line says".to_owned(),
    });
    if !settings.auto_approver {
        lines.push("auto-approver: off; a person decides everything".to_owned());
    }
    let schedules = settings.schedules.iter();
    lines.extend(schedules.map(|one| {
        let concerned = groups.map(|groups| groups_of(settings, one, groups));
        schedule(one, now, concerned)
    }));
    let others = groups.map(|groups| {
        groups
            .iter()
            .filter(|labels| settings.schedule(labels).is_none())
            .count()
    });
    let others = others.map_or(String::new(), |others| format!(" ({others} here)"));
    lines.push(format!("groups that no schedule is for{others}: a person decides"));
    lines
}

fn lock(rule: &LockRule, now: Timestamp, groups: Option<&[GroupLabels<'_>]>) -> String {
    let mut text = format!("lock: {}", scope(&rule.scope));
    if let Some(except) = &rule.except {
        let _ = write!(text, ", except {}", scope(&except.0));
    }
    text.push_str(&details(rule.until, &rule.reason));
    if rule.until.is_some_and(|until| until <= now) {
        text.push_str("; over");
    } else if let Some(groups) = groups {
        let held = groups.iter().filter(|labels| rule.locks(labels)).count();
        let _ = write!(text, "; holds {held} of {} groups", groups.len());
    }
    text
}

/// Until when and why, where that is said.
fn details(until: Option<Timestamp>, reason: &str) -> String {
    let mut text = until.map_or(String::new(), |until| format!(", until {until}"));
    if !reason.is_empty() {
        let _ = write!(text, " ({reason})");
    }
    text
}

fn schedule(schedule: &Schedule, now: Timestamp, concerned: Option<usize>) -> String {
    let mut text = format!("schedule {}: {}", schedule.name, scope(&schedule.scope));
    if let Some(concerned) = concerned {
        let _ = write!(text, " ({concerned} here)");
    }
    let mut parts = vec![schedule.image.as_ref().map_or("new images by hand".to_owned(), image)];
    let others = [
        ("edits", schedule.spec),
        ("Kubernetes minors", schedule.kubernetes_version),
        ("adoptions", schedule.adoption),
    ];
    if others.iter().all(|(_, rule)| *rule == Rule::Manual) {
        parts.push("all else by hand".to_owned());
    } else {
        parts.extend(others.iter().map(|(what, rule)| format!("{what} {}", when(*rule))));
    }
    if schedule.rollback != Rule::After(SignedDuration::ZERO) {
        parts.push(format!("rollbacks {}", when(schedule.rollback)));
    }
    if let Some(most) = schedule.max_concurrent_rollouts {
        parts.push(format!("at most {most} rollouts at the same time"));
    }
    parts.push(replaced(schedule, now));
    let _ = write!(text, "; {}", parts.join("; "));
    text
}

fn image(rule: &ImageRule) -> String {
    let from = match rule.basis {
        Basis::SsmLastModified => "AWS published them",
        Basis::ImageCreated => "they were made",
        Basis::FirstSeen => "they were first seen here",
    };
    let mut text = if rule.after.is_zero() {
        "new images at once".to_owned()
    } else {
        format!("new images {} after {from}", length(rule.after))
    };
    if let Some(soak) = &rule.soak {
        let lasts = length(soak.lasts);
        let _ = write!(text, ", once a group of {} has run them for {lasts}", soak.schedule);
    }
    if !rule.after.is_zero() && rule.on_newer == OnNewer::Restart {
        text.push_str(", anew with each newer one");
    }
    text
}

fn when(rule: Rule) -> String {
    match rule {
        Rule::Manual => "by hand".to_owned(),
        Rule::After(after) if after.is_zero() => "at once".to_owned(),
        Rule::After(after) => format!("after {}", length(after)),
    }
}

fn length(length: SignedDuration) -> String {
    format_duration(length.unsigned_abs())
}

/// When nodes are replaced, and how that stands.
fn replaced(schedule: &Schedule, now: Timestamp) -> String {
    if schedule.windows.is_empty() {
        return "nodes at any time".to_owned();
    }
    let of = |kind: Kind| {
        let windows = schedule.windows.iter().filter(move |window| window.kind == kind);
        windows.map(ToString::to_string).collect::<Vec<String>>()
    };
    let (allow, deny) = (of(Kind::Allow), of(Kind::Deny));
    let mut text = if allow.is_empty() {
        "nodes at any time".to_owned()
    } else {
        format!("nodes only {}", allow.join(", and "))
    };
    if !deny.is_empty() {
        let _ = write!(text, "; not {}", deny.join(", nor "));
    }
    if schedule.overrun {
        text.push_str("; begun work goes on to its end");
    }
    let stands = match windows::standing(&schedule.windows, now) {
        Standing::Open { until: Some(until) } => format!("open now, until {until}"),
        Standing::Open { until: None } => "open from now on".to_owned(),
        Standing::Closed { shown: Some(shown), .. } => format!("next {shown}"),
        Standing::Closed { .. } => "never again".to_owned(),
    };
    let _ = write!(text, "; {stands}");
    text
}

fn scope(scope: &Scope) -> String {
    let (groups, namespaces) = (selector(&scope.group), selector(&scope.namespace));
    match (groups, namespaces) {
        (None, None) => "every group".to_owned(),
        (Some(groups), None) => format!("groups with {groups}"),
        (None, Some(namespaces)) => format!("groups in namespaces with {namespaces}"),
        (Some(groups), Some(namespaces)) => format!("groups with {groups} in namespaces with {namespaces}"),
    }
}

fn selector(selector: &Selector) -> Option<String> {
    let all: Vec<String> = selector.requirements.iter().map(requirement).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// A requirement, its label without our prefix.
fn requirement(requirement: &Requirement) -> String {
    let short = |key: &String| key.trim_start_matches(PREFIX).to_owned();
    match requirement {
        Requirement::In(key, values) => format!("{}={}", short(key), values.join("|")),
        Requirement::NotIn(key, values) => format!("{}!={}", short(key), values.join("|")),
        Requirement::Exists(key) => format!("label {}", short(key)),
        Requirement::DoesNotExist(key) => format!("no label {}", short(key)),
    }
}
