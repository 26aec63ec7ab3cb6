//! The kind `InstanceGroupUpgradeRequest`: one target, waiting for or past its approval.
//!
//! Owns its wire types and the rules that the API server enforces on decisions. It must not know
//! who may decide; admission policies say that.

mod spec;
mod status;
mod target;

pub use spec::{InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestSpec};
pub use status::{
    Decision, DecisionAction, InstanceGroupUpgradeRequestStatus, NodeCounts, Phase, UpgradeFailure, WaitsFor,
};
pub use target::{
    InstanceGroupRef, MAX_CHANGE_TEXT, MAX_CHANGES, SsmParameter, TargetChange, UpgradeReason, UpgradeSource,
    UpgradeTarget,
};

impl InstanceGroupUpgradeRequest {
    /// The phase; `Pending` before the operator has written one.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.status
            .as_ref()
            .and_then(|status| status.phase)
            .unwrap_or(Phase::Pending)
    }

    /// Whether nothing follows the phase.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.phase().is_terminal()
    }
}

#[cfg(test)]
mod tests;
