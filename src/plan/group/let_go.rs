//! Nodes in hand of a group that is not understood any more.
//!
//! Owns that none stays cordoned by us meanwhile (promise P5): nobody works on its drain, nor gives it up. Must not touch AWS
//! (promise P15).

use crate::api::NodeState;
use crate::plan::step::{Action, NodeEdit};

use super::draft::Draft;
use super::teardown::is_ours;

/// Lets go of the nodes that are being drained. What else is noted on nodes stays for the time when the group is understood
/// again.
pub fn nodes_in_hand(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let Some(scaling_group) = observed.scaling_group.found() else {
        return;
    };
    if !is_ours(&observed.group, scaling_group) {
        return;
    }
    let here = scaling_group
        .instances
        .iter()
        .filter(|instance| !instance.terminating());
    let nodes = here.filter_map(|instance| observed.nodes.get(&instance.id));
    let mut names = Vec::new();
    for node in nodes {
        let drains = node
            .record
            .as_ref()
            .is_some_and(|record| record.state == NodeState::Draining);
        if drains {
            names.push(node.name.as_str());
            draft.act(Action::EditNode {
                node: node.name.clone(),
                instance_id: node.instance_id.clone(),
                edit: NodeEdit::Release { keep: None },
            });
        }
    }
    if !names.is_empty() {
        let message = format!(
            "the drain of {} is given up: the group cannot be worked on as it stands",
            names.join(", ")
        );
        draft.notice(true, "DrainGivenUp", message);
        draft.again();
    }
}
