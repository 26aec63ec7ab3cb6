//! The slots for rollouts: of the fleet (rule R8), and of schedules that have a cap of their own.
//!
//! Owns the one place where a slot is granted, so that racing reconciles never start one too many. What holds a slot is live
//! state: it is filled from the stores when the controller starts, and each look says whether its group still needs one.
//! Must not decide which group goes first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::followers::GroupName;
use crate::plan::observed;
use crate::plan::settings::Schedule;

/// The schedule of a group, as far as slots go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfSchedule<'a> {
    /// Its name; blank = none.
    pub name: &'a str,
    /// How many of its groups may be rolled out at the same time.
    pub cap: Option<usize>,
}

impl<'a> From<&'a Schedule> for OfSchedule<'a> {
    fn from(schedule: &'a Schedule) -> Self {
        Self {
            name: &schedule.name,
            cap: schedule.max_concurrent_rollouts,
        }
    }
}

impl<'a> From<Option<&'a Schedule>> for OfSchedule<'a> {
    fn from(schedule: Option<&'a Schedule>) -> Self {
        schedule.map(Self::from).unwrap_or_default()
    }
}

/// The slots.
#[derive(Debug)]
pub struct Slots {
    by_default: usize,
    all: AtomicUsize,
    /// Who holds one, with the name of its schedule.
    held: Mutex<BTreeMap<GroupName, String>>,
}

impl Slots {
    /// This many slots unless the settings say otherwise, all free.
    #[must_use]
    pub fn new(by_default: usize) -> Self {
        Self {
            by_default,
            all: AtomicUsize::new(by_default),
            held: Mutex::default(),
        }
    }

    /// Takes over how many there are; `None` = as many as at the start. More than that may be held: those go on.
    pub fn allow(&self, all: Option<usize>) {
        self.all.store(all.unwrap_or(self.by_default), Ordering::SeqCst);
    }

    /// Starts over from the groups that are being rolled out, with the names of their schedules. They may be more than there
    /// are slots.
    pub fn fill(&self, rolling: impl IntoIterator<Item = (GroupName, String)>) {
        *self.lock() = rolling.into_iter().collect();
    }

    /// The slots as a group sees them.
    #[must_use]
    pub fn seen_by(&self, group: &GroupName, schedule: OfSchedule<'_>) -> observed::Slots {
        let held = self.lock();
        observed::Slots {
            held: held.contains_key(group),
            taken: held.len(),
            all: self.all.load(Ordering::SeqCst),
            of_schedule: schedule.cap.map(|cap| (of(&held, schedule.name), cap)),
        }
    }

    /// Whether a group has a slot.
    #[must_use]
    pub fn holds(&self, group: &GroupName) -> bool {
        self.lock().contains_key(group)
    }

    /// Takes a slot, if there is one in the fleet and in the group's schedule. A group that has one keeps it.
    pub fn take(&self, group: &GroupName, schedule: OfSchedule<'_>) -> bool {
        let mut held = self.lock();
        let room = held.len() < self.all.load(Ordering::SeqCst)
            && schedule.cap.is_none_or(|cap| of(&held, schedule.name) < cap);
        if room || held.contains_key(group) {
            held.insert(group.clone(), schedule.name.to_owned());
            return true;
        }
        false
    }

    /// Notes that a group rolls out, whether there was a slot for it or not.
    pub fn rolls(&self, group: &GroupName, schedule: OfSchedule<'_>) {
        self.lock().insert(group.clone(), schedule.name.to_owned());
    }

    /// Gives a group's slot back. Returns whether it had one.
    pub fn release(&self, group: &GroupName) -> bool {
        self.lock().remove(group).is_some()
    }

    /// How many are free for groups of a schedule.
    #[must_use]
    pub fn free(&self, schedule: OfSchedule<'_>) -> usize {
        let held = self.lock();
        let of_fleet = self.all.load(Ordering::SeqCst).saturating_sub(held.len());
        let of_schedule = schedule.cap.map(|cap| cap.saturating_sub(of(&held, schedule.name)));
        of_schedule.map_or(of_fleet, |free| free.min(of_fleet))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupName, String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many slots the groups of a schedule hold.
fn of(held: &BTreeMap<GroupName, String>, schedule: &str) -> usize {
    held.values().filter(|name| *name == schedule).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> GroupName {
        ("team".to_owned(), name.to_owned())
    }

    fn any() -> OfSchedule<'static> {
        OfSchedule::default()
    }

    fn prod(cap: usize) -> OfSchedule<'static> {
        OfSchedule {
            name: "prod",
            cap: Some(cap),
        }
    }

    #[test]
    fn no_more_slots_are_granted_than_there_are() {
        let slots = Slots::new(2);
        assert!(slots.take(&group("a"), any()) && slots.take(&group("b"), any()) && slots.take(&group("a"), any()));
        assert!(!slots.take(&group("c"), any()));
        assert_eq!(
            slots.seen_by(&group("c"), any()),
            observed::Slots {
                held: false,
                taken: 2,
                all: 2,
                of_schedule: None,
            }
        );
        assert!(slots.release(&group("a")) && !slots.release(&group("a")));
        assert_eq!(slots.free(any()), 1);
        assert!(slots.take(&group("c"), any()) && slots.seen_by(&group("c"), any()).held);
    }

    #[test]
    fn a_schedule_takes_no_more_than_its_own() {
        let slots = Slots::new(4);
        assert!(slots.take(&group("a"), prod(2)) && slots.take(&group("b"), prod(2)));
        assert!(!slots.take(&group("c"), prod(2)));
        assert_eq!(slots.seen_by(&group("c"), prod(2)).of_schedule, Some((2, 2)));
        assert_eq!((slots.free(prod(2)), slots.free(any())), (0, 2));
        assert!(slots.take(&group("d"), any()) && slots.take(&group("e"), any()));
        // Neither is a free slot of the schedule one of the fleet.
        assert!(slots.release(&group("a")) && slots.take(&group("f"), any()) && !slots.take(&group("c"), prod(2)));
        assert_eq!(slots.free(prod(2)), 0);
    }

    #[test]
    fn the_settings_say_how_many_there_are() {
        let slots = Slots::new(3);
        slots.allow(Some(1));
        assert!(slots.take(&group("a"), any()) && !slots.take(&group("b"), any()));
        slots.allow(Some(2));
        assert!(slots.take(&group("b"), any()));
        slots.allow(Some(1));
        assert_eq!((slots.free(any()), slots.seen_by(&group("b"), any()).held), (0, true));
        slots.allow(None);
        assert_eq!(slots.free(any()), 1);
    }

    #[test]
    fn rollouts_found_at_the_start_count_even_beyond_the_cap() {
        let slots = Slots::new(1);
        slots.fill([(group("a"), "prod".to_owned()), (group("b"), String::new())]);
        assert!(!slots.take(&group("c"), any()) && slots.take(&group("a"), prod(1)));
        slots.rolls(&group("d"), any());
        assert_eq!((slots.free(any()), slots.seen_by(&group("d"), any()).taken), (0, 3));
        for name in ["a", "b", "d"] {
            slots.release(&group(name));
        }
        assert_eq!(slots.free(any()), 1);
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
                            .filter(|number| slots.take(&group(&format!("{worker}-{number}")), prod(10)))
                            .count()
                    })
                })
                .collect();
            asks.into_iter().map(|ask| ask.join().unwrap()).sum::<usize>()
        });
        assert_eq!(granted, 10);
    }
}
