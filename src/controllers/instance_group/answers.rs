//! How the API server answered our evictions.
//!
//! Owns the memory of the last answer for each pod, so that a refused pod is not asked again at once. After a restart it is
//! empty: each pod is then asked once more, and answers the same. Must not decide when to ask again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::plan::facts::workload::{EvictionAnswer, EvictionKind};

/// How long an answer is kept: longer than any drain is worked on.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// The last answers, by pod uid.
#[derive(Debug, Default)]
pub struct Answers {
    by_uid: Mutex<HashMap<String, EvictionAnswer>>,
}

impl Answers {
    /// Keeps an answer.
    pub fn keep(&self, uid: &str, kind: EvictionKind, now: Timestamp) {
        let mut answers = self.lock();
        answers.retain(|_, answer| now.duration_since(answer.at) < KEPT);
        answers.insert(uid.to_owned(), EvictionAnswer { at: now, kind });
    }

    /// The last answer for a pod.
    #[must_use]
    pub fn of(&self, uid: &str) -> Option<EvictionAnswer> {
        self.lock().get(uid).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, EvictionAnswer>> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_is_kept_for_an_hour() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let later = |minutes| now.checked_add(SignedDuration::from_mins(minutes)).unwrap();
        let answers = Answers::default();
        answers.keep("a", EvictionKind::Throttled, now);
        answers.keep("a", EvictionKind::Accepted, later(1));
        assert_eq!(answers.of("a").unwrap().kind, EvictionKind::Accepted);
        answers.keep("b", EvictionKind::Gone, later(60));
        assert!(answers.of("a").is_some());
        answers.keep("b", EvictionKind::Gone, later(61));
        assert_eq!(answers.of("a"), None);
    }
}
