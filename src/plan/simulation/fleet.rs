//! What the groups of a replay share: slots and proof.
//!
//! Owns who waits for which of them. Must not decide when a group is approved.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::plan::approval::Soaking;

/// Slots and proof.
pub struct Fleet {
    cap: usize,
    /// Groups that roll out, with their schedule.
    rolling: BTreeMap<usize, Option<usize>>,
    /// Groups that wait for a slot, with their schedule.
    waiting: BTreeMap<usize, Option<usize>>,
    /// Since when an image has been proven, by schedule and image.
    proven: BTreeMap<(usize, String), Timestamp>,
    /// Groups that wait for proof of an image.
    soaking: BTreeMap<String, BTreeSet<usize>>,
}

impl Fleet {
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            rolling: BTreeMap::new(),
            waiting: BTreeMap::new(),
            proven: BTreeMap::new(),
            soaking: BTreeMap::new(),
        }
    }

    /// Takes a slot, or waits for one.
    pub fn take(&mut self, group: usize, schedule: Option<usize>, cap: Option<usize>) -> bool {
        let of_schedule = || self.rolling.values().filter(|other| **other == schedule).count();
        if self.rolling.len() < self.cap && cap.is_none_or(|cap| of_schedule() < cap) {
            self.waiting.remove(&group);
            self.rolling.insert(group, schedule);
            return true;
        }
        self.waiting.insert(group, schedule);
        false
    }

    /// Gives a slot back. Answers who may try now: the first that waits of each schedule.
    pub fn released(&mut self, group: usize) -> Vec<usize> {
        self.rolling.remove(&group);
        let mut first: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        for (waiting, schedule) in &self.waiting {
            first.entry(*schedule).or_insert(*waiting);
        }
        first.into_values().collect()
    }

    /// A group does not want a slot any more.
    pub fn gives_up(&mut self, group: usize) {
        self.waiting.remove(&group);
    }

    /// A group is done with an image. Proof goes on from the first that was. Answers who waits for it.
    pub fn proves(&mut self, now: Timestamp, _: usize, schedule: usize, image: &str) -> Vec<usize> {
        self.proven.entry((schedule, image.to_owned())).or_insert(now);
        let waiting = self.soaking.remove(image).unwrap_or_default();
        waiting.into_iter().collect()
    }

    /// The proof for an image; a group that waits for it is told.
    pub fn proof(&mut self, group: usize, schedule: usize, image: &str) -> Option<Soaking> {
        let since = self.proven.get(&(schedule, image.to_owned())).copied();
        if since.is_none() {
            self.soaking.entry(image.to_owned()).or_default().insert(group);
        }
        since.map(|since| Soaking { since, until: None })
    }
}
