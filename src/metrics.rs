//! Metrics of the operator.
//!
//! Owns the registry, the names and the labels. Labels come from enums and constants only, never from object names. Must
//! not be imported by `plan`; `aws` reports its calls through its own observer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::aws::{CallObserver, CallRecord};
use crate::cluster::lease::ElectionObserver;
use crate::plan::facts::FailureClass;

/// Labels of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: &'static str,
    result: &'static str,
}

/// Labels of an AWS call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    service: &'static str,
    action: &'static str,
    result: &'static str,
}

/// Label of an AWS call's duration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabel {
    service: &'static str,
}

/// Counts and times reconciles of one controller.
#[derive(Clone)]
pub struct ReconcileMetrics {
    controller: &'static str,
    total: Family<ReconcileLabels, Counter>,
    seconds: Histogram,
}

impl ReconcileMetrics {
    /// Starts timing a reconcile.
    #[must_use]
    pub fn start(&self) -> ReconcileTimer<'_> {
        ReconcileTimer {
            metrics: self,
            started: Instant::now(),
        }
    }
}

/// A reconcile under way.
pub struct ReconcileTimer<'a> {
    metrics: &'a ReconcileMetrics,
    started: Instant,
}

impl ReconcileTimer<'_> {
    /// Records the end; `failure` is the class of what ended it early.
    pub fn done(self, failure: Option<FailureClass>) {
        let result = failure.map_or("Success", Into::into);
        self.metrics.seconds.observe(self.started.elapsed().as_secs_f64());
        self.metrics
            .total
            .get_or_create(&ReconcileLabels {
                controller: self.metrics.controller,
                result,
            })
            .inc();
    }
}

/// Counts AWS calls.
#[derive(Clone)]
struct AwsMetrics {
    total: Family<CallLabels, Counter>,
    seconds: Family<ServiceLabel, Histogram, fn() -> Histogram>,
}

impl AwsMetrics {
    fn new() -> Self {
        Self {
            total: Family::default(),
            seconds: Family::new_with_constructor(seconds),
        }
    }
}

impl CallObserver for AwsMetrics {
    fn called(&self, call: &CallRecord) {
        let result = call.failure.map_or("Success", Into::into);
        let service = call.service.prefix();
        self.total
            .get_or_create(&CallLabels {
                service,
                action: call.action,
                result,
            })
            .inc();
        self.seconds
            .get_or_create(&ServiceLabel { service })
            .observe(call.took.as_secs_f64());
    }
}

/// Counts leaders.
#[derive(Clone, Default)]
struct ElectionMetrics {
    leads: Gauge,
    transitions: Counter,
}

impl ElectionObserver for ElectionMetrics {
    fn leads(&self, leads: bool) {
        self.leads.set(leads.into());
    }

    fn changed(&self) {
        self.transitions.inc();
    }
}

/// Says how the settings are.
#[derive(Clone, Default)]
pub struct SettingsMetrics {
    invalid: Gauge,
}

impl SettingsMetrics {
    /// Whether the present settings have mistakes.
    pub fn trouble(&self, broken: bool) {
        self.invalid.set(broken.into());
    }
}

/// Counts what becomes of upgrades.
#[derive(Clone, Default)]
pub struct UpgradeMetrics {
    approvals: Counter,
    flaps: Counter,
    overdue: Gauge,
    late: Arc<Mutex<BTreeSet<String>>>,
}

impl UpgradeMetrics {
    /// The auto-approver approved a request.
    pub fn approved(&self) {
        self.approvals.inc();
    }

    /// A target went back to what runs before anybody decided.
    pub fn flapped(&self) {
        self.flaps.inc();
    }

    /// Whether a group has waited much longer than its schedule says.
    pub fn overdue(&self, group: &str, is_late: bool) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if is_late {
            late.insert(group.to_owned());
        } else {
            late.remove(group);
        }
        self.overdue.set(i64::try_from(late.len()).unwrap_or(i64::MAX));
    }
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(Duration::from_millis(4).as_secs_f64(), 2.0, 14))
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    aws: Arc<AwsMetrics>,
    election: ElectionMetrics,
    settings: SettingsMetrics,
    upgrades: UpgradeMetrics,
    total: Family<ReconcileLabels, Counter>,
}

impl Metrics {
    /// Registers everything.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("sluice");
        let aws = Arc::new(AwsMetrics::new());
        let total = Family::default();
        // The library appends `_total` to counters.
        registry.register(
            "reconciles",
            "Reconciles by controller and result",
            Family::clone(&total),
        );
        registry.register(
            "aws_calls",
            "AWS calls by service, action and result",
            aws.total.clone(),
        );
        registry.register("aws_call_seconds", "Time of AWS calls by service", aws.seconds.clone());
        let election = ElectionMetrics::default();
        registry.register(
            "leader",
            "1 while this process leads, 0 while it stands by",
            election.leads.clone(),
        );
        registry.register(
            "leader_transitions",
            "Changes of the leader that this process saw, its own turns included",
            election.transitions.clone(),
        );
        let (settings, upgrades) = (SettingsMetrics::default(), UpgradeMetrics::default());
        registry.register(
            "settings_invalid",
            "1 while the settings have mistakes and the last good ones stay in force",
            settings.invalid.clone(),
        );
        registry.register(
            "automatic_approvals",
            "Requests that the auto-approver approved",
            upgrades.approvals.clone(),
        );
        registry.register(
            "target_flaps",
            "Requests whose target went back to what runs before anybody decided",
            upgrades.flaps.clone(),
        );
        registry.register(
            "upgrades_overdue",
            "Groups whose upgrade has waited more than twice as long as their schedule says",
            upgrades.overdue.clone(),
        );
        Self {
            registry,
            aws,
            election,
            settings,
            upgrades,
            total,
        }
    }

    /// What the AWS layer reports its calls to.
    #[must_use]
    pub fn aws_observer(&self) -> Arc<dyn CallObserver> {
        Arc::clone(&self.aws) as Arc<dyn CallObserver>
    }

    /// What the election reports to.
    #[must_use]
    pub fn election_observer(&self) -> Arc<dyn ElectionObserver> {
        Arc::new(self.election.clone())
    }

    /// What the settings report to.
    #[must_use]
    pub fn settings(&self) -> SettingsMetrics {
        self.settings.clone()
    }

    /// What upgrades report to.
    #[must_use]
    pub fn upgrades(&self) -> UpgradeMetrics {
        self.upgrades.clone()
    }

    /// The metrics of one controller.
    pub fn reconciles(&mut self, controller: &'static str) -> ReconcileMetrics {
        let histogram = seconds();
        let registry = self
            .registry
            .sub_registry_with_label(("controller".into(), controller.into()));
        registry.register("reconcile_seconds", "Time of a reconcile", histogram.clone());
        ReconcileMetrics {
            controller,
            total: self.total.clone(),
            seconds: histogram,
        }
    }

    /// The text that a scrape gets.
    ///
    /// # Errors
    /// Only if formatting fails.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
