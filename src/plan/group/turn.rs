//! Whether a rollout that is allowed may start now.
//!
//! Owns freezes, windows and the fleet's slots at the moment of the claim. Must not decide whether it is allowed at all; the
//! gate does.

use jiff::Timestamp;

use crate::api::instance_group::CurrentState;
use crate::api::{ConditionType, Reason};
use crate::plan::rollout::Hold;

use super::draft::Draft;
use super::{Standing, records};

/// Whether a rollout may start now; if not, why, and until when that is so, if known (rule R8, gate cases D10 to D12).
pub fn may_start(draft: &Draft<'_>, urgent: bool) -> Result<(), (Reason, String, Option<Timestamp>)> {
    match &draft.observed.hold {
        Some(Hold::Freeze { reason, until }) => {
            let why = if reason.is_empty() {
                String::new()
            } else {
                format!(": {reason}")
            };
            return Err((Reason::Frozen, format!("upgrades are frozen{why}"), *until));
        }
        Some(Hold::Window { opens }) if !urgent => {
            let when = opens.map_or_else(
                || "none opens".to_owned(),
                |opens| format!("waits for the one at {opens}"),
            );
            return Err((Reason::WindowClosed, format!("no window is open; {when}"), *opens));
        }
        Some(Hold::Window { .. }) | None => {}
    }
    let slots = draft.observed.slots;
    if !slots.held && slots.taken >= slots.all {
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
