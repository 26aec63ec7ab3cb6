//! Whether a group is locked, and by what.
//!
//! Owns the OR over the sources of a lock. Must not decide what a lock holds back; the gate does. A value that
//! is neither yes nor no locks: the safe reading of a doubtful brake.

use crate::api::annotation;
use crate::api::instance_group::{LockSource, LockStatus};
use crate::plan::observed::Observed;

/// The lock on a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// What locks it; `None` = not locked.
    pub source: Option<LockSource>,
    /// Why, in words.
    pub reason: Option<String>,
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
            until: None,
        }
    }
}

/// Works out the lock from the namespace's and the group's own annotation.
pub fn lock(observed: &Observed) -> Lock {
    let sources = [
        (LockSource::Namespace, observed.namespace_lock.as_deref()),
        (LockSource::Group, observed.group.lock_annotation()),
    ];
    for (source, value) in sources {
        let Some(value) = value.filter(|value| !value.eq_ignore_ascii_case("false")) else {
            continue;
        };
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
        return Lock {
            source: Some(source),
            reason: Some(reason),
        };
    }
    Lock::default()
}
