//! The strategy's limits, resolved against a group's size (rule R1).
//!
//! Owns rounding and defaults. Must not look at nodes.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::fleet::Limits;
use crate::api::instance_group::RollingUpdate;
use crate::api::parse_duration;

/// Default of both time limits.
const FIFTEEN_MINUTES: SignedDuration = SignedDuration::from_mins(15);

/// Limits, and what had to be bent to get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The limits.
    pub limits: Limits,
    /// What a person should know about the strategy, if anything.
    pub warning: Option<String>,
}

/// Resolves a strategy for a group of `size` instances.
#[must_use]
pub fn resolve(strategy: Option<&RollingUpdate>, size: usize) -> Resolved {
    let absent = RollingUpdate::default();
    let strategy = strategy.unwrap_or(&absent);
    let (wanted, warning) = match &strategy.max_unavailable {
        None => (1, None),
        Some(IntOrString::Int(0)) => (
            1,
            Some("maxUnavailable 0 would never replace a node: 1 is used".to_owned()),
        ),
        Some(IntOrString::Int(count)) => (usize::try_from(*count).unwrap_or(1), None),
        Some(IntOrString::String(text)) => percentage(text, size),
    };
    let duration = |text: &Option<String>| {
        text.as_deref()
            .and_then(parse_duration)
            .and_then(|duration| SignedDuration::try_from(duration).ok())
            .unwrap_or(FIFTEEN_MINUTES)
    };
    Resolved {
        limits: Limits {
            max_unavailable: wanted.clamp(1, size.max(1)),
            drain_timeout: duration(&strategy.drain_timeout),
            ready_timeout: duration(&strategy.ready_timeout),
            delete_bare_pods: strategy.delete_bare_pods.unwrap_or_default(),
        },
        warning,
    }
}

/// A percentage of the size, rounded up.
fn percentage(text: &str, size: usize) -> (usize, Option<String>) {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<usize>().ok());
    match number {
        Some(0) => (
            1,
            Some("maxUnavailable 0% would never replace a node: 1 is used".to_owned()),
        ),
        Some(percent) => (size.saturating_mul(percent).div_ceil(100), None),
        None => (
            1,
            Some(format!(
                "maxUnavailable {text:?} is neither a number nor a percentage: 1 is used"
            )),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(text: IntOrString, size: usize) -> (usize, bool) {
        let strategy = RollingUpdate {
            max_unavailable: Some(text),
            ..RollingUpdate::default()
        };
        let resolved = resolve(Some(&strategy), size);
        (resolved.limits.max_unavailable, resolved.warning.is_some())
    }

    /// Sizes against percentages, as in scenario C38: never no progress, never more than there is.
    #[test]
    fn percentages_are_rounded_up_and_capped() {
        let sizes = [0, 1, 2, 3, 7, 19, 100];
        for (percent, expected) in [
            ("0%", [1, 1, 1, 1, 1, 1, 1]),
            ("1%", [1, 1, 1, 1, 1, 1, 1]),
            ("10%", [1, 1, 1, 1, 1, 2, 10]),
            ("30%", [1, 1, 1, 1, 3, 6, 30]),
            ("50%", [1, 1, 1, 2, 4, 10, 50]),
            ("100%", [1, 1, 2, 3, 7, 19, 100]),
            ("250%", [1, 1, 2, 3, 7, 19, 100]),
            ("999999999%", [1, 1, 2, 3, 7, 19, 100]),
        ] {
            for (size, expected) in sizes.into_iter().zip(expected) {
                let (budget, warned) = budget(IntOrString::String(percent.to_owned()), size);
                assert_eq!(budget, expected, "{percent} of {size}");
                assert_eq!(warned, percent == "0%", "{percent}");
            }
        }
    }

    #[test]
    fn numbers_are_capped_and_zero_is_one_with_a_warning() {
        for (number, size, expected, warns) in [(0, 5, 1, true), (1, 0, 1, false), (3, 5, 3, false), (9, 5, 5, false)] {
            assert_eq!(
                budget(IntOrString::Int(number), size),
                (expected, warns),
                "{number} of {size}"
            );
        }
        assert_eq!(budget(IntOrString::Int(-1), 5), (1, false));
        assert_eq!(budget(IntOrString::String("some".to_owned()), 5), (1, true));
    }

    #[test]
    fn times_default_to_fifteen_minutes() {
        let limits = resolve(None, 3).limits;
        assert_eq!(
            (limits.drain_timeout, limits.ready_timeout),
            (FIFTEEN_MINUTES, FIFTEEN_MINUTES)
        );
        assert!(!limits.delete_bare_pods && limits.max_unavailable == 1);
        let strategy = RollingUpdate {
            drain_timeout: Some("90s".to_owned()),
            ready_timeout: Some("1h".to_owned()),
            delete_bare_pods: Some(true),
            ..RollingUpdate::default()
        };
        let limits = resolve(Some(&strategy), 3).limits;
        assert_eq!(limits.drain_timeout, SignedDuration::from_secs(90));
        assert_eq!(limits.ready_timeout, SignedDuration::from_hours(1));
        assert!(limits.delete_bare_pods);
    }
}
