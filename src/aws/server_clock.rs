//! AWS's clock, overheard: every answer carries a `Date`.
//!
//! Owns how the header comes to the estimate. Must not judge what a difference means; `plan::evidence` does.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};

use super::catalogue::Now;
use crate::plan::evidence::ServerClock;

/// The estimate of AWS's clock. Clones share it.
#[derive(Clone)]
pub struct OverheardClock {
    clock: Arc<Mutex<ServerClock>>,
    now: Now,
}

impl fmt::Debug for OverheardClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverheardClock")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl OverheardClock {
    /// Nothing heard yet; `now` tells the machine's time.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self {
            clock: Arc::default(),
            now,
        }
    }

    /// How far AWS's clock is ahead, where that does harm; negative = behind.
    #[must_use]
    pub fn skew(&self) -> Option<SignedDuration> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).skew()
    }

    /// Whether enough was heard to judge ages by (case D32).
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).is_known()
    }

    /// An answer carried this header. What is no date is passed over.
    fn heard(&self, date: &str) {
        if let Some(server) = parse(date) {
            let local = (self.now)();
            self.clock
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .heard(server, local);
        }
    }
}

/// An HTTP date (RFC 9110 §5.6.7).
fn parse(date: &str) -> Option<Timestamp> {
    let zoned = rfc2822::DateTimeParser::new().parse_zoned(date).ok()?;
    Some(zoned.timestamp())
}

#[dyn_dispatch_hint]
impl Intercept for OverheardClock {
    fn name(&self) -> &'static str {
        "OverheardClock"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(date) = context.response().headers().get("date") {
            self.heard(date);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_garbage_is_passed_over() {
        let want: Timestamp = "2026-12-01T01:20:31Z".parse().unwrap();
        assert_eq!(parse("Tue, 01 Dec 2026 01:20:31 GMT"), Some(want));
        let clock = OverheardClock::new(Arc::new(move || want));
        for date in ["", "yesterday", "Tue, 99 Dec 2026 01:20:31 GMT", "2026-12-01"] {
            assert_eq!(parse(date), None, "{date}");
            clock.heard(date);
        }
        for _ in 0..3 {
            assert_eq!(clock.skew(), None);
            clock.heard("Tue, 01 Dec 2026 03:20:31 GMT");
        }
        assert_eq!(clock.skew(), Some(SignedDuration::from_hours(2)));
    }
}
