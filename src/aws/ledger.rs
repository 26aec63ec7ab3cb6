//! The ledger of our own changes.
//!
//! Owns what the product wrote to AWS and in which order to its reads, so that a read that began before a
//! write ended is never taken for the state after it. Must not make calls. AWS's reads lag behind writes:
//! what we made and cannot see yet is kept here for a minute.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::plan::facts::{FailureClass, LaunchTemplate};

/// How long a read may fail to show what we made.
pub(super) const LAG: Duration = Duration::from_mins(1);

/// What a write touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Touched {
    /// An Auto Scaling group by name.
    Group(String),
    /// A launch template by name or by id; both spellings are marked where both are known.
    Template(String),
}

/// A point in the order of reads and writes, with the time at which it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Its place in the order; grows by one with each moment taken.
    pub sequence: u64,
    /// When.
    pub at: Instant,
}

#[derive(Default)]
struct Mark {
    in_flight: u32,
    /// Place in the order at which the last write ended.
    ended: u64,
}

#[derive(Default)]
struct State {
    sequence: u64,
    /// Others wrote up to this place in the order.
    others: u64,
    marks: HashMap<Touched, Mark>,
    /// What we made, when, and by which write: the spellings of one thing share the write.
    made: HashMap<Touched, (Instant, u64)>,
    /// The highest version that we made of a template, by template id.
    versions: HashMap<String, (i64, Instant)>,
    /// The version that we made a template's default, by template id.
    defaults: HashMap<String, (i64, Instant)>,
}

impl State {
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// The ledger. One per connection.
#[derive(Default)]
pub(super) struct WriteLedger {
    state: Mutex<State>,
}

impl WriteLedger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next moment in the order; a read does so before it starts.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            sequence: self.state().next(),
            at: Instant::now(),
        }
    }

    /// Begins a write. What it touches is dirty from now on, until a read that starts after the write ended.
    pub(super) fn begin(&self, touches: Vec<Touched>) -> Write<'_> {
        self.begin_as(touches, Kind::Change)
    }

    /// Begins a write that makes what it touches.
    pub(super) fn begin_create(&self, touches: Vec<Touched>) -> Write<'_> {
        self.begin_as(touches, Kind::Create)
    }

    /// Begins a write that removes what it touches.
    pub(super) fn begin_delete(&self, touches: Vec<Touched>) -> Write<'_> {
        self.begin_as(touches, Kind::Delete)
    }

    fn begin_as(&self, touches: Vec<Touched>, kind: Kind) -> Write<'_> {
        let mut state = self.state();
        for touched in &touches {
            state.marks.entry(touched.clone()).or_default().in_flight += 1;
        }
        Write {
            ledger: self,
            touches,
            kind,
            outcome: Outcome::Unsure,
        }
    }

    /// Another process wrote until now, nobody knows what: no read that started before shows the state after it. Answers
    /// the place in the order from which reads count.
    pub(super) fn others_wrote(&self) -> u64 {
        let mut state = self.state();
        state.others = state.next();
        state.others
    }

    /// Whether a read that started at `read` may miss a write of ours, or of one who wrote before us.
    pub(super) fn dirty(&self, touched: &Touched, read: u64) -> bool {
        let state = self.state();
        let ours = state.marks.get(touched);
        read < state.others || ours.is_some_and(|mark| mark.in_flight > 0 || mark.ended > read)
    }

    /// Whether we made it so recently that a read may not show it yet.
    pub(super) fn made_recently(&self, touched: &Touched) -> bool {
        self.state().made.get(touched).is_some_and(|(at, _)| at.elapsed() < LAG)
    }

    /// Notes that a read shows this template under both its spellings. A create whose answer was lost left only
    /// the name here, and the delete will only know the id.
    pub(super) fn shown(&self, template: &LaunchTemplate) {
        let mut state = self.state();
        if let Some(made) = state.made.get(&Touched::Template(template.name.clone())).copied() {
            state.made.insert(Touched::Template(template.id.clone()), made);
        }
    }

    /// Notes that we made this version of a template.
    pub(super) fn version_made(&self, template_id: &str, number: i64) {
        let mut state = self.state();
        let entry = state
            .versions
            .entry(template_id.to_owned())
            .or_insert((number, Instant::now()));
        if number >= entry.0 {
            *entry = (number, Instant::now());
        }
    }

    /// Notes that versions of a template were deleted, so that nobody waits for them to show.
    pub(super) fn versions_deleted(&self, template_id: &str, numbers: &[i64]) {
        let mut state = self.state();
        if state
            .versions
            .get(template_id)
            .is_some_and(|(number, _)| numbers.contains(number))
        {
            state.versions.remove(template_id);
        }
    }

    /// Notes that we made this version a template's default.
    pub(super) fn default_set(&self, template_id: &str, number: i64) {
        self.state()
            .defaults
            .insert(template_id.to_owned(), (number, Instant::now()));
    }

    /// Why what was read of a template cannot be all yet, if a write of the last minute is missing in it.
    pub(super) fn missing_in(&self, template: &LaunchTemplate) -> Option<String> {
        let state = self.state();
        let recent = |notes: &HashMap<String, (i64, Instant)>| {
            notes
                .get(&template.id)
                .filter(|(_, at)| at.elapsed() < LAG)
                .map(|(number, _)| *number)
        };
        if let Some(number) = recent(&state.versions)
            && template.complete
            && !template.versions.contains_key(&number)
        {
            return Some(format!("version {number}, made a moment ago, does not show yet"));
        }
        if let Some(number) = recent(&state.defaults)
            && template.default_version != number
        {
            return Some(format!(
                "version {number}, made the default a moment ago, does not show as such yet"
            ));
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Change,
    Create,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    Unsure,
}

/// A write that is under way. Dropping it ends it: a caller that gave up in the middle leaves the item dirty,
/// since nobody knows whether AWS carried the write out.
pub(super) struct Write<'a> {
    ledger: &'a WriteLedger,
    touches: Vec<Touched>,
    kind: Kind,
    outcome: Outcome,
}

