//! Long-lived caches for what seldom changes: subnets, security groups, instance types, instance profiles.
//!
//! Owns how long such an answer serves and for whom. Must not cache failures, and must not let an answer from
//! before an edit serve the edited group: a person who corrects a manifest has often just corrected AWS too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use tokio::time::Instant;

use super::connection::Connection;
use crate::plan::facts::{Fact, InstanceProfile, InstanceType, Subnet};

/// How long a found answer serves.
const FOUND: Duration = Duration::from_hours(10);

/// How long "does not exist" serves. Also how far before an edit an answer may have been read and still serve
/// the edited group, so that many groups made at once share one answer.
const BRIEF: Duration = Duration::from_secs(30);

/// Answers kept per kind.
const CAPACITY: u64 = 10_000;

/// Who asks: a group in one generation of its spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker<'a> {
    /// The group, by a key that is unique in the cluster.
    pub group: &'a str,
    /// The generation of its spec.
    pub generation: i64,
}

/// An answer and when it was asked for.
#[derive(Clone)]
struct Answer<T> {
    value: T,
    asked: Instant,
    good_for: Duration,
}

type Answers<K, T> = Cache<K, Answer<T>>;
/// A VPC and the references looked up in it.
type NetworkKey = (String, BTreeSet<String>);

/// The caches. Clones share everything.
#[derive(Clone)]
pub struct Lookups {
    connection: Connection,
    subnets: Answers<NetworkKey, BTreeMap<String, Fact<Subnet>>>,
    security_groups: Answers<NetworkKey, BTreeMap<String, Fact<String>>>,
    instance_types: Answers<String, Fact<InstanceType>>,
    instance_profiles: Answers<String, Fact<InstanceProfile>>,
    askers: Arc<Askers>,
}

impl Lookups {
    /// Empty caches.
    #[must_use]
    pub fn new(connection: &Connection) -> Self {
        Self {
            connection: connection.clone(),
            subnets: answers(),
            security_groups: answers(),
            instance_types: answers(),
            instance_profiles: answers(),
            askers: Arc::default(),
        }
    }

    /// As [`Connection::subnets`].
    pub async fn subnets(
        &self,
        asker: Asker<'_>,
        vpc_id: &str,
        references: &BTreeSet<String>,
    ) -> BTreeMap<String, Fact<Subnet>> {
        let key = (vpc_id.to_owned(), references.clone());
        let ask = self.connection.subnets(vpc_id, references);
        look_up(&self.subnets, key, self.askers.not_before(asker), ask, brief_if_any).await
    }

    /// As [`Connection::security_groups`].
    pub async fn security_groups(
        &self,
        asker: Asker<'_>,
        vpc_id: &str,
        references: &BTreeSet<String>,
    ) -> BTreeMap<String, Fact<String>> {
        let key = (vpc_id.to_owned(), references.clone());
        let ask = self.connection.security_groups(vpc_id, references);
        look_up(
            &self.security_groups,
            key,
            self.askers.not_before(asker),
            ask,
            brief_if_any,
        )
        .await
    }

    /// As [`Connection::instance_type`].
    pub async fn instance_type(&self, asker: Asker<'_>, name: &str) -> Fact<InstanceType> {
        let ask = self.connection.instance_type(name);
        look_up(
            &self.instance_types,
            name.to_owned(),
            self.askers.not_before(asker),
            ask,
            good_for,
        )
        .await
    }

    /// As [`Connection::instance_profile`].
    pub async fn instance_profile(&self, asker: Asker<'_>, name_or_arn: &str) -> Fact<InstanceProfile> {
        let ask = self.connection.instance_profile(name_or_arn);
        let good_for = |fact: &Fact<InstanceProfile>| match fact {
            // The peer's trap: a profile gets its role in a second call, so "no role" is soon out of date.
            Fact::Found(profile) if profile.role_arn.is_none() => BRIEF,
            fact => good_for(fact),
        };
        look_up(
            &self.instance_profiles,
            name_or_arn.to_owned(),
            self.askers.not_before(asker),
            ask,
            good_for,
        )
        .await
    }

    /// Forgets a group that is gone.
    pub fn forget(&self, group: &str) {
        self.askers.forget(group);
    }
}

fn answers<K, T>() -> Answers<K, T>
where
    K: Hash + Eq + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    Cache::builder().max_capacity(CAPACITY).time_to_live(FOUND).build()
}

/// The kept answer if it may serve, else a new one; askers at the same time share it.
async fn look_up<K, T>(
    answers: &Answers<K, T>,
    key: K,
    not_before: Instant,
    ask: impl Future<Output = T>,
    good_for: impl Fn(&T) -> Duration,
) -> T
where
    K: Hash + Eq + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    let asked = async {
        let asked = Instant::now();
        let value = ask.await;
        let good_for = good_for(&value);
        Answer { value, asked, good_for }
    };
    let outdated = |kept: &Answer<T>| kept.asked.elapsed() >= kept.good_for || kept.asked < not_before;
    answers
        .entry(key)
        .or_insert_with_if(asked, outdated)
        .await
        .into_value()
        .value
}

fn good_for<T>(fact: &Fact<T>) -> Duration {
    match fact {
        Fact::Found(_) => FOUND,
        Fact::NotFound => BRIEF,
        Fact::Unknown(_) => Duration::ZERO,
    }
}

/// An answer of several parts is as good as its worst.
fn brief_if_any<T>(facts: &BTreeMap<String, Fact<T>>) -> Duration {
    facts.values().map(good_for).min().unwrap_or(FOUND)
}

/// Since when each group has had its generation, as seen here.
#[derive(Default)]
struct Askers {
    since: Mutex<HashMap<String, (i64, Instant)>>,
}

impl Askers {
    /// Answers older than this may not serve this asker.
    fn not_before(&self, asker: Asker<'_>) -> Instant {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let seen = match since.get(asker.group) {
            Some((generation, seen)) if *generation == asker.generation => *seen,
            _ => {
                since.insert(asker.group.to_owned(), (asker.generation, now));
                now
            }
        };
        seen.checked_sub(BRIEF).unwrap_or(seen)
    }

    fn forget(&self, group: &str) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(group);
    }
}

#[cfg(test)]
mod tests;
