//! The AWS policy that we hand out allows what the code calls.

use std::collections::BTreeSet;
use std::fs;

use crate::tree::{files, root};

/// How the names of AWS actions begin.
const VERBS: &[&str] = &[
    "Create",
    "Delete",
    "Describe",
    "Disable",
    "Enable",
    "Get",
    "Modify",
    "Put",
    "Resume",
    "Suspend",
    "Terminate",
    "Update",
];

/// Words in the sources that look like it and need no right: an error code, a test's call, and calls that no plan asks for
/// yet.
const NOT_CALLED: &[&str] = &[
    "DeleteConflict",
    "PutParameter",
    "DisableMetricsCollection",
    "EnableMetricsCollection",
];

/// The simulated AWS evaluates no policy, so that nothing else would notice.
#[test]
fn each_aws_action_is_allowed_and_explained() {
    let mut called = BTreeSet::new();
    for path in files(&root().join("src/aws"), &["rs"]) {
        let source = fs::read_to_string(path).unwrap();
        let words = source.split('"').filter(|word| {
            word.chars().all(|letter| letter.is_ascii_alphabetic())
                && VERBS
                    .iter()
                    .any(|verb| word.len() > verb.len() && word.starts_with(verb))
        });
        called.extend(words.filter(|word| !NOT_CALLED.contains(word)).map(str::to_owned));
    }
    assert!(called.contains("SuspendProcesses"), "{called:?}");
    let policy = fs::read_to_string(root().join("docs/iam-policy.json")).unwrap();
    let explained = fs::read_to_string(root().join("docs/iam.md")).unwrap();
    let missing: Vec<&String> = called
        .iter()
        .filter(|action| !policy.contains(&format!(":{action}\"")) || !explained.contains(action.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "not in docs/iam-policy.json or not in docs/iam.md: {missing:?}"
    );
}
