//! The runbook has something on each condition and each reason.

use std::fs;

use sluice::api::{ConditionType, Reason};
use strum::IntoEnumIterator;

use crate::tree::root;

/// A word that alerts match on and that the runbook does not explain helps nobody at night.
#[test]
fn each_condition_and_each_reason_is_explained() {
    let runbook = fs::read_to_string(root().join("docs/runbook.md")).unwrap();
    let rows: Vec<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split('|').next())
        .collect();
    let explained = |reason: &Reason| rows.iter().any(|row| row.contains(&format!("`{reason}`")));
    let missing: Vec<Reason> = Reason::iter().filter(|reason| !explained(reason)).collect();
    assert!(
        missing.is_empty(),
        "docs/runbook.md has no row that begins with: {missing:?}"
    );
    let has = |kind: &ConditionType| {
        let heading = format!("## {kind}");
        runbook.lines().any(|line| line == heading) || runbook.contains(&format!("`{kind}`"))
    };
    let missing: Vec<ConditionType> = ConditionType::iter().filter(|kind| !has(kind)).collect();
    assert!(missing.is_empty(), "docs/runbook.md says nothing of: {missing:?}");
}
