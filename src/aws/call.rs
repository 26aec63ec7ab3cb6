//! The one way out: every AWS call passes here.
//!
//! Owns the deadline of a call, that no change goes out past the fence, and the hook that counts calls. Must not know what a call means; the class of a failure comes from [`super::error`].

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use tokio::time::{Instant, timeout};

use super::error;
use super::rates::{Bucket, Buckets, Rates};
use crate::fence::Fence;
use crate::plan::facts::{Failure, FailureClass};

/// The AWS services that the product talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::EnumIter)]
pub enum Service {
    /// EC2 Auto Scaling.
    AutoScaling,
    /// EC2.
    Ec2,
    /// EKS.
    Eks,
    /// IAM.
    Iam,
    /// Systems Manager.
    Ssm,
}

impl Service {
    /// The service's prefix in IAM actions, as in `autoscaling:CreateAutoScalingGroup`.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::AutoScaling => "autoscaling",
            Self::Ec2 => "ec2",
            Self::Eks => "eks",
            Self::Iam => "iam",
            Self::Ssm => "ssm",
        }
    }
}

/// A call that ended, for the one who counts.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// The service called.
    pub service: Service,
    /// The action in the service's own spelling, for example `DescribeImages`.
    pub action: &'static str,
    /// `None` if it succeeded, else the class of the failure.
    pub failure: Option<FailureClass>,
    /// How long it waited for a token of our own bucket.
    pub waited: Duration,
    /// How long the service took, the SDK's retries included.
    pub took: Duration,
}

/// Is told about every call; metrics hang here, so that this layer need not know them.
pub trait CallObserver: Send + Sync {
    /// A call ended. Must return at once: the caller waits.
    fn called(&self, record: &CallRecord);
}

/// Whether an action changes nothing; AWS names its reads so without exception among those used here.
fn is_read(action: &str) -> bool {
    ["Describe", "List", "Get"]
        .iter()
        .any(|start| action.starts_with(start))
}

/// What every call shares.
pub(super) struct Calls {
    autoscaling: Buckets,
    ec2: Buckets,
    eks: Buckets,
    iam: Buckets,
    ssm: Buckets,
    deadline: Duration,
    fence: Fence,
    observer: Option<Arc<dyn CallObserver>>,
}

impl Calls {
    /// `deadline` bounds the wait for a token, and then once more the call itself: a write that has begun is
    /// never cut short because it stood in a queue.
    pub(super) fn new(
        rates: &Rates,
        deadline: Duration,
        fence: Fence,
        observer: Option<Arc<dyn CallObserver>>,
    ) -> Self {
        Self {
            autoscaling: Buckets::new(rates.autoscaling),
            ec2: Buckets::new(rates.ec2),
            eks: Buckets::new(rates.eks),
            iam: Buckets::new(rates.iam),
            ssm: Buckets::new(rates.ssm),
            deadline,
            fence,
            observer,
        }
    }

    /// Makes one call: takes a token, passes the fence if it changes something, sends, bounds, classifies, counts.
    ///
    /// # Errors
    /// The service's failure in the product's form; [`FailureClass::Throttled`] if no token came in time,
    /// [`FailureClass::NotLeading`] for a change without the right to write.
    pub(super) async fn call<T, E>(
        &self,
        service: Service,
        action: &'static str,
        request: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, Failure>
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let queued = Instant::now();
        let token = timeout(self.deadline, self.bucket(service, action).take()).await;
        let sent = Instant::now();
        let answer = if token.is_err() {
            let message = "too many calls of our own are waiting for the request rate";
            Err(error::failure(service, action, FailureClass::Throttled, None, message))
        } else {
            // The SDK has the same deadline; this one holds even if a credentials provider hangs.
            let request = timeout(self.deadline + Duration::from_secs(1), request);
            let answer = if is_read(action) {
                Ok(request.await)
            } else {
                // After the wait for a token, and again with each step: the SDK signs, connects and tries again in there.
                let name = format!("{}:{action}", service.prefix());
                self.fence.write(&name, request).await
            };
            match answer {
                Ok(Ok(Ok(answer))) => Ok(answer),
                Ok(Ok(Err(error))) => Err(error::failure_of(service, action, &error)),
                Ok(Err(_)) => Err(error::failure(
                    service,
                    action,
                    FailureClass::Unavailable,
                    None,
                    "no answer in time",
                )),
                Err(not_leading) => Err(not_leading),
            }
        };
        if let Some(observer) = &self.observer {
            observer.called(&CallRecord {
                service,
                action,
                failure: answer.as_ref().err().map(|failure| failure.class),
                waited: sent - queued,
                took: sent.elapsed(),
            });
        }
        answer
    }

