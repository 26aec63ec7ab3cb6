//! The fleet's slots for rollouts (rule R8).
//!
//! Owns the one place where a slot is granted, so that racing reconciles never start one too many. What holds a slot is live
//! state: it is filled from the stores when the controller starts, and each look says whether its group still needs one.
//! Must not decide which group goes first.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::followers::GroupName;
use crate::plan::observed;

/// The slots.
#[derive(Debug)]
pub struct Slots {
    all: usize,
    held: Mutex<BTreeSet<GroupName>>,
}

impl Slots {
    /// This many slots, all free.
    #[must_use]
    pub fn new(all: usize) -> Self {
        Self {
            all,
            held: Mutex::default(),
        }
    }

    /// Starts over from the groups that are being rolled out. They may be more than there are slots.
    pub fn fill(&self, rolling: impl IntoIterator<Item = GroupName>) {
        *self.lock() = rolling.into_iter().collect();
    }

    /// The slots as a group sees them.
    #[must_use]
    pub fn seen_by(&self, group: &GroupName) -> observed::Slots {
        let held = self.lock();
        observed::Slots {
            held: held.contains(group),
            taken: held.len(),
            all: self.all,
        }
    }

    /// Takes a slot, if there is one. A group that has one keeps it.
    pub fn take(&self, group: &GroupName) -> bool {
        let mut held = self.lock();
        if held.len() < self.all || held.contains(group) {
            held.insert(group.clone());
            return true;
        }
        false
    }

    /// Notes that a group rolls out, whether there was a slot for it or not.
    pub fn rolls(&self, group: &GroupName) {
        self.lock().insert(group.clone());
    }

    /// Gives a group's slot back. Returns whether it had one.
    pub fn release(&self, group: &GroupName) -> bool {
        self.lock().remove(group)
    }

    /// How many are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.all.saturating_sub(self.lock().len())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<GroupName>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> GroupName {
        ("team".to_owned(), name.to_owned())
    }

    #[test]
    fn no_more_slots_are_granted_than_there_are() {
        let slots = Slots::new(2);
        assert!(slots.take(&group("a")) && slots.take(&group("b")) && slots.take(&group("a")));
        assert!(!slots.take(&group("c")));
        assert_eq!(
            slots.seen_by(&group("c")),
            observed::Slots {
                held: false,
                taken: 2,
                all: 2
            }
        );
        assert!(slots.release(&group("a")) && !slots.release(&group("a")));
        assert_eq!(slots.free(), 1);
        assert!(slots.take(&group("c")) && slots.seen_by(&group("c")).held);
    }

    #[test]
    fn rollouts_found_at_the_start_count_even_beyond_the_cap() {
        let slots = Slots::new(1);
        slots.fill([group("a"), group("b")]);
        assert!(!slots.take(&group("c")) && slots.take(&group("a")));
        slots.rolls(&group("d"));
        assert_eq!((slots.free(), slots.seen_by(&group("d")).taken), (0, 3));
        for name in ["a", "b", "d"] {
            slots.release(&group(name));
        }
        assert_eq!(slots.free(), 1);
    }

    #[test]
    fn many_at_once_never_take_one_too_many() {
        let slots = Slots::new(10);
        let granted = std::thread::scope(|scope| {
            let asks: Vec<_> = (0..8)
                .map(|worker| {
                    let slots = &slots;
                    scope.spawn(move || {
                        (0..100)
                            .filter(|number| slots.take(&group(&format!("{worker}-{number}"))))
                            .count()
                    })
                })
                .collect();
            asks.into_iter().map(|ask| ask.join().unwrap()).sum::<usize>()
        });
        assert_eq!(granted, 10);
    }
}
