//! The one place that reads the time of day.
//!
//! Owns the clock. Everything else takes the time as an argument, so that tests can set it. Only a build with the feature
//! `testing` lets the clock be put forward from outside; no other build has the code for it.

use jiff::Timestamp;

/// The current time.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    let now = Timestamp::now();
    #[cfg(feature = "testing")]
    let now = now.saturating_add(testing::ahead()).unwrap_or(now);
    now
}

/// The clock of a build for tests: ahead of the machine's by as much as was asked for.
#[cfg(feature = "testing")]
pub mod testing {
    use std::sync::LazyLock;

    use jiff::SignedDuration;
    use tokio::sync::watch;

    static AHEAD: LazyLock<watch::Sender<SignedDuration>> = LazyLock::new(|| watch::Sender::new(SignedDuration::ZERO));

    /// How far the clock is ahead of the machine's.
    #[must_use]
    pub fn ahead() -> SignedDuration {
        *AHEAD.borrow()
    }

    /// Puts the clock. Whoever sleeps until a time has to look at it anew, see [`changes`].
    pub fn put(ahead: SignedDuration) {
        AHEAD.send_replace(ahead);
    }

    /// Follows the changes of the clock.
    #[must_use]
    pub fn changes() -> watch::Receiver<SignedDuration> {
        AHEAD.subscribe()
    }
}
