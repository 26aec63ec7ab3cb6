//! Conditions: how one is made and the one way to set it.
//!
//! Owns the form that every condition of both kinds has. It must not decide which condition holds.

use std::cmp::Ordering;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

pub use super::reasons::{ConditionStatus, ConditionType, Reason};

/// A condition without a time; [`set_condition`] gives it one.
#[must_use]
pub fn condition(
    type_: ConditionType,
    status: ConditionStatus,
    reason: Reason,
    message: impl Into<String>,
    observed_generation: Option<i64>,
) -> Condition {
    Condition {
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        message: message.into(),
        observed_generation,
        reason: reason.as_str().to_owned(),
        status: status.as_str().to_owned(),
        type_: type_.as_str().to_owned(),
    }
}

/// Order of conditions in a list: `Ready` first, the others by name.
fn order(left: &str, right: &str) -> Ordering {
    let ready = ConditionType::Ready.as_str();
    (left != ready, left).cmp(&(right != ready, right))
}

/// Puts `new` into the list in place of the entry of its type, if there is one, and tells whether
/// the list changed. The time of the last transition is kept while the status stays the same, and
/// is `now` in whole seconds otherwise; the time in `new` is not read.
pub fn set_condition(list: &mut Vec<Condition>, new: Condition, now: Timestamp) -> bool {
    let before = list.clone();
    let since = before
        .iter()
        .find(|old| old.type_ == new.type_ && old.status == new.status)
        .map_or(now, |old| old.last_transition_time.0);
    list.retain(|old| old.type_ != new.type_);
    list.push(Condition {
        last_transition_time: Time(whole_seconds(since)),
        ..new
    });
    list.sort_by(|left, right| order(&left.type_, &right.type_));
    *list != before
}

/// Cuts the fraction of a second off, since stored times have none.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Takes the condition of a type out of the list and tells whether there was one.
pub fn remove_condition(list: &mut Vec<Condition>, type_: ConditionType) -> bool {
    let before = list.len();
    list.retain(|old| old.type_ != type_.as_str());
    list.len() != before
}

/// The condition of a type.
#[must_use]
pub fn find_condition(list: &[Condition], type_: ConditionType) -> Option<&Condition> {
    list.iter().find(|entry| entry.type_ == type_.as_str())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use pretty_assertions::assert_eq;
    use strum::IntoEnumIterator;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_str(text).unwrap()
    }

    fn sample(type_: ConditionType, status: ConditionStatus, message: &str) -> Condition {
        condition(type_, status, Reason::RollingOut, message, Some(1))
    }

    #[test]
    fn the_time_moves_with_the_status_only() {
        let mut list = Vec::new();
        let (first, second) = (at("2026-01-01T00:00:00.7Z"), at("2026-01-02T00:00:00Z"));
        assert!(set_condition(
            &mut list,
            sample(ConditionType::Ready, ConditionStatus::False, "a"),
            first
        ));
        assert_eq!(list[0].last_transition_time.0, at("2026-01-01T00:00:00Z"));
        assert!(set_condition(
            &mut list,
            sample(ConditionType::Ready, ConditionStatus::False, "b"),
            second
        ));
        assert_eq!(list[0].last_transition_time.0, at("2026-01-01T00:00:00Z"));
        assert_eq!(list[0].message, "b");
        assert!(set_condition(
            &mut list,
            sample(ConditionType::Ready, ConditionStatus::True, "b"),
            second
        ));
        assert_eq!(list[0].last_transition_time.0, second);
    }

    #[test]
    fn setting_the_same_again_is_no_change() {
        let mut list = Vec::new();
        let new = || sample(ConditionType::NodesReady, ConditionStatus::True, "a");
        assert!(set_condition(&mut list, new(), at("2026-01-01T00:00:00.123Z")));
        assert!(!set_condition(&mut list, new(), at("2026-01-01T00:00:05Z")));
    }

    #[test]
    fn ready_comes_first_and_the_others_by_name() {
        let mut list = Vec::new();
        for type_ in [
            ConditionType::UpgradePending,
            ConditionType::AccessDenied,
            ConditionType::Ready,
            ConditionType::NodesReady,
        ] {
            set_condition(
                &mut list,
                sample(type_, ConditionStatus::True, ""),
                at("2026-01-01T00:00:00Z"),
            );
        }
        let types: Vec<_> = list.iter().map(|entry| entry.type_.as_str()).collect();
        assert_eq!(types, ["Ready", "AccessDenied", "NodesReady", "UpgradePending"]);
        assert!(find_condition(&list, ConditionType::Ready).is_some());
        assert!(remove_condition(&mut list, ConditionType::Ready));
        assert!(!remove_condition(&mut list, ConditionType::Ready));
    }

    #[test]
    fn words_are_fit_for_the_api() {
        let fits = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric()) && word.len() < 64;
        assert!(Reason::iter().all(|reason| fits(reason.as_str())));
        assert!(ConditionType::iter().all(|type_| fits(type_.as_str())));
        assert_eq!(ConditionType::AwsUnavailable.as_str(), "AWSUnavailable");
        assert_eq!(Reason::AwsError.as_str(), "AWSError");
        assert!(ConditionType::iter().all(|type_| ConditionType::from_str(type_.as_str()) == Ok(type_)));
    }
}
