//! Taking back what a rollout left on nodes, once it has ended (promise P5).
//!
//! Owns the rule that no note, cordon or taint of ours outlives its rollout. Must not touch what a person did: the record on
//! a node says what is ours.

use super::fleet::Member;
use super::steps::Step;
use crate::plan::step::NodeEdit;

/// The edits that take everything back; none if nothing is left.
#[must_use]
pub fn tidy(members: &[Member<'_>]) -> Vec<Step> {
    members
        .iter()
        .filter(|member| !member.leaving())
        .filter_map(|member| {
            let node = member.node?;
            (node.record.is_some() || node.avoided).then(|| Step::Edit {
                node: node.name.clone(),
                instance: member.id().to_owned(),
                edit: NodeEdit::Release { keep: None },
            })
        })
        .collect()
}
