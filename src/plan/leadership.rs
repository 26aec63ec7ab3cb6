//! Who may lead: the decision on one look at the Lease, and how long each side may rely on it.
//!
//! Owns the rule that a record counts as expired only by how long *we* have seen it stand still: the holder's clock may be
//! wrong by hours, and its times are for people. Must not read a clock: moments come in as time since any fixed moment of
//! this process, by a clock that never jumps.

use std::time::Duration;

/// How long the parts of an election take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

impl Timing {
    /// Checked times: others wait for longer than a leader goes on without a renewal, and a leader has more than one try.
    ///
    /// # Errors
    /// Which rule is broken, in the words of the command line.
    pub fn new(lease_duration: Duration, renew_deadline: Duration, retry_period: Duration) -> Result<Self, String> {
        if lease_duration <= renew_deadline {
            return Err(format!(
                "--leader-elect-lease-duration ({lease_duration:?}) has to be longer than --leader-elect-renew-deadline \
                 ({renew_deadline:?}): a leader must have stopped before another one begins"
            ));
        }
        if renew_deadline <= retry_period {
            return Err(format!(
                "--leader-elect-renew-deadline ({renew_deadline:?}) has to be longer than --leader-elect-retry-period \
                 ({retry_period:?}): one call without an answer must not end a leader"
            ));
        }
        if retry_period.is_zero() {
            return Err("--leader-elect-retry-period has to be longer than nothing".to_owned());
        }
        Ok(Self {
            lease_duration,
            renew_deadline,
            retry_period,
        })
    }

    /// How long the others let a record stand still before they take it.
    #[must_use]
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long a leader leads after it *began* the last renewal that went well.
    #[must_use]
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// Pause between two looks or renewals.
    #[must_use]
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// Longest time for one call: shorter than the pause, so that a call without an answer never stands in the way of the
    /// next try.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        self.retry_period * 9 / 10
    }
}

/// What a Lease says, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty = it was given back.
    pub holder: String,
    /// How long its holder asked others to wait.
    pub duration: Duration,
}

/// One that wants to lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name, different for each process that ever ran.
    pub identity: String,
    /// How long it lets another one's record stand still.
    pub patience: Duration,
}

/// What to do about the Lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write our name, on exactly the version that was read.
    Acquire,
    /// It is ours already: write it anew.
    Renew,
    /// Somebody leads.
    Wait,
}

/// Decides on a Lease that was read just now; `None` = there is none. `observed` is the moment at which we first saw it in the
/// version that it has.
#[must_use]
pub fn decide(lease: Option<&Record>, me: &Candidate, observed: Duration, now: Duration) -> Step {
    let Some(lease) = lease else { return Step::Acquire };
    if lease.holder == me.identity {
        return Step::Renew;
    }
    if lease.holder.is_empty() {
        return Step::Acquire;
    }
    // Whoever set longer times relies on them.
    let patience = lease.duration.max(me.patience);
    if now.saturating_sub(observed) > patience {
        Step::Acquire
    } else {
        Step::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn me() -> Candidate {
        Candidate {
            identity: "me".to_owned(),
            patience: seconds(15),
        }
    }

    fn held_by(holder: &str) -> Record {
        Record {
            holder: holder.to_owned(),
            duration: seconds(15),
        }
    }

    #[test]
    fn one_look_one_step() {
        for (case, lease, observed, now, step) in [
            ("no lease", None, 0, 0, Step::Acquire),
            ("just seen", Some("other"), 100, 100, Step::Wait),
            ("not long enough", Some("other"), 100, 115, Step::Wait),
            ("stood still", Some("other"), 100, 116, Step::Acquire),
            ("given back", Some(""), 100, 100, Step::Acquire),
            ("ours", Some("me"), 100, 100, Step::Renew),
            ("ours for long", Some("me"), 100, 900, Step::Renew),
        ] {
            let lease = lease.map(held_by);
            assert_eq!(
                decide(lease.as_ref(), &me(), seconds(observed), seconds(now)),
                step,
                "{case}"
            );
        }
    }

    #[test]
    fn the_longer_of_both_times_counts() {
        let mut lease = held_by("other");
        lease.duration = seconds(60);
        assert_eq!(decide(Some(&lease), &me(), seconds(0), seconds(60)), Step::Wait);
        assert_eq!(decide(Some(&lease), &me(), seconds(0), seconds(61)), Step::Acquire);
        lease.duration = seconds(1);
        assert_eq!(decide(Some(&lease), &me(), seconds(0), seconds(15)), Step::Wait);
    }

    #[test]
    fn times_that_do_not_fit_are_refused_by_name() {
        for (lease, renew, retry, blamed) in [
            (10, 10, 2, Some("lease-duration")),
            (15, 2, 2, Some("renew-deadline")),
            (15, 10, 0, Some("retry-period")),
            (15, 10, 2, None),
        ] {
            let timing = Timing::new(seconds(lease), seconds(renew), seconds(retry));
            match blamed {
                Some(flag) => assert!(timing.unwrap_err().starts_with(&format!("--leader-elect-{flag}"))),
                None => assert!(timing.unwrap().call_timeout() < seconds(retry)),
            }
        }
    }

    proptest! {
        /// Nothing but our own observation lets us take what another one holds.
        #[test]
        fn a_record_is_taken_only_after_we_saw_it_stand_still(
            holder in "[a-z]{1,3}", duration in 0u64..100, patience in 1u64..100, observed in 0u64..1000, later in 0u64..200,
        ) {
            let lease = Record { holder: holder.clone(), duration: seconds(duration) };
            let me = Candidate { identity: "me-1".to_owned(), patience: seconds(patience) };
            let step = decide(Some(&lease), &me, seconds(observed), seconds(observed + later));
            let expected = if later > duration.max(patience) { Step::Acquire } else { Step::Wait };
            prop_assert_eq!(step, expected);
        }

        /// Where our own clock began makes no difference.
        #[test]
        fn only_the_time_between_counts(start in 0u64..1_000_000, later in 0u64..40) {
            let at = |start| decide(Some(&held_by("other")), &me(), seconds(start), seconds(start + later));
            prop_assert_eq!(at(start), at(0));
        }
    }
}
