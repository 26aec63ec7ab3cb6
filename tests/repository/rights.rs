//! The rights that we hand out and ask for: the AWS policy allows what the code calls, the chart's admission policies know what
//! the code acts on, and the page on rights tells of every example.

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

/// An annotation that is renamed in the code and not in a policy would be nobody's to guard.
#[test]
fn each_name_in_an_admission_policy_is_one_of_ours() {
    let known = fs::read_to_string(root().join("src/api/annotation.rs")).unwrap();
    let mut names = BTreeSet::new();
    for path in files(&root().join("charts/sluice/templates"), &["yaml", "tpl"]) {
        let template = fs::read_to_string(&path).unwrap();
        // In quotes it is a key that is compared; in a message it is prose.
        for key in template.split("'instancemgr.keikoproj.io/").skip(1) {
            let name: String = key.chars().take_while(|letter| !"'*".contains(*letter)).collect();
            names.extend(Some(name).filter(|name| !name.is_empty()));
        }
    }
    let expected = [
        "approval",
        "config-excluded",
        "lock-upgrades",
        "retry-upgrade",
        "upgrade-delay",
    ];
    assert!(names.iter().map(String::as_str).eq(expected), "{names:?}");
    let unknown: Vec<_> = names
        .iter()
        .filter(|name| !known.contains(&format!("\"instancemgr.keikoproj.io/{name}\"")))
        .collect();
    assert!(unknown.is_empty(), "not in src/api/annotation.rs: {unknown:?}");
}

/// Somebody who gives rights reads that page and copies a file.
#[test]
fn each_example_of_rights_is_told_of() {
    let page = fs::read_to_string(root().join("docs/rights.md")).unwrap();
    let examples = files(&root().join("examples/rights"), &["yaml"]);
    assert!(!examples.is_empty());
    for path in examples {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            page.contains(&format!("(../examples/rights/{name})")),
            "docs/rights.md does not link {name}"
        );
    }
    for role in ["sluice-viewer", "sluice-editor", "sluice-approver", "sluice-unlocker"] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{role}` |")));
        assert!(row.is_some(), "docs/rights.md has no row of {role}");
    }
}
