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

impl ParameterHistory {
    /// Notes what was read at this time.
    pub(super) fn seen(&mut self, parameter: &Parameter, now: Timestamp) {
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
        let first_seen = before.map_or(now, |place| self.earlier.remove(place).first_seen);
        self.earlier.truncate(EARLIER);
        self.current = Some(SeenValue {
            value: parameter.value.clone(),
            version: parameter.version,
            last_modified: parameter.last_modified,
            first_seen,
        });
    }

    /// Puts this history after an earlier one of the same parameter.
    pub(super) fn after(&mut self, earlier: Self) {
        let Some(current) = &mut self.current else {
            *self = earlier;
            return;
        };
        let before: Vec<SeenValue> = earlier.current.into_iter().chain(earlier.earlier).collect();
        for seen in before {
            if seen.value == current.value {
                current.first_seen = current.first_seen.min(seen.first_seen);
            } else if let Some(known) = self.earlier.iter_mut().find(|known| known.value == seen.value) {
                known.first_seen = known.first_seen.min(seen.first_seen);
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

    #[test]
    fn only_so_many_are_kept() {
        let mut history = ParameterHistory::default();
        for second in 0..30 {
            history.seen(&reading(&second.to_string(), second), at(second));
        }
        assert_eq!(history.earlier.len(), EARLIER);
    }
}
