//! The snapshot of launch templates.
//!
//! Owns what is known of each template's versions, from which read, and whether it may still be believed. The
//! polls list the default versions of all templates of the account, so that a name that is not in the list
//! does not exist. Must not decide when to poll.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::poll::{Poll, PollHealth, Polled};
use super::reads::Reads;
use super::{ChangedName, lagging};
use crate::aws::call::Service;
use crate::aws::changes::Changes;
use crate::aws::ledger::{Moment, Touched, WriteLedger};
use crate::plan::facts::{Fact, LaunchTemplate};

const ACTION: &str = "DescribeLaunchTemplateVersions";

struct Entry {
    template: LaunchTemplate,
    /// When the read that said so began.
    read: Moment,
}

#[derive(Default)]
struct Snapshot {
    entries: HashMap<String, Entry>,
    poll: Poll,
}

pub(super) struct TemplateStore {
    reads: Arc<dyn Reads>,
    ledger: Arc<WriteLedger>,
    changes: Arc<Changes<ChangedName>>,
    snapshot: Mutex<Snapshot>,
}

impl TemplateStore {
    pub fn new(reads: Arc<dyn Reads>, ledger: Arc<WriteLedger>, changes: Arc<Changes<ChangedName>>) -> Self {
        Self {
            reads,
            ledger,
            changes,
            snapshot: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_interval(&self, interval: Duration) {
        self.lock().poll.interval = interval;
    }

    pub fn health(&self) -> PollHealth {
        self.lock().poll.health()
    }

    /// Waits for a poll that began at or after this place in the order.
    pub async fn polled_since(&self, sequence: u64) {
        let mut polled = self.lock().poll.watch_polled();
        // The sender lives as long as this store.
        let _ = polled.wait_for(|began| *began >= sequence).await;
    }

    pub async fn synced(&self) {
        let mut synced = self.lock().poll.watch_synced();
        // The sender lives as long as this store.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// What the snapshot says; `None` if only a read by name can tell.
    pub fn snapshot(&self, name: &str, complete: bool) -> Option<Fact<LaunchTemplate>> {
        let snapshot = self.lock();
        let by_name = Touched::Template(name.to_owned());
        let (template, read) = match snapshot.entries.get(name) {
            Some(entry) => (Some(&entry.template), entry.read),
            // Never polled: nothing can be said about what is not there.
            None => (None, snapshot.poll.last_success?),
        };
        let dirty = self.ledger.dirty(&by_name, read.sequence)
            || template.is_some_and(|template| self.dirty_by_id(template, read.sequence));
        if dirty || template.is_some_and(|template| complete && !template.complete) {
            return None;
        }
        if snapshot.poll.too_old(read.at) {
            let action = format!("{}:{ACTION}", Service::Ec2.prefix());
            return snapshot
                .poll
                .active
                .then(|| Fact::Unknown(snapshot.poll.stale(&action, read.at)));
        }
        match self.judged(name, template.cloned()) {
            // A read by name may show by now what this one missed.
            Fact::Unknown(_) => None,
            fact => Some(fact),
        }
    }

    /// Reads one template with all its versions. A failed read leaves the snapshot as it is.
    pub async fn read(&self, name: &str) -> Fact<LaunchTemplate> {
        let began = self.ledger.moment();
        let template = match self.reads.template_named(name.to_owned()).await {
            Fact::Found(template) => Some(template),
            Fact::NotFound => None,
            Fact::Unknown(failure) => return Fact::Unknown(failure),
        };
        let fact = self.judged(name, template.clone());
        // What may be lag is not kept, so that the next question reads again.
        if !matches!(fact, Fact::Unknown(_)) && self.put(name, template, began) {
            self.changes.publish([ChangedName::Template(name.to_owned())]);
        }
        fact
    }

    /// Takes over what a read by name said. Answers whether it differs from what was known.
    fn put(&self, name: &str, template: Option<LaunchTemplate>, read: Moment) -> bool {
        let mut snapshot = self.lock();
        let known = snapshot.entries.get(name);
        if known.is_some_and(|known| known.read.sequence > read.sequence) {
            return false;
        }
        let changed = known.is_some_and(|known| template.as_ref().is_none_or(|new| differs(&known.template, new)));
        match template {
            Some(template) => {
                snapshot.entries.insert(name.to_owned(), Entry { template, read });
            }
            None => {
                snapshot.entries.remove(name);
            }
        }
        changed
    }

    fn take_over(&self, templates: Vec<LaunchTemplate>, began: Moment) -> BTreeSet<ChangedName> {
        let mut snapshot = self.lock();
        let first = snapshot.poll.succeeded(began);
        let mut changed = BTreeSet::new();
        let mut before = std::mem::take(&mut snapshot.entries);
        for listed in templates {
            let name = listed.name.clone();
            let known = before.remove(&name);
            let entry = match known {
                // A later read by name wins; so does what was known over a list that lags behind a write.
                Some(known) if known.read.sequence > began.sequence => known,
                Some(known) if self.ledger.missing_in(&listed).is_some() => known,
                // The list bears out what is known, its other versions included, unless we wrote meanwhile.
                Some(known) if !differs(&known.template, &listed) && !self.dirty(&known) => {
                    Entry { read: began, ..known }
                }
                known => {
                    let differs = known.as_ref().map(|known| differs(&known.template, &listed));
                    if differs.unwrap_or(!first) {
                        changed.insert(ChangedName::Template(name.clone()));
                    }
                    Entry {
                        template: listed,
                        read: began,
                    }
                }
            };
            snapshot.entries.insert(name, entry);
        }
        for (name, entry) in before {
            if entry.read.sequence > began.sequence {
                snapshot.entries.insert(name, entry);
            } else {
                changed.insert(ChangedName::Template(name));
            }
        }
        changed
    }

    fn dirty(&self, entry: &Entry) -> bool {
        self.ledger
            .dirty(&Touched::Template(entry.template.name.clone()), entry.read.sequence)
            || self.dirty_by_id(&entry.template, entry.read.sequence)
    }

    fn dirty_by_id(&self, template: &LaunchTemplate, read: u64) -> bool {
        self.ledger.dirty(&Touched::Template(template.id.clone()), read)
    }

    /// The fact, with what may be lag turned into not knowing.
    fn judged(&self, name: &str, template: Option<LaunchTemplate>) -> Fact<LaunchTemplate> {
        match template {
            Some(template) => {
                self.ledger.shown(&template);
                match self.ledger.missing_in(&template) {
                    Some(missing) => Fact::Unknown(lagging(Service::Ec2, ACTION, &missing)),
                    None => Fact::Found(template),
                }
            }
            None if self.ledger.made_recently(&Touched::Template(name.to_owned())) => Fact::Unknown(lagging(
                Service::Ec2,
                ACTION,
                "the template, made a moment ago, does not show yet",
            )),
            None => Fact::NotFound,
        }
    }
}

impl Polled for TemplateStore {
    async fn poll(&self, clusters: &[String]) -> bool {
        if clusters.is_empty() {
            self.lock().poll.idle();
            return true;
        }
        self.lock().poll.active = true;
        let began = self.ledger.moment();
        match self.reads.default_versions().await {
            Ok(templates) => {
                let changed = self.take_over(templates, began);
                self.changes.publish(changed);
                true
            }
            Err(failure) => {
                tracing::warn!(%failure, "polling the launch templates failed");
                self.lock().poll.failed(failure);
                false
            }
        }
    }
}

/// Whether two readings of a template differ in what both of them tell.
fn differs(one: &LaunchTemplate, other: &LaunchTemplate) -> bool {
    let default = |template: &LaunchTemplate| template.versions.get(&template.default_version).cloned();
    one.id != other.id
        || one.default_version != other.default_version
        || default(one) != default(other)
        || (one.complete && other.complete && one.versions != other.versions)
}
