//! What the looks at requests share.
//!
//! Owns the stores and writers of the auto-approver. Must not hold state that a restart would miss: what matters is in objects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio_util::sync::CancellationToken;

use super::soak::Soaking;
use crate::aws::catalogue::Catalogue;
use crate::aws::server_clock::OverheardClock;
use crate::cluster::approvals::ApprovalWriter;
use crate::cluster::events::Publisher;
use crate::cluster::settings::SettingsInForce;
use crate::controllers::backoff::Backoff;
use crate::controllers::instance_group::context::{GuardedGroup, GuardedRequest};
use crate::fence::Fence;
use crate::metrics::{ReconcileMetrics, UpgradeMetrics};
use crate::plan::evidence::{SoakRecord, Soaked};

/// Proofs that ended, as they are kept.
#[derive(Debug, Default)]
pub struct Proofs {
    record: Mutex<SoakRecord>,
}

impl Proofs {
    fn lock(&self) -> MutexGuard<'_, SoakRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what an earlier process kept.
    pub fn restore(&self, earlier: SoakRecord) {
        self.lock().after(earlier);
    }

    /// All of it.
    #[must_use]
    pub fn record(&self) -> SoakRecord {
        self.lock().clone()
    }

    /// A span ended.
    pub fn ended(&self, schedule: &str, image: &str, span: Soaked) {
        self.lock().ended(schedule, image, span);
    }

    /// The longest span that ended.
    #[must_use]
    pub fn longest(&self, schedule: &str, image: &str) -> Option<Soaked> {
        self.lock().longest(schedule, image).cloned()
    }
}

/// What the looks share.
pub struct Context {
    /// Watched instance groups.
    pub groups: Store<GuardedGroup>,
    /// Watched upgrade requests.
    pub requests: Store<GuardedRequest>,
    /// Watched namespaces, metadata only.
    pub namespaces: Store<PartialObjectMeta<Namespace>>,
    /// The fleet's settings.
    pub settings: SettingsInForce,
    /// Proof that images work, as long as it lasts.
    pub soaking: Soaking,
    /// Proof that ended.
    pub proofs: Arc<Proofs>,
    /// Values of parameters over time.
    pub catalogue: Catalogue,
    /// AWS's clock.
    pub server_clock: OverheardClock,
    /// Approves.
    pub writer: ApprovalWriter,
    /// Publishes Events.
    pub publisher: Publisher,
    /// Wakes requests.
    pub wakes: RequestWakes,
    /// Pauses after failures.
    pub backoff: Backoff,
    /// Cancelled when the process is asked to end.
    pub stop: CancellationToken,
    /// Open while this process leads.
    pub fence: Fence,
    /// Counts reconciles.
    pub metrics: ReconcileMetrics,
    /// Counts what becomes of upgrades.
    pub upgrades: UpgradeMetrics,
}

impl Context {
    /// Whether a look may write.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.stop.is_cancelled() && self.fence.is_open()
    }
}

/// The way to make a request be looked at.
#[derive(Clone)]
pub struct RequestWakes {
    sender: UnboundedSender<ObjectRef<GuardedRequest>>,
}

impl RequestWakes {
    /// Wakes over this channel.
    #[must_use]
    pub fn new(sender: UnboundedSender<ObjectRef<GuardedRequest>>) -> Self {
        Self { sender }
    }

    /// Has a request looked at soon.
    pub fn wake(&self, namespace: &str, name: &str) {
        // The receiver only goes away when the process ends.
        let _ = self.sender.unbounded_send(ObjectRef::new(name).within(namespace));
    }
}
