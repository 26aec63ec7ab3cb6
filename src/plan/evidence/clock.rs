//! Whose clock counts for ages: that of AWS, where the machine's differs.
//!
//! Owns the estimate of how far the two are apart. A single odd answer (a proxy's cache) does not move it. Must not read a
//! clock.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// A difference up to this is harmless.
const HARMLESS: SignedDuration = SignedDuration::from_mins(5);
/// Answers that the estimate rests on.
const ANSWERS: usize = 5;
/// Fewer say nothing.
const ENOUGH: usize = 3;

/// The server's clock, as its answers tell it.
#[derive(Clone, Debug, Default)]
pub struct ServerClock {
    differences: VecDeque<SignedDuration>,
}

impl ServerClock {
    /// An answer carried this time, and the machine's clock said that.
    pub fn heard(&mut self, server: Timestamp, local: Timestamp) {
        self.differences.push_back(server.duration_since(local));
        if self.differences.len() > ANSWERS {
            self.differences.pop_front();
        }
    }

    /// How far the server is ahead; negative = behind. None = too few answers so far.
    #[must_use]
    pub fn difference(&self) -> Option<SignedDuration> {
        if !self.is_known() {
            return None;
        }
        let mut sorted: Vec<SignedDuration> = self.differences.iter().copied().collect();
        sorted.sort();
        // Of two in the middle the one that makes everything younger.
        sorted.get((sorted.len() - 1) / 2).copied()
    }

    /// Whether enough was heard to judge by.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.differences.len() >= ENOUGH
    }

    /// The same where it does harm.
    #[must_use]
    pub fn skew(&self) -> Option<SignedDuration> {
        self.difference().filter(|difference| difference.abs() > HARMLESS)
    }
}

/// The time that ages count to: the machine's, or the server's where the two are apart (case D32).
#[must_use]
pub fn counted(local: Timestamp, skew: Option<SignedDuration>) -> Timestamp {
    local.saturating_add(skew.unwrap_or_default()).unwrap_or(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Case D32: never earlier than by the server's clock, forward or back.
    #[test]
    fn the_server_counts_where_the_two_are_apart() {
        for (difference, counts) in [
            (0, 0),
            (299, 0),
            (-300, 0),
            (301, 301),
            (-7200, -7200),
            (86_400, 86_400),
        ] {
            let mut clock = ServerClock::default();
            for answer in 0..3 {
                assert_eq!(clock.skew(), None, "too few answers");
                clock.heard(at(1_000_000 + answer + difference), at(1_000_000 + answer));
            }
            assert_eq!(
                counted(at(2_000_000), clock.skew()),
                at(2_000_000 + counts),
                "{difference}"
            );
        }
    }

    #[test]
    fn one_odd_answer_moves_nothing_and_a_clock_put_right_is_seen() {
        let mut clock = ServerClock::default();
        for (server, skewed) in [
            (0, false),
            (0, false),
            (9000, false),
            (0, false),
            (9000, false),
            (9000, true),
            (9000, true),
        ] {
            clock.heard(at(1_000_000 + server), at(1_000_000));
            assert_eq!(clock.skew().is_some(), skewed);
        }
    }
}
