//! AWS's times as the product's.
//!
//! Owns the conversion from the SDK's time stamps and from EC2's texts. Must not read a clock.

use aws_smithy_types::DateTime;
use jiff::Timestamp;

/// A service's time stamp; `None` if it lies outside what a [`Timestamp`] can hold.
pub(super) fn timestamp(time: &DateTime) -> Option<Timestamp> {
    let nanoseconds = i32::try_from(time.subsec_nanos()).ok()?;
    Timestamp::new(time.secs(), nanoseconds).ok()
}

/// EC2 writes the times of images as text, `2026-11-30T10:00:00.000Z`.
pub(super) fn timestamp_from_text(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_fraction() {
        let converted = timestamp(&DateTime::from_secs_and_nanos(1_700_000_000, 5_000_000)).unwrap();
        assert_eq!(converted.to_string(), "2023-11-14T22:13:20.005Z");
    }

    #[test]
    fn times_before_the_epoch_survive() {
        let converted = timestamp(&DateTime::from_secs_and_nanos(-1, 500_000_000)).unwrap();
        assert_eq!(converted.as_millisecond(), -500);
    }

    #[test]
    fn texts_are_parsed_or_dropped() {
        assert!(timestamp_from_text("2026-11-30T10:00:00.000Z").is_some());
        assert_eq!(timestamp_from_text("soon"), None);
    }
}
