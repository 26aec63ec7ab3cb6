//! Looking ahead: what settings would have made of releases, or will make of the next ones.
//!
//! Owns the replay: time moves from one event to the next, and the same pure code as in the operator decides when each group
//! is approved and when it may start. Nodes are only counted: a rollout takes as long as the group says, and stands still while
//! its windows are closed. Must not read files or print.

mod fleet;
mod group;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::settings::{InForce, Settings};
use fleet::Fleet;
use group::Member;

/// A group of the replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Labels of its namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations; the ones that tighten count.
    pub annotations: BTreeMap<String, String>,
    /// How long a rollout takes while windows are open.
    pub takes: SignedDuration,
}

/// A release: from then on the parameter names this image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// When.
    pub at: Timestamp,
    /// The image.
    pub image: String,
    /// When it was withdrawn: the parameter went back to the image before.
    pub withdrawn: Option<Timestamp>,
}

/// What became of one release in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The group, as an index into the groups.
    pub group: usize,
    /// The image.
    pub image: String,
    /// When its request opened, or it was first wanted where none is needed.
    pub opened: Timestamp,
    /// When it was approved; the same where no approval is needed.
    pub approved: Option<Timestamp>,
    /// By whom: a schedule's name, or `unlocked`.
    pub by: Option<String>,
    /// When its rollout started.
    pub started: Option<Timestamp>,
    /// When it was done.
    pub finished: Option<Timestamp>,
    /// What it waited for, in order, each said once.
    pub waited: Vec<String>,
    /// Why it ended without being rolled out, if it did.
    pub dropped: Option<String>,
}

/// Replays releases from the first until this time.
#[must_use]
pub fn replay(
    settings: &Settings,
    cap: usize,
    groups: &[Group],
    releases: &[Release],
    until: Timestamp,
) -> Vec<Outcome> {
    let mut events = BinaryHeap::new();
    for (index, release) in releases.iter().enumerate() {
        events.push(Reverse((release.at, Event::Published(index))));
        if let Some(at) = release.withdrawn {
            events.push(Reverse((at, Event::Withdrawn(index))));
        }
    }
    let mut replay = Replay {
        in_force: Arc::new(InForce::of(settings.clone())),
        members: groups.iter().map(|group| Member::new(group, settings)).collect(),
        fleet: Fleet::new(settings.max_concurrent_rollouts.unwrap_or(cap)),
        events,
        current: Vec::new(),
        releases,
        outcomes: Vec::new(),
    };
    while let Some(Reverse((now, event))) = replay.events.pop() {
        if now > until {
            break;
        }
        replay.take(now, &event);
    }
    replay.close()
}

/// Something that happens at a time. The order is that of one moment: news first, then who was waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Withdrawn(usize),
    Published(usize),
    /// A rollout is done.
    Done(usize),
    /// A group looks.
    Look(usize),
}

struct Replay<'a> {
    in_force: Arc<InForce>,
    members: Vec<Member<'a>>,
    fleet: Fleet,
    events: BinaryHeap<Reverse<(Timestamp, Event)>>,
    /// What the parameter named, oldest first; the last is what it names.
    current: Vec<usize>,
    releases: &'a [Release],
    outcomes: Vec<Outcome>,
}

impl Replay<'_> {
    fn take(&mut self, now: Timestamp, event: &Event) {
        match event {
            Event::Published(index) => {
                self.current.push(*index);
                self.look_at_all(now);
            }
            Event::Withdrawn(index) => {
                self.current.retain(|published| published != index);
                self.look_at_all(now);
            }
            Event::Done(group) => self.done(now, *group),
            Event::Look(group) => self.look(now, *group),
        }
    }

    fn look_at_all(&mut self, now: Timestamp) {
        for group in 0..self.members.len() {
            self.look(now, group);
        }
    }

    /// The release that is wanted now.
    fn wanted(&self) -> Option<&Release> {
        self.current.last().map(|index| &self.releases[*index])
    }

    fn look(&mut self, now: Timestamp, group: usize) {
        let Some(wanted) = self.wanted().cloned() else { return };
        let went_back = self
            .releases
            .iter()
            .any(|release| release.at > wanted.at && release.withdrawn.is_some_and(|at| at <= now));
        let known: BTreeSet<&str> = self
            .current
            .iter()
            .map(|index| self.releases[*index].image.as_str())
            .collect();
        let look = group::Look {
            now,
            wanted: &wanted,
            went_back,
            offered: &known,
            in_force: &self.in_force,
        };
        let next = self.members[group].look(&look, &mut self.fleet, group);
        self.outcomes
            .extend(next.dropped.map(|outcome| Outcome { group, ..outcome }));
        if let Some(at) = next.done {
            self.events.push(Reverse((at, Event::Done(group))));
        }
        if let Some(at) = next.look_at.filter(|at| *at > now) {
            self.events.push(Reverse((at, Event::Look(group))));
        }
    }

    fn done(&mut self, now: Timestamp, group: usize) {
        let (outcome, proves) = self.members[group].done(now);
        self.outcomes
            .extend(outcome.map(|outcome| Outcome { group, ..outcome }));
        let mut next = self.fleet.released(group);
        if let Some((schedule, image)) = proves {
            next.extend(self.fleet.proves(now, group, schedule, &image));
        }
        self.look(now, group);
        for waiting in next {
            self.look(now, waiting);
        }
    }

    /// What is still open at the end is told as it stands.
    fn close(mut self) -> Vec<Outcome> {
        for (group, member) in self.members.into_iter().enumerate() {
            self.outcomes
                .extend(member.open().map(|outcome| Outcome { group, ..outcome }));
        }
        self.outcomes.sort_by(|left, right| {
            (left.opened, left.group, &left.image).cmp(&(right.opened, right.group, &right.image))
        });
        self.outcomes
    }
}
