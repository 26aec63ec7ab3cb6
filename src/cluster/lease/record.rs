//! The Lease as an object: how it is read, written and compared.
//!
//! Owns the calls and which fields they set. Fields of others stay. Must not decide who leads.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;

use crate::api::field_manager;
use crate::cluster::call::read;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::leadership::{Candidate, Record};

/// Where the Lease is kept: the API server, or a stand-in in tests.
pub trait LeaseStore: Send + Sync + 'static {
    /// The Lease; `None` if there is none.
    fn get(&self) -> impl Future<Output = Result<Option<Lease>, Failure>> + Send;

    /// Writes it on the resourceVersion that it carries; without one it must not exist yet.
    fn put(&self, lease: Lease) -> impl Future<Output = Result<Lease, Failure>> + Send;
}

/// The Lease at the API server.
pub struct KubeLease {
    api: Api<Lease>,
    name: String,
}

impl KubeLease {
    /// The Lease of this name. The client should be nobody else's, so that their connections do not hold it up.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
        }
    }
}

// `read`, also for writes: the fence follows from these, so they cannot pass it.
impl LeaseStore for KubeLease {
    async fn get(&self) -> Result<Option<Lease>, Failure> {
        match read("kubernetes:get leases", self.api.get(&self.name)).await {
            Ok(lease) => Ok(Some(lease)),
            Err(failure) if failure.class == FailureClass::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn put(&self, mut lease: Lease) -> Result<Lease, Failure> {
        let parameters = PostParams {
            field_manager: Some(field_manager::OPERATOR.to_owned()),
            ..PostParams::default()
        };
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.managed_fields = None;
        if lease.resource_version().is_none() {
            read("kubernetes:create leases", self.api.create(&parameters, &lease)).await
        } else {
            let replace = self.api.replace(&self.name, &parameters, &lease);
            read("kubernetes:update leases", replace).await
        }
    }
}

/// The Lease with us as its holder from now on.
pub fn claimed(lease: Option<Lease>, me: &Candidate, now: Timestamp) -> Lease {
    let exists = lease.is_some();
    let mut lease = lease.unwrap_or_default();
    let spec = lease.spec.get_or_insert_default();
    if spec.holder_identity.as_deref() != Some(me.identity.as_str()) {
        spec.holder_identity = Some(me.identity.clone());
        spec.acquire_time = Some(MicroTime(now));
        let before = spec.lease_transitions.unwrap_or_default();
        spec.lease_transitions = Some(if exists { before.saturating_add(1) } else { 0 });
    }
    spec.renew_time = Some(MicroTime(another(spec.renew_time.as_ref(), now)));
    // Whole seconds, at least one; rounded up, so that nobody waits less than we rely on.
    let seconds = me.patience.as_millis().div_ceil(1000).max(1);
    spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
    lease
}

/// The time as the Lease can hold it, but never the one it holds: the others go by its version, and a write that changes
/// nothing, since the clock stands still, would leave that as it is.
fn another(before: Option<&MicroTime>, now: Timestamp) -> Timestamp {
    let micros = now.as_microsecond();
    let micros = match before {
        Some(before) if before.0.as_microsecond() == micros => micros + 1,
        _ => micros,
    };
    Timestamp::from_microsecond(micros).unwrap_or(now)
}

/// The Lease without a holder.
pub fn released(mut lease: Lease, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(String::new());
    spec.renew_time = Some(MicroTime(now));
    lease
}

/// Who holds it; empty = nobody.
pub fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

/// What a candidate saw of the Lease, and since when it is so.
pub struct Seen {
    start: Instant,
    /// Changes with each write, whatever the writer's clock says.
    version: Option<String>,
    record: Option<Record>,
    changed: Instant,
    leader: String,
}

impl Seen {
    /// Nothing yet.
    pub fn new(now: Instant) -> Self {
        Self {
            start: now,
            version: None,
            record: None,
            changed: now,
            leader: String::new(),
        }
    }

    /// Notes what was read. Answers the leader if that is another one than before.
    pub fn saw(&mut self, lease: Option<&Lease>, now: Instant) -> Option<String> {
        let version = lease.and_then(ResourceExt::resource_version);
        if version != self.version {
            self.changed = now;
            // Deleted by somebody: its holder may not know yet, so what it last said holds until it has expired.
            if let Some(lease) = lease {
                self.record = Some(record(lease));
            }
            self.version = version;
        }
        let leader = lease.map(holder).unwrap_or_default();
        if leader.is_empty() || leader == self.leader {
            return None;
        }
        leader.clone_into(&mut self.leader);
        Some(self.leader.clone())
    }

    /// What it says, and when that was first seen, counted from the start.
    pub fn record(&self) -> (Option<Record>, Duration) {
        (self.record.clone(), self.since_start(self.changed))
    }

    /// A moment, counted from the start.
    pub fn since_start(&self, moment: Instant) -> Duration {
        moment - self.start
    }
}

fn record(lease: &Lease) -> Record {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let seconds = u64::try_from(seconds.unwrap_or_default()).unwrap_or_default();
    Record {
        holder: holder(lease).to_owned(),
        duration: Duration::from_secs(seconds),
    }
}
