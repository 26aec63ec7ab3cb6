//! Proof that an image works: a group that has been fully on it and Ready for a while.
//!
//! Owns what counts as proof, read from a group's status. Must not remember; the auto-approver does.

use jiff::Timestamp;

use crate::api::instance_group::InstanceGroup;
use crate::api::{ConditionType, find_condition};

/// The image that all nodes of a group run and the time since when they have been Ready on it without a break. A group
/// without nodes proves nothing, nor does one in the middle of a rollout.
#[must_use]
pub fn proves(group: &InstanceGroup) -> Option<(String, Timestamp)> {
    let status = group.status.as_ref()?;
    let image = status.image.as_ref()?;
    let alone = image.nodes_on_current.unwrap_or_default() > 0 && image.nodes_on_other.unwrap_or_default() == 0;
    if !alone || status.rollout.is_some() || group.is_being_deleted() {
        return None;
    }
    let ready = find_condition(&status.conditions, ConditionType::NodesReady)?;
    let since = image.current_since.as_ref()?.0.max(ready.last_transition_time.0);
    let current = image.current.clone()?;
    (ready.status == "True").then_some((current, since))
}
