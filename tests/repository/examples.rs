//! The examples of settings are good, and `docs/schedules.md` shows nothing else.

use std::fs;

use jiff::Timestamp;
use sluice::plan::settings::{check, read_with_lines};

use crate::tree::{files, root};

/// When the examples are looked at: those that end, end later.
const NOW: &str = "2026-12-01T12:00:00Z";

/// The text of settings in a manifest, without its indentation.
fn text_of(manifest: &str) -> String {
    let (_, text) = manifest.split_once("  upgrades: |\n").unwrap();
    let lines = text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.collect::<Vec<&str>>().join("\n")
}

fn manifests() -> Vec<(String, String)> {
    let paths = files(&root().join("examples/settings"), &["yaml"]);
    let read = |path: &std::path::PathBuf| (path.display().to_string(), fs::read_to_string(path).unwrap());
    let mut all: Vec<(String, String)> = paths.iter().map(read).collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

#[test]
fn each_example_of_settings_is_taken_without_a_warning() {
    let now: Timestamp = NOW.parse().unwrap();
    for (name, manifest) in manifests() {
        assert!(
            manifest.contains(
                "
  name: instance-manager
"
            ),
            "{name}"
        );
        let (settings, lines) = read_with_lines(&text_of(&manifest)).expect(&name);
        assert_eq!(check(&settings, &lines, now, None), [], "{name}");
    }
}

/// A block of YAML in the docs is a run of whole lines of an example, wherever it starts and however deep.
#[test]
fn the_docs_on_schedules_quote_the_examples() {
    let page = fs::read_to_string(root().join("docs/schedules.md")).unwrap();
    let flat = |text: &str| -> Vec<String> { text.lines().map(|line| line.trim().to_owned()).collect() };
    let examples: Vec<Vec<String>> = manifests().iter().map(|(_, manifest)| flat(manifest)).collect();
    let mut quoted = 0;
    for block in page.split("```yaml\n").skip(1) {
        let block = flat(block.split("```").next().unwrap());
        let found = examples
            .iter()
            .any(|example| example.windows(block.len()).any(|lines| lines == block));
        assert!(
            found,
            "docs/schedules.md quotes what is in no example:\n{}",
            block.join("\n")
        );
        quoted += 1;
    }
    assert!(quoted > 0, "docs/schedules.md quotes no example");
    for (name, _) in manifests() {
        let name = name.rsplit('/').next().unwrap();
        assert!(
            page.contains(&format!("examples/settings/{name}")),
            "docs/schedules.md does not name {name}"
        );
    }
}
