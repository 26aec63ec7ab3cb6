//! Pauses after failures, per object.
//!
//! Owns the count of failures in a row and of passes without a pause. Must not sleep: it only says how long.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::plan::facts::FailureClass;

/// First pause after a failure.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_mins(5);
/// Passes without a pause after which something is wrong: no plan needs so many steps in a row.
const STEPS: u32 = 40;

/// Counts per object.
#[derive(Debug, Default)]
pub struct Backoff {
    counts: Mutex<HashMap<String, Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    failures: u32,
    steps: u32,
}

impl Backoff {
    /// The pause after another failure in a row: doubling, with up to a quarter taken off by a hash of object and count, so
    /// that a thousand groups do not come back in step. A lost race is tried again soon; a missing permission slowly.
    pub fn failed(&self, object: &str, class: FailureClass) -> Duration {
        let failures = self.with(object, |counts| {
            counts.failures = counts.failures.saturating_add(1);
            counts.failures
        });
        let first = match class {
            FailureClass::Busy | FailureClass::Lagging if failures <= 3 => Duration::from_millis(100),
            FailureClass::Denied => FIRST * 10,
            _ => FIRST,
        };
        let pause = first.saturating_mul(1u32 << (failures - 1).min(12)).min(LONGEST);
        let mut hash = DefaultHasher::new();
        (object, failures).hash(&mut hash);
        let quarters = u32::try_from(hash.finish() % 256).unwrap_or(0);
        pause.saturating_sub(pause / 4 * quarters / 256)
    }

    /// A pass went well and asks for the next at once. Returns a pause when that happens too often in a row.
    pub fn stepped(&self, object: &str) -> Duration {
        let steps = self.with(object, |counts| {
            counts.failures = 0;
            counts.steps = counts.steps.saturating_add(1);
            counts.steps
        });
        if steps > STEPS { FIRST } else { Duration::ZERO }
    }

    /// A pass went well and waits.
    pub fn rested(&self, object: &str) {
        self.counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
    }

    fn with<T>(&self, object: &str, change: impl FnOnce(&mut Counts) -> T) -> T {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        change(counts.entry(object.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over() {
        let backoff = Backoff::default();
        let mut last = Duration::ZERO;
        for _ in 0..9 {
            let pause = backoff.failed("a", FailureClass::Throttled);
            assert!(pause > last, "{pause:?} after {last:?}");
            last = pause;
        }
        for _ in 0..50 {
            let pause = backoff.failed("a", FailureClass::Throttled);
            assert!(pause <= LONGEST && pause >= LONGEST * 3 / 4, "{pause:?}");
        }
        backoff.rested("a");
        assert!(backoff.failed("a", FailureClass::Throttled) <= FIRST);
    }

    #[test]
    fn a_lost_race_is_tried_soon_and_a_missing_permission_slowly() {
        let backoff = Backoff::default();
        assert!(backoff.failed("a", FailureClass::Busy) <= Duration::from_millis(100));
        assert!(backoff.failed("b", FailureClass::Denied) >= Duration::from_secs(7));
    }

    #[test]
    fn objects_do_not_come_back_in_step() {
        let backoff = Backoff::default();
        let mut pauses: Vec<Duration> = (0..20)
            .map(|index| backoff.failed(&index.to_string(), FailureClass::Throttled))
            .collect();
        pauses.dedup();
        assert!(pauses.len() > 10);
    }

    #[test]
    fn endless_steps_are_slowed_down() {
        let backoff = Backoff::default();
        assert!((0..STEPS).all(|_| backoff.stepped("a") == Duration::ZERO));
        assert_eq!(backoff.stepped("a"), FIRST);
        backoff.rested("a");
        assert_eq!(backoff.stepped("a"), Duration::ZERO);
    }
}
