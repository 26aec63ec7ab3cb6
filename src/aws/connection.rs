//! The five SDK clients and what they share.
//!
//! Owns how clients are configured. Must not hold a call; those are in the adapters. Installing the rustls
//! provider is `main`'s business.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, Region};
use aws_smithy_http_client::tls;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use super::call::{CallObserver, Calls, Service};
use super::ledger::WriteLedger;
use super::rates::Rates;
use super::server_clock::OverheardClock;
use crate::fence::Fence;
use crate::plan::facts::Failure;

/// How to reach AWS. Credentials and an endpoint override (`AWS_ENDPOINT_URL`) come from the environment by
/// AWS's own rules.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// The region; absent = AWS's own chain: environment, profile, instance metadata.
    pub region: Option<String>,
    /// Longest time for one attempt.
    pub attempt_timeout: Duration,
    /// Longest time for a call with its retries; also the longest wait for a token of our own buckets.
    pub operation_timeout: Duration,
    /// Attempts per call, the first included.
    pub max_attempts: u32,
    /// Our own request rates.
    pub rates: Rates,
    /// What every call that changes something has to pass.
    pub fence: Fence,
    /// Overhears AWS's clock.
    pub clock: OverheardClock,
    /// Is told about every call.
    pub observer: Option<Arc<dyn CallObserver>>,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            region: None,
            attempt_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(15),
            max_attempts: 3,
            rates: Rates::default(),
            fence: Fence::always(),
            clock: OverheardClock::new(Arc::new(|| jiff::Timestamp::UNIX_EPOCH)),
            observer: None,
        }
    }
}

/// Why no connection could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither the settings nor AWS's own chain name a region.
    #[error("no AWS region: set --aws-region or AWS_REGION, or run where instance metadata answers")]
    NoRegion,
}

/// The clients of the AWS services in use. Clones share everything.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Clients>,
}

struct Clients {
    region: String,
    autoscaling: aws_sdk_autoscaling::Client,
    ec2: aws_sdk_ec2::Client,
    eks: aws_sdk_eks::Client,
    iam: aws_sdk_iam::Client,
    ssm: aws_sdk_ssm::Client,
    calls: Calls,
    ledger: Arc<WriteLedger>,
}

impl Connection {
    /// Makes the clients. Sends nothing, except where the chain has to ask instance metadata for the region.
    ///
    /// # Errors
    /// [`ConnectError::NoRegion`] if no region is known.
    pub async fn connect(settings: &ConnectionSettings) -> Result<Self, ConnectError> {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
            .build_https();
        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(settings.attempt_timeout)
            .operation_timeout(settings.operation_timeout)
            .build();
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            // Without it loading panics: the SDK's own default client is compiled out.
            .http_client(http)
            .timeout_config(timeouts)
            .retry_config(RetryConfig::standard().with_max_attempts(settings.max_attempts.max(1)))
            // Meant for bodies of unknown length; every answer here is bounded by the attempt timeout.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(region) = &settings.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Ok(name) = AppName::new("sluice") {
            loader = loader.app_name(name);
        }
        let config = loader.load().await;
        let region = config.region().ok_or(ConnectError::NoRegion)?.to_string();
        Ok(Self {
            inner: Arc::new(Clients {
                region,
                autoscaling: aws_sdk_autoscaling::Client::from_conf(
                    aws_sdk_autoscaling::config::Builder::from(&config)
                        .interceptor(settings.clock.clone())
                        .build(),
                ),
                ec2: aws_sdk_ec2::Client::new(&config),
                eks: aws_sdk_eks::Client::new(&config),
                iam: aws_sdk_iam::Client::new(&config),
                ssm: aws_sdk_ssm::Client::from_conf(
                    aws_sdk_ssm::config::Builder::from(&config)
                        .interceptor(settings.clock.clone())
                        .build(),
                ),
                calls: Calls::new(
                    &settings.rates,
                    settings.operation_timeout,
                    settings.fence.clone(),
                    settings.observer.clone(),
                ),
                ledger: Arc::new(WriteLedger::default()),
            }),
        })
    }

    /// The region of all clients.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.inner.region
    }

    pub(super) fn autoscaling(&self) -> &aws_sdk_autoscaling::Client {
        &self.inner.autoscaling
    }

    pub(super) fn ec2(&self) -> &aws_sdk_ec2::Client {
        &self.inner.ec2
    }

    pub(super) fn eks(&self) -> &aws_sdk_eks::Client {
        &self.inner.eks
    }

    pub(super) fn iam(&self) -> &aws_sdk_iam::Client {
        &self.inner.iam
    }

    pub(super) fn ssm(&self) -> &aws_sdk_ssm::Client {
        &self.inner.ssm
    }

    /// The ledger of our own changes, shared with the inventory.
    pub(super) fn ledger(&self) -> &Arc<WriteLedger> {
        &self.inner.ledger
    }

    /// Makes one call; see [`Calls::call`].
    pub(super) fn call<T, E>(
        &self,
        service: Service,
        action: &'static str,
        request: impl Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    ) -> impl Future<Output = Result<T, Failure>> + Send
    where
        T: Send,
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        // Boxed before anything waits: the SDK's futures take 20 kB and more, and a reconcile holds several.
        self.inner.calls.call(service, action, Box::pin(request))
    }
}
