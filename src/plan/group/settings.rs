//! The fleet's settings as one group sees them: its schedule, and what is wrong.
//!
//! Owns the conditions about settings and clocks. Must not decide on upgrades; the gate does.

use crate::api::instance_group::LockSource;
use crate::api::{ConditionType, Reason};
use crate::plan::observed::Observed;
use crate::plan::settings::{Schedule, Trouble};

use super::draft::Draft;
use super::lock::Lock;

/// The schedule for the group: the last good settings bind, also while the present ones are in trouble.
pub fn schedule(observed: &Observed) -> Option<&Schedule> {
    observed.settings.binding()?.schedule(&observed.labels())
}

/// Shows what is wrong with the settings and the clock, and looks again when a lock or the freeze ends.
pub fn show(draft: &mut Draft<'_>, lock: &Lock) {
    let observed = draft.observed;
    let in_force = &observed.settings;
    let (reason, matters) = match &in_force.trouble {
        None => (Reason::SettingsInvalid, false),
        Some(Trouble::Broken(_)) => (Reason::SettingsInvalid, true),
        // A fleet that never had settings misses nothing.
        Some(Trouble::Missing) => (
            Reason::SettingsMissing,
            in_force.binding().is_some() || lock.source == Some(LockSource::Settings),
        ),
    };
    if let Some(complaint) = in_force.complaint().filter(|_| matters) {
        draft.condition(ConditionType::SettingsInvalid, true, reason, &complaint);
    }
    if let Some(skew) = observed.clock_skew {
        let direction = if skew.is_negative() { "ahead of" } else { "behind" };
        let message = format!(
            "the operator's clock is {:#} {direction} AWS's; ages count by AWS's clock until the machine's is right",
            skew.abs()
        );
        draft.condition(ConditionType::ClockSkew, true, Reason::ClockSkew, &message);
    }
    if let Some(until) = lock.until {
        draft.look_at(until);
    }
    let freeze = in_force.binding().map(|settings| &settings.freeze);
    if let Some(until) = freeze
        .filter(|freeze| freeze.holds(observed.now))
        .and_then(|freeze| freeze.until)
    {
        draft.look_at(until);
    }
}
