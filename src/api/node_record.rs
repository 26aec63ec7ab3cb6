//! What a rollout notes on a Node, as JSON in the annotation [`crate::api::annotation::ROLLOUT`].
//!
//! Owns the wire shape. The note outlives a restart of the operator, and says what has to be undone when a node is let go.
//! It must not decide what is noted when.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a rollout noted on a Node.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeRecord {
    /// What the rollout works for: the fingerprint of its target, or why else the node has to go.
    pub target: String,
    /// How far the node is.
    pub state: NodeState,
    /// Since when.
    pub since: Timestamp,
    /// Whether the operator cordoned the node; absent when it was cordoned before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cordoned: bool,
    /// Whether the operator took it out of load balancers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub excluded: bool,
    /// Whether the operator forbade cluster-autoscaler to remove it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub protected: bool,
}

/// How far a node is in a rollout.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// In hand: cordoned, its pods are being evicted; its instance is terminated next.
    Draining,
    /// Its drain took too long and was given up; other nodes come first.
    GaveUp,
    /// Of the target, and was Ready.
    Joined,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl NodeRecord {
    /// A note in which nothing has to be undone yet.
    #[must_use]
    pub fn new(target: &str, state: NodeState, since: Timestamp) -> Self {
        Self {
            target: target.to_owned(),
            state,
            since,
            cordoned: false,
            excluded: false,
            protected: false,
        }
    }

    /// Reads a note; `None` for text that is none of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back() {
        let mut record = NodeRecord::new("0a1b", NodeState::Draining, "2026-11-30T10:00:00Z".parse().unwrap());
        record.cordoned = true;
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(
            text,
            r#"{"target":"0a1b","state":"Draining","since":"2026-11-30T10:00:00Z","cordoned":true}"#
        );
        assert_eq!(NodeRecord::parse(&text), Some(record));
        assert_eq!(NodeRecord::parse("true"), None);
    }
}
