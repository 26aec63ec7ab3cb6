//! Which images are being proven by whom, and which requests wait for that.
//!
//! Owns the spans that last; one that ends is handed over to the lasting record. Must not judge what suffices;
//! `plan::approval` does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::InstanceGroupUpgradeRequest;
use crate::plan::approval::{Answer, Soaking as Span};

/// Namespace and name of an object.
pub type Name = (String, String);

/// A group that proves an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The group's schedule.
    pub schedule: String,
    /// The image.
    pub image: String,
    /// Since when.
    pub since: Timestamp,
}

/// What a look at a group changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// A span that ended.
    pub ended: Option<Proof>,
    /// Requests that wait for a proof that began or ended.
    pub waiting: Vec<Name>,
}

/// The spans that last, and who waits for them.
#[derive(Debug, Default)]
pub struct Soaking {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    proofs: BTreeMap<Name, Proof>,
    /// Requests by the image that they are about.
    waiting: BTreeMap<String, BTreeSet<Name>>,
}

impl Soaking {
    /// Takes over what a group proves now.
    pub fn saw(&self, group: &Name, proves: Option<&Proof>) -> Changed {
        let mut inner = self.lock();
        let before = match proves {
            Some(proof) => inner.proofs.insert(group.clone(), proof.clone()),
            None => inner.proofs.remove(group),
        };
        if before.as_ref() == proves {
            return Changed::default();
        }
        let images = before.iter().chain(proves).map(|proof| proof.image.as_str());
        let waiting: BTreeSet<Name> = images
            .filter_map(|image| inner.waiting.get(image))
            .flatten()
            .cloned()
            .collect();
        Changed {
            ended: before,
            waiting: waiting.into_iter().collect(),
        }
    }

    /// The span of an image that has lasted longest among the groups of a schedule.
    #[must_use]
    pub fn longest(&self, schedule: &str, image: &str) -> Option<Span> {
        let inner = self.lock();
        let of = inner
            .proofs
            .values()
            .filter(|proof| proof.schedule == schedule && proof.image == image);
        of.map(|proof| proof.since)
            .min()
            .map(|since| Span { since, until: None })
    }

    /// Notes whether a request waits for proof.
    pub fn follow(&self, request: &InstanceGroupUpgradeRequest, answer: &Answer) {
        // A date that rests on a proof may move as well, and which it rests on is not told apart.
        if matches!(answer, Answer::Manual(..)) {
            return self.forget(request);
        }
        let Some(image) = request.spec.target.image_id.clone() else {
            return;
        };
        self.lock().waiting.entry(image).or_default().insert(name(request));
    }

    /// A request does not wait any more.
    pub fn forget(&self, request: &InstanceGroupUpgradeRequest) {
        let Some(image) = &request.spec.target.image_id else {
            return;
        };
        let mut inner = self.lock();
        if let Some(waiting) = inner.waiting.get_mut(image) {
            waiting.remove(&name(request));
            if waiting.is_empty() {
                inner.waiting.remove(image);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(request: &InstanceGroupUpgradeRequest) -> Name {
    (request.namespace().unwrap_or_default(), request.name_any())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::approval::Answer;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn group(name: &str) -> Name {
        ("team".to_owned(), name.to_owned())
    }

    fn proof(image: &str, since: i64) -> Proof {
        Proof {
            schedule: "staging".to_owned(),
            image: image.to_owned(),
            since: at(since),
        }
    }

    fn request(image: &str) -> InstanceGroupUpgradeRequest {
        let request = json!({
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1", "kind": "InstanceGroupUpgradeRequest",
            "metadata": { "namespace": "prod", "name": "one" },
            "spec": {
                "instanceGroupRef": { "name": "workers", "uid": "uid-1" },
                "reason": "ImageDrift",
                "target": { "fingerprint": "f", "imageId": image },
            },
        });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn the_longest_span_counts_and_the_waiting_hear_of_it() {
        let soaking = Soaking::default();
        soaking.follow(&request("ami-1"), &Answer::At(at(100)));
        assert!(soaking.longest("staging", "ami-1").is_none());
        let changed = soaking.saw(&group("a"), Some(&proof("ami-1", 20)));
        assert_eq!(changed.waiting, [("prod".to_owned(), "one".to_owned())]);
        soaking.saw(&group("b"), Some(&proof("ami-1", 10)));
        assert_eq!(soaking.longest("staging", "ami-1").unwrap().since, at(10));
        assert!(soaking.longest("dev", "ami-1").is_none());
        // Nothing new is no news.
        assert_eq!(soaking.saw(&group("b"), Some(&proof("ami-1", 10))), Changed::default());
        // A break: the span ended, the other group's lasts.
        let changed = soaking.saw(&group("b"), Some(&proof("ami-1", 50)));
        assert_eq!((changed.ended, changed.waiting.len()), (Some(proof("ami-1", 10)), 1));
        assert_eq!(soaking.longest("staging", "ami-1").unwrap().since, at(20));
    }

    #[test]
    fn who_does_not_wait_any_more_is_not_woken() {
        let soaking = Soaking::default();
        soaking.follow(&request("ami-1"), &Answer::At(at(100)));
        soaking.forget(&request("ami-1"));
        assert!(soaking.saw(&group("a"), Some(&proof("ami-1", 20))).waiting.is_empty());
    }
}