    fn bucket(&self, service: Service, action: &str) -> &Bucket {
        let buckets = match service {
            Service::AutoScaling => &self.autoscaling,
            Service::Ec2 => &self.ec2,
            Service::Eks => &self.eks,
            Service::Iam => &self.iam,
            Service::Ssm => &self.ssm,
        };
        if is_read(action) {
            &buckets.reads
        } else {
            &buckets.writes
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use aws_sdk_ssm::operation::get_parameters::GetParametersError;
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::aws::rates::{Rate, ServiceRates};
    use crate::fence::fence;

    #[derive(Default)]
    struct Seen(Mutex<Vec<(Option<FailureClass>, u128, u128)>>);

    impl CallObserver for Seen {
        fn called(&self, record: &CallRecord) {
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((
                record.failure,
                record.waited.as_secs().into(),
                record.took.as_secs().into(),
            ));
        }
    }

    fn calls(seen: &Arc<Seen>) -> Calls {
        let slow = ServiceRates {
            reads: Rate::new(1, 1),
            writes: Rate::new(1, 1),
        };
        let rates = Rates {
            ssm: slow,
            ..Rates::default()
        };
        Calls::new(
            &rates,
            Duration::from_secs(2),
            Fence::always(),
            Some(Arc::clone(seen) as Arc<dyn CallObserver>),
        )
    }

    /// An answer after so many seconds.
    async fn after(seconds: u64) -> Result<(), SdkError<GetParametersError, HttpResponse>> {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_and_counted() {
        let seen = Arc::new(Seen::default());
        let calls = calls(&seen);
        let call = || calls.call(Service::Ssm, "GetParameters", after(0));
        let answers = tokio::join!(call(), call(), call(), call(), call());
        assert!(answers.0.is_ok() && answers.1.is_ok() && answers.2.is_ok());
        let failure = answers.4.unwrap_err();
        assert_eq!(
            (failure.class, failure.action.as_str()),
            (FailureClass::Throttled, "ssm:GetParameters")
        );
        let throttled = (Some(FailureClass::Throttled), 2, 0);
        assert!(seen.0.lock().unwrap().contains(&throttled));
        // Writes have a bucket of their own.
        assert!(calls.call(Service::Ssm, "PutParameter", after(0)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_ends() {
        let seen = Arc::new(Seen::default());
        let failure = calls(&seen)
            .call(Service::Ssm, "GetParameters", after(9))
            .await
            .unwrap_err();
        assert_eq!(failure.class, FailureClass::Unavailable);
        assert_eq!(*seen.0.lock().unwrap(), [(Some(FailureClass::Unavailable), 0, 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_right_to_write_only_reads_go_out() {
        let (keeper, fence) = fence();
        let calls = Calls::new(&Rates::default(), Duration::from_secs(2), fence, None);
        let sent = Mutex::new(0);
        let call = |action| {
            let request = async {
                *sent.lock().unwrap() += 1;
                after(0).await
            };
            calls.call(Service::Ssm, action, request)
        };
        assert!(call("GetParameters").await.is_ok());
        let failure = call("PutParameter").await.unwrap_err();
        assert_eq!(
            (failure.class, failure.action.as_str(), *sent.lock().unwrap()),
            (FailureClass::NotLeading, "ssm:PutParameter", 1)
        );
        assert!(keeper.open_until(Instant::now() + Duration::from_secs(1)));
        assert!(call("PutParameter").await.is_ok());
    }
}
