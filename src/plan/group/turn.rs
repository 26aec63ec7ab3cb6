//! Whether a rollout that is allowed may start or take a further node now.
//!
//! Owns freezes, windows and the fleet's slots at that moment. Must not decide whether it is allowed at all; the gate does.

use jiff::Timestamp;

use crate::api::instance_group::CurrentState;
use crate::api::{ConditionType, Reason};
use crate::plan::rollout::Hold;
use crate::plan::windows;

use super::draft::Draft;
use super::{Standing, records};

/// What holds the group back now, be it at the start or between nodes. Work that has started may outlast a window whose
/// schedule says so (`overrun`), and urgent work passes windows; nothing passes a freeze.
pub fn hold(draft: &mut Draft<'_>, standing: &Standing<'_>, urgent: bool, started: bool) -> Option<Hold> {
    let now = draft.now();
    let freeze = draft.observed.settings.binding().map(|settings| &settings.freeze);
    if let Some(freeze) = freeze.filter(|freeze| freeze.holds(now)) {
        return Some(Hold::Freeze {
            reason: freeze.reason.clone(),
            until: freeze.until,
        });
    }
    let schedule = standing.schedule?;
    match windows::standing(&schedule.windows, now) {
        windows::Standing::Open { until } => {
            if let Some(until) = until {
                draft.look_at(until);
            }
            None
        }
        windows::Standing::Closed { .. } if urgent || (started && schedule.overrun) => None,
        windows::Standing::Closed { why, opens, shown } => {
            if let Some(opens) = opens {
                draft.look_at(opens);
            }
            Some(Hold::Window { why, opens, shown })
        }
    }
}

/// Whether a rollout may start now; if not, why, and until when that is so, if known (rule R8, gate cases D10 to D12).
pub fn may_start(
    draft: &mut Draft<'_>,
    standing: &Standing<'_>,
    urgent: bool,
) -> Result<(), (Reason, String, Option<Timestamp>)> {
    if let Some(hold) = hold(draft, standing, urgent, false) {
        return Err((hold.reason(), hold.to_string(), hold.until()));
    }
    let slots = draft.observed.slots;
    if slots.held {
        return Ok(());
    }
    if let Some((taken, all)) = slots.of_schedule
        && taken >= all
    {
        let name = standing
            .schedule
            .map(|schedule| schedule.name.as_str())
            .unwrap_or_default();
        let message = format!("waits for a slot: {taken} of {all} rollouts of schedule {name} run");
        return Err((Reason::WaitsForSlot, message, None));
    }
    if slots.taken >= slots.all {
        let message = format!(
            "waits for a slot: {} of {} rollouts run in the fleet",
            slots.taken, slots.all
        );
        return Err((Reason::WaitsForSlot, message, None));
    }
    Ok(())
}

/// Shows that a rollout waits for its turn.
pub fn waits_for_turn(
    draft: &mut Draft<'_>,
    standing: &Standing<'_>,
    reason: Reason,
    message: &str,
    until: Option<Timestamp>,
) {
    records::rest(draft, standing);
    draft.condition(ConditionType::UpgradePending, true, reason, message);
    draft.wait(reason, message);
    if let Some(until) = until {
        draft.look_at(until);
    }
    if records::all_ready(draft, standing.scaling_group) {
        draft.headline(CurrentState::Locked, reason, message);
    }
}
