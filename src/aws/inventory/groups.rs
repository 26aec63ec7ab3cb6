//! The snapshot of Auto Scaling groups.
//!
//! Owns what is known of each group, from which read, and whether it may still be believed. Must not decide
//! when to poll.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::poll::{Poll, PollHealth, Polled};
use super::reads::Reads;
use super::{ChangedName, lagging};
use crate::aws::call::Service;
use crate::aws::changes::Changes;
use crate::aws::ledger::{Moment, Touched, WriteLedger};
use crate::plan::facts::{AutoScalingGroup, Fact};

const ACTION: &str = "DescribeAutoScalingGroups";

/// What one read said about a name.
struct Entry {
    /// `None`: no such group.
    group: Option<AutoScalingGroup>,
    /// Whether the last poll listed it. A group that a poll cannot list (its tags are gone) is known only from
    /// reads by name.
    listed: bool,
    /// When that read began.
    read: Moment,
}

#[derive(Default)]
struct Snapshot {
    entries: HashMap<String, Entry>,
    by_instance: HashMap<String, String>,
    poll: Poll,
}

impl Snapshot {
    /// Takes over what a read said, unless a later read is known. Answers whether it differs from before;
    /// `None` if nothing was known before.
    fn put(&mut self, name: &str, group: Option<AutoScalingGroup>, listed: bool, read: Moment) -> Option<bool> {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.listed |= listed;
            if entry.read.sequence > read.sequence {
                return Some(false);
            }
            if entry.group == group {
                entry.read = read;
                return Some(false);
            }
        }
        let known = self.remove(name);
        for instance in group.iter().flat_map(|group| &group.instances) {
            self.by_instance.insert(instance.id.clone(), name.to_owned());
        }
        let listed = listed || (group.is_some() && known.as_ref().is_some_and(|entry| entry.listed));
        self.entries.insert(name.to_owned(), Entry { group, listed, read });
        known.map(|_| true)
    }

    fn remove(&mut self, name: &str) -> Option<Entry> {
        let entry = self.entries.remove(name)?;
        for instance in entry.group.iter().flat_map(|group| &group.instances) {
            if self.by_instance.get(&instance.id).is_some_and(|group| group == name) {
                self.by_instance.remove(&instance.id);
            }
        }
        Some(entry)
    }
}

pub(super) struct GroupStore {
    reads: Arc<dyn Reads>,
    ledger: Arc<WriteLedger>,
    changes: Arc<Changes<ChangedName>>,
    snapshot: Mutex<Snapshot>,
}

impl GroupStore {
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

    pub fn of_instance(&self, instance_id: &str) -> Option<String> {
        self.lock().by_instance.get(instance_id).cloned()
    }

    /// What the snapshot says; `None` if only a read by name can tell.
    pub fn snapshot(&self, name: &str) -> Option<Fact<AutoScalingGroup>> {
        let snapshot = self.lock();
        let entry = snapshot.entries.get(name)?;
        if self.ledger.dirty(&Touched::Group(name.to_owned()), entry.read.sequence) {
            return None;
        }
        if snapshot.poll.too_old(entry.read.at) {
            // The polls that should have renewed it fail; reading one by one would add to the trouble.
            let failing = entry.listed && snapshot.poll.active;
            let action = format!("{}:{ACTION}", Service::AutoScaling.prefix());
            return failing.then(|| Fact::Unknown(snapshot.poll.stale(&action, entry.read.at)));
        }
        match self.judged(name, entry.group.clone()) {
            // A read by name may show by now what this one missed.
            Fact::Unknown(_) => None,
            fact => Some(fact),
        }
    }

    /// Reads by name. A failed read makes no claim and leaves the snapshot as it is.
    pub async fn read(&self, names: Vec<String>) -> BTreeMap<String, Fact<AutoScalingGroup>> {
        let began = self.ledger.moment();
        let answer = match self.reads.groups_named(names.clone()).await {
            Ok(answer) => answer,
            Err(failure) => {
                return names
                    .into_iter()
                    .map(|name| (name, Fact::Unknown(failure.clone())))
                    .collect();
            }
        };
        let mut found: HashMap<String, AutoScalingGroup> =
            answer.into_iter().map(|group| (group.name.clone(), group)).collect();
        let mut facts = BTreeMap::new();
        let mut changed = BTreeSet::new();
        {
            let mut snapshot = self.lock();
            for name in names {
                let group = found.remove(&name);
                let fact = self.judged(&name, group.clone());
                // An absence that may be lag is not kept, so that the next question reads again.
                if !matches!(fact, Fact::Unknown(_)) && snapshot.put(&name, group, false, began) == Some(true) {
                    changed.insert(ChangedName::Group(name.clone()));
                }
                facts.insert(name, fact);
            }
        }
        self.changes.publish(changed);
        facts
    }

    fn take_over(&self, groups: Vec<AutoScalingGroup>, began: Moment) -> BTreeSet<ChangedName> {
        let mut snapshot = self.lock();
        let first = snapshot.poll.succeeded(began);
        let mut changed = BTreeSet::new();
        let mut listed = BTreeSet::new();
        for group in groups {
            let name = group.name.clone();
            // What the first poll finds is no change: everyone looks at everything then anyway.
            if snapshot.put(&name, Some(group), true, began).unwrap_or(!first) {
                changed.insert(ChangedName::Group(name.clone()));
            }
            listed.insert(name);
        }
        // Gone from the list: deleted, or its tags are. The next question reads by name. What was only ever
        // read by name goes once it is too old to be of use.
        let gone: Vec<String> = snapshot
            .entries
            .iter()
            .filter(|(name, entry)| !listed.contains(*name) && entry.read.sequence < began.sequence)
            .filter(|(_, entry)| entry.listed || snapshot.poll.too_old(entry.read.at))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if snapshot.remove(&name).is_some_and(|entry| entry.listed) {
                changed.insert(ChangedName::Group(name));
            }
        }
        changed
    }

    /// The fact, with an absence that may be lag turned into not knowing.
    fn judged(&self, name: &str, group: Option<AutoScalingGroup>) -> Fact<AutoScalingGroup> {
        match group {
            Some(group) => Fact::Found(group),
            None if self.ledger.made_recently(&Touched::Group(name.to_owned())) => Fact::Unknown(lagging(
                Service::AutoScaling,
                ACTION,
                "the group, made a moment ago, does not show yet",
            )),
            None => Fact::NotFound,
        }
    }
}

impl Polled for GroupStore {
    async fn poll(&self, clusters: &[String]) -> bool {
        if clusters.is_empty() {
            let mut snapshot = self.lock();
            snapshot.poll.idle();
            for entry in snapshot.entries.values_mut() {
                entry.listed = false;
            }
            return true;
        }
        self.lock().poll.active = true;
        let began = self.ledger.moment();
        match self.reads.list_groups(clusters.to_vec()).await {
            Ok(groups) => {
                let changed = self.take_over(groups, began);
                self.changes.publish(changed);
                true
            }
            Err(failure) => {
                tracing::warn!(%failure, "polling the Auto Scaling groups failed");
                self.lock().poll.failed(failure);
                false
            }
        }
    }
}
