//! Whether a group is locked, and by what.
//!
//! Owns the OR over the sources of a lock. Must not decide what a lock holds back; the gate does. A value that
//! is neither yes nor no locks: the safe reading of a doubtful brake. Settings that are missing unlock nothing.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::annotation;
use crate::api::instance_group::{LockSource, LockStatus};
use crate::plan::observed::Observed;
use crate::plan::rollout::drain::seconds;

/// The lock on a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// What locks it; `None` = not locked.
    pub source: Option<LockSource>,
    /// Why, in words.
    pub reason: Option<String>,
    /// When it lifts by itself.
    pub until: Option<Timestamp>,
}

impl Lock {
    /// Whether the group is locked.
    pub fn locked(&self) -> bool {
        self.source.is_some()
    }

    /// The status field.
    pub fn status(&self) -> LockStatus {
        LockStatus {
            locked: self.locked(),
            source: self.source,
            reason: self.reason.clone(),
            until: self.until.map(|until| Time(seconds(until))),
        }
    }

    fn by_settings(reason: String, until: Option<Timestamp>) -> Self {
        Self {
            source: Some(LockSource::Settings),
            reason: Some(reason),
            until,
        }
    }
}

/// Works out the lock from the settings, the namespace's and the group's own annotation. Any of them suffices.
pub fn lock(observed: &Observed) -> Lock {
    let annotations = [
        (LockSource::Namespace, observed.namespace_lock.as_deref()),
        (LockSource::Group, observed.group.lock_annotation()),
    ];
    let by_annotation = annotations
        .into_iter()
        .find_map(|(source, value)| by_annotation(source, value?));
    match (by_settings(observed), by_annotation) {
        // An annotation has no end, so neither has the lock.
        (Some(settings), Some(annotation)) => Lock {
            reason: settings
                .reason
                .zip(annotation.reason)
                .map(|(settings, annotation)| format!("{settings}; also {annotation}")),
            until: None,
            ..settings
        },
        (Some(lock), None) | (None, Some(lock)) => lock,
        (None, None) => Lock::default(),
    }
}

fn by_annotation(source: LockSource, value: &str) -> Option<Lock> {
    if value.eq_ignore_ascii_case("false") {
        return None;
    }
    let reason = if value.eq_ignore_ascii_case("true") {
        format!(
            "annotation {} on the {}",
            annotation::LOCK_UPGRADES,
            source.to_string().to_lowercase()
        )
    } else {
        format!(
            "annotation {} says {value:?}, neither true nor false: taken as a lock",
            annotation::LOCK_UPGRADES
        )
    };
    Some(Lock {
        source: Some(source),
        reason: Some(reason),
        until: None,
    })
}

fn by_settings(observed: &Observed) -> Option<Lock> {
    let in_force = &observed.settings;
    if in_force.locks_all() {
        return Some(Lock::by_settings(in_force.complaint().unwrap_or_default(), None));
    }
    let Some(settings) = in_force.binding().filter(|settings| settings.locks.is_some()) else {
        return as_before(observed);
    };
    let labels = observed.labels();
    let mut reasons = Vec::new();
    let mut until = None;
    let mut forever = false;
    for rule in settings.locks_on(&labels, observed.now) {
        if !rule.reason.is_empty() {
            reasons.push(rule.reason.clone());
        }
        forever |= rule.until.is_none();
        until = until.max(rule.until);
    }
    if !forever && until.is_none() {
        return None;
    }
    let reason = if reasons.is_empty() {
        "locked by the settings".to_owned()
    } else {
        format!("locked by the settings: {}", reasons.join("; "))
    };
    Some(Lock::by_settings(reason, until.filter(|_| !forever)))
}

/// Settings that do not speak of locks are no unlock: a group that they locked stays locked, at most until the time that was
/// said then.
fn as_before(observed: &Observed) -> Option<Lock> {
    let before = observed.group.status.as_ref()?.lock.as_ref()?;
    if !before.locked || before.source != Some(LockSource::Settings) {
        return None;
    }
    let until = before.until.as_ref().map(|time| time.0);
    if until.is_some_and(|until| until <= observed.now) {
        return None;
    }
    let reason = "SettingsMissing: the settings locked this group and do not speak of locks any more; to unlock, write locks: []";
    Some(Lock::by_settings(reason.to_owned(), until))
}
