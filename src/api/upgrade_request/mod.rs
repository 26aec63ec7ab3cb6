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

use super::{InstanceGroup, label};

impl InstanceGroupUpgradeRequest {
    /// The phase; `Pending` before the operator has written one.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.status
            .as_ref()
            .and_then(|status| status.phase)
            .unwrap_or(Phase::Pending)
    }

    /// Whether it names this very group, and not an earlier one of that name.
    #[must_use]
    pub fn is_about(&self, group: &InstanceGroup) -> bool {
        let of = &self.spec.instance_group_ref;
        self.metadata.namespace == group.metadata.namespace
            && Some(&of.name) == group.metadata.name.as_ref()
            && Some(&of.uid) == group.metadata.uid.as_ref()
    }

    /// Whether its target was denied, cancelled or failed before, and a person asked for it again.
    #[must_use]
    pub fn asks_again(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(label::ASKED_AGAIN))
    }

    /// Whether nothing follows the phase.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.phase().is_terminal()
    }
}

#[cfg(test)]
mod tests;
