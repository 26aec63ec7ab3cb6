//! Durations as people write them: `90s`, `15m`, `1d12h`.
//!
//! Owns the grammar, which the rules of the schema repeat. It must not know what a duration is for.

use std::fmt::Write as _;
use std::time::Duration;

/// Reads a duration: whole numbers with the units `s`, `m`, `h`, `d` and `w`, one after another.
/// Nothing else is taken, no sign, no fraction and no empty text.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    loop {
        let unit_at = rest.find(|character: char| !character.is_ascii_digit())?;
        let (digits, tail) = rest.split_at(unit_at);
        let mut letters = tail.chars();
        let unit = seconds_of(letters.next()?)?;
        let part = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        total = total.checked_add(Duration::from_secs(part))?;
        rest = letters.as_str();
        if rest.is_empty() {
            return Some(total);
        }
    }
}

/// Writes a duration so that it can be read again: `7d`, `1d12h`, `0s`. Parts of a second are left out.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let mut rest = duration.as_secs();
    let mut text = String::new();
    for unit in ['d', 'h', 'm', 's'] {
        let Some(seconds) = seconds_of(unit) else { continue };
        if rest >= seconds {
            // A String takes whatever is written to it.
            let _ = write!(text, "{}{unit}", rest / seconds);
            rest %= seconds;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Seconds in one unit.
fn seconds_of(unit: char) -> Option<u64> {
    match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3_600),
        'd' => Some(86_400),
        'w' => Some(604_800),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_units_are_read() {
        for (text, seconds) in [
            ("90s", 90),
            ("15m", 900),
            ("1h30m", 5_400),
            ("1d12h", 129_600),
            ("2w", 1_209_600),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for (seconds, text) in [
            (0, "0s"),
            (90, "1m30s"),
            (129_600, "1d12h"),
            (172_800, "2d"),
            (604_801, "7d1s"),
        ] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(format_duration(duration), text);
            assert_eq!(parse_duration(text), Some(duration));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "15",
            "m",
            "1.5h",
            "-1s",
            "1 h",
            "1y",
            "1hm",
            "99999999999999999999s",
            "18446744073709551615w",
            "1\u{e9}",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
