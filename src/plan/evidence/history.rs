//! When each value of a parameter was first seen.
//!
//! Owns the current and the earlier values of one parameter, in a form that can be kept outside the process.
//! Must not read a clock: times come in.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::facts::Parameter;

/// Earlier values kept per parameter.
const EARLIER: usize = 10;

/// A value that a parameter has or had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenValue {
    /// The value: an image id.
    pub value: String,
    /// The parameter's version with that value.
    pub version: i64,
    /// When SSM says that it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<Timestamp>,
    /// What SSM said when the value was first seen: its age counts from there, however often it is put again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aged_from: Option<Timestamp>,
    /// When it was first seen here.
    pub first_seen: Timestamp,
}

/// What a parameter's values were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParameterHistory {
    /// The value as last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<SeenValue>,
    /// Values before it, newest first, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<SeenValue>,
}

impl SeenValue {
    /// Takes over the earlier of two sights of the same value.
    fn follow_on(&mut self, other: &Self) {
        if other.first_seen <= self.first_seen {
            self.first_seen = other.first_seen;
            self.aged_from = other.aged_from.or(other.last_modified);
        }
    }
}

impl ParameterHistory {
    /// What is known of a value.
    #[must_use]
    pub fn of(&self, value: &str) -> Option<&SeenValue> {
        let all = self.current.iter().chain(&self.earlier);
        all.into_iter().find(|seen| seen.value == value)
    }

    /// Whether the present value is one that was there before another, and older than that: the parameter went back.
    #[must_use]
    pub fn went_back(&self, to: &str, from: &str) -> bool {
        let current = self.current.as_ref().filter(|current| current.value == to);
        let left = self.earlier.iter().find(|seen| seen.value == from);
        // By versions too: a reading that lags shows an older version, and is no return.
        current
            .zip(left)
            .is_some_and(|(current, left)| current.first_seen < left.first_seen && current.version > left.version)
    }

    /// Notes what was read at this time.
    pub fn seen(&mut self, parameter: &Parameter, now: Timestamp) {
        if let Some(current) = &mut self.current
            && current.value == parameter.value
        {
            current.version = parameter.version;
            current.last_modified = parameter.last_modified;
            return;
        }
        self.earlier.splice(0..0, self.current.take());
        // A value that came back was first seen when it was there before.
        let before = self.earlier.iter().position(|seen| seen.value == parameter.value);
        let before = before.map(|place| self.earlier.remove(place));
        let (first_seen, aged_from) = before.map_or((now, parameter.last_modified), |seen| {
            (seen.first_seen, seen.aged_from.or(seen.last_modified))
        });
        self.earlier.truncate(EARLIER);
        self.current = Some(SeenValue {
            value: parameter.value.clone(),
            version: parameter.version,
            last_modified: parameter.last_modified,
            aged_from,
            first_seen,
        });
    }

    /// Puts this history after an earlier one of the same parameter.
    pub fn after(&mut self, earlier: Self) {
        let Some(current) = &mut self.current else {
            *self = earlier;
            return;
        };
        let before: Vec<SeenValue> = earlier.current.into_iter().chain(earlier.earlier).collect();
        for seen in before {
            if seen.value == current.value {
                current.follow_on(&seen);
            } else if let Some(known) = self.earlier.iter_mut().find(|known| known.value == seen.value) {
                known.follow_on(&seen);
            } else {
                self.earlier.push(seen);
            }
        }
        self.earlier.truncate(EARLIER);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn reading(value: &str, version: i64) -> Parameter {
        Parameter {
            name: "/p".into(),
            value: value.into(),
            version,
            last_modified: None,
        }
    }

    fn times(history: &ParameterHistory) -> Vec<(&str, i64)> {
        let all = history.current.iter().chain(&history.earlier);
        all.map(|seen| (seen.value.as_str(), seen.first_seen.as_second()))
            .collect()
    }

    #[test]
    fn values_are_first_seen_once() {
        let mut history = ParameterHistory::default();
        history.seen(&reading("a", 1), at(1));
        history.seen(&reading("a", 1), at(2));
        history.seen(&reading("b", 2), at(3));
        assert_eq!(times(&history), [("b", 3), ("a", 1)]);
    }

    #[test]
    fn a_value_that_comes_back_keeps_its_time() {
        let mut history = ParameterHistory::default();
        for (value, version, second) in [("a", 1, 1), ("b", 2, 2), ("a", 3, 3)] {
            history.seen(&reading(value, version), at(second));
        }
        assert_eq!(times(&history), [("a", 1), ("b", 2)]);
        assert_eq!(history.current.unwrap().version, 3);
    }

    #[test]
    fn an_earlier_process_saw_it_first() {
        let mut earlier = ParameterHistory::default();
        earlier.seen(&reading("a", 1), at(1));
        earlier.seen(&reading("b", 2), at(2));
        let mut history = ParameterHistory::default();
        history.after(earlier.clone());
        assert_eq!(history, earlier);
        let mut history = ParameterHistory::default();
        history.seen(&reading("b", 2), at(9));
        history.seen(&reading("c", 3), at(10));
        history.after(earlier);
        assert_eq!(times(&history), [("c", 10), ("b", 2), ("a", 1)]);
    }

    /// Age belongs to the pair of parameter and value: neither putting it again nor its return restarts it.
    #[test]
    fn a_value_ages_from_its_first_sight() {
        let dated = |value: &str, version: i64| Parameter {
            last_modified: Some(at(version * 10)),
            ..reading(value, version)
        };
        let mut history = ParameterHistory::default();
        for (value, version) in [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("a", 5)] {
            history.seen(&dated(value, version), at(version * 10 + 1));
        }
        let seen = history.of("a").unwrap();
        assert_eq!(
            (seen.aged_from, seen.last_modified, seen.first_seen),
            (Some(at(10)), Some(at(50)), at(11))
        );
        let mut restarted = ParameterHistory::default();
        restarted.seen(&dated("a", 6), at(70));
        restarted.after(history);
        let seen = restarted.of("a").unwrap();
        assert_eq!(
            (seen.aged_from, seen.last_modified, seen.first_seen),
            (Some(at(10)), Some(at(60)), at(11))
        );
    }

    #[test]
    fn going_back_is_told_from_going_on() {
        let mut history = ParameterHistory::default();
        for (value, second) in [("a", 1), ("b", 2)] {
            history.seen(&reading(value, second), at(second));
        }
        assert!(!history.went_back("b", "a") && !history.went_back("a", "b"));
        history.seen(&reading("a", 3), at(3));
        assert!(history.went_back("a", "b") && !history.went_back("a", "c") && !history.went_back("a", "a"));
        history.seen(&reading("c", 4), at(4));
        assert!(!history.went_back("c", "b"));
        // An answer from before the change: the version says so.
        history.seen(&reading("a", 3), at(5));
        assert!(!history.went_back("a", "c"));
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut history = ParameterHistory::default();
        for second in 0..30 {
            history.seen(&reading(&second.to_string(), second), at(second));
        }
        assert_eq!(history.earlier.len(), EARLIER);
    }
}