impl Write<'_> {
    /// Ends the write, with the class of its failure if it failed.
    pub(super) fn end(mut self, failure: Option<FailureClass>) {
        self.outcome = match failure {
            None => Outcome::Done,
            // No answer, or dropped in the middle: it may have happened. Already there: it has, and our reads did not show it.
            Some(FailureClass::Unavailable | FailureClass::AlreadyExists | FailureClass::NotLeading) => Outcome::Unsure,
            Some(_) => Outcome::Refused,
        };
    }

    /// Another spelling of what the write touched, learned from its answer.
    pub(super) fn also(&mut self, touched: Touched) {
        self.ledger.state().marks.entry(touched.clone()).or_default().in_flight += 1;
        self.touches.push(touched);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        let mut state = self.ledger.state();
        let ended = state.next();
        for touched in std::mem::take(&mut self.touches) {
            if let Some(mark) = state.marks.get_mut(&touched) {
                mark.in_flight = mark.in_flight.saturating_sub(1);
                mark.ended = ended;
            }
            match (self.kind, self.outcome) {
                (Kind::Create, Outcome::Done | Outcome::Unsure) => {
                    state.made.insert(touched, (Instant::now(), ended));
                }
                (Kind::Delete, Outcome::Done) => {
                    if let Some((_, write)) = state.made.remove(&touched) {
                        state.made.retain(|_, (_, other)| *other != write);
                    }
                }
                _ => {}
            }
        }
        // A read can lag no longer; what is older serves nobody.
        state.made.retain(|_, (at, _)| at.elapsed() < LAG);
        state.versions.retain(|_, (_, at)| at.elapsed() < LAG);
        state.defaults.retain(|_, (_, at)| at.elapsed() < LAG);
    }
}

#[cfg(test)]
mod tests;
