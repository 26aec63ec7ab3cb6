//! Request rates: how many calls may go out.
//!
//! Owns the rates by service and the token buckets that keep them. Must not know what is called.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// A token bucket's size and refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Calls that may go out at once.
    pub burst: NonZeroU32,
    /// Calls a second after that.
    pub per_second: NonZeroU32,
}

impl Rate {
    /// A rate; zero counts as one, since a bucket that never fills would stop the product.
    #[must_use]
    pub const fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst: at_least_one(burst),
            per_second: at_least_one(per_second),
        }
    }
}

const fn at_least_one(number: u32) -> NonZeroU32 {
    match NonZeroU32::new(number) {
        Some(number) => number,
        None => NonZeroU32::MIN,
    }
}

/// The rates of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRates {
    /// For calls that change nothing.
    pub reads: Rate,
    /// For calls that change something.
    pub writes: Rate,
}

/// The rates of all services. The defaults leave room for others in a fresh account; an account with raised
/// quotas can raise them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Auto Scaling keeps one bucket for all its actions in an account and region and publishes no size.
    pub autoscaling: ServiceRates,
    /// EC2 gives each action its own bucket: 100 tokens and 20 a second for reads, 50 and 5 for changes. One
    /// bucket of ours for all reads and one for all changes stays below that whatever the mix.
    pub ec2: ServiceRates,
    /// `DescribeCluster`; EKS publishes no rate.
    pub eks: ServiceRates,
    /// `GetInstanceProfile`; IAM is global, so its bucket is shared with every region of the account.
    pub iam: ServiceRates,
    /// `GetParameters`: 40 a second by default.
    pub ssm: ServiceRates,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            autoscaling: ServiceRates {
                reads: Rate::new(40, 10),
                writes: Rate::new(40, 10),
            },
            ec2: ServiceRates {
                reads: Rate::new(80, 15),
                writes: Rate::new(40, 4),
            },
            eks: ServiceRates {
                reads: Rate::new(10, 5),
                writes: Rate::new(5, 1),
            },
            iam: ServiceRates {
                reads: Rate::new(20, 5),
                writes: Rate::new(5, 1),
            },
            ssm: ServiceRates {
                reads: Rate::new(20, 10),
                writes: Rate::new(5, 1),
            },
        }
    }
}

/// tokio's clock for governor, so that tests with paused time see the buckets fill.
#[derive(Clone)]
struct TokioClock {
    started: Instant,
}

impl Clock for TokioClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.started.elapsed().into()
    }
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Nanos>>;

/// A token bucket that serves in order of arrival.
pub(super) struct Bucket {
    limiter: Limiter,
    clock: TokioClock,
    /// Held by the one at the head of the queue. tokio's mutex is fair; without it every waiter would wake
    /// for each token and the last to come could win.
    head: tokio::sync::Mutex<()>,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        let clock = TokioClock {
            started: Instant::now(),
        };
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        Self {
            limiter: RateLimiter::direct_with_clock(quota, clock.clone()),
            clock,
            head: tokio::sync::Mutex::new(()),
        }
    }

    /// Waits for a token and takes it.
    pub(super) async fn take(&self) {
        let _head = self.head.lock().await;
        while let Err(not_yet) = self.limiter.check() {
            let wait = not_yet.wait_time_from(self.clock.now());
            // A timer fires no finer than a millisecond; without the floor this would spin.
            tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
        }
    }
}

/// The two buckets of a service.
pub(super) struct Buckets {
    pub reads: Bucket,
    pub writes: Bucket,
}

impl Buckets {
    pub(super) fn new(rates: ServiceRates) -> Self {
        Self {
            reads: Bucket::new(rates.reads),
            writes: Bucket::new(rates.writes),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let bucket = Bucket::new(Rate::new(3, 2));
        let started = Instant::now();
        let mut times = Vec::new();
        for _ in 0..5 {
            bucket.take().await;
            times.push(started.elapsed().as_millis());
        }
        assert_eq!(times, [0, 0, 0, 500, 1000]);
    }

    #[test]
    fn a_rate_is_never_zero() {
        assert_eq!(Rate::new(0, 0), Rate::new(1, 1));
    }
}
