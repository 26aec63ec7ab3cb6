//! The house rules that a machine can check: imports only downward, a header on each file, no file too long.

use std::fs;

use crate::tree::{files, root};

/// The layers from the bottom up; each may import those before it.
const LAYERS: &[&[&str]] = &[
    &["api"],
    &["plan"],
    &["fence"],
    &["aws", "cluster", "clock"],
    &["telemetry"],
    &["metrics", "cli"],
    &["simulate"],
    &["controllers"],
    &["admin"],
    &["manager"],
    &["settings_command"],
];

/// Longest file, in lines.
const LONGEST: usize = 600;

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

#[test]
fn imports_only_point_downward() {
    let mut wrong = Vec::new();
    for path in files(&root().join("src"), &["rs"]) {
        let relative = path.strip_prefix(root().join("src")).unwrap();
        let module = relative
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let layer = layer_of(module).unwrap_or_else(|| panic!("{module} is in no layer: add it to LAYERS"));
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            for imported in line.split("crate::").skip(1) {
                let imported: String = imported
                    .chars()
                    .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                    .collect();
                let is_up =
                    layer_of(&imported).is_some_and(|other| other > layer || (other == layer && imported != module));
                if is_up && !line.trim_start().starts_with("//") {
                    wrong.push(format!(
                        "{}:{}: {module} imports {imported}",
                        relative.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_plan_is_pure() {
    let mut wrong = Vec::new();
    for path in files(&root().join("src/plan"), &["rs"]) {
        if path
            .components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "test_world")
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for banned in [
            "std::env::",
            "tokio",
            "Timestamp::now",
            "SystemTime",
            "Instant::",
            "kube::Client",
            "aws_sdk",
            "std::fs",
        ] {
            if text
                .lines()
                .any(|line| line.contains(banned) && !line.trim_start().starts_with("//"))
            {
                wrong.push(format!("{}: {banned}", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "plan must take facts and time as arguments:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_file_says_what_it_owns() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests"] {
        for path in files(&root().join(folder), &["rs"]) {
            if !fs::read_to_string(&path).unwrap().starts_with("//! ") {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "no //! at the top:\n{}", wrong.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests"] {
        for path in files(&root().join(folder), &["rs", "py"]) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            if lines > LONGEST {
                wrong.push(format!("{}: {lines}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "longer than {LONGEST} lines:\n{}", wrong.join("\n"));
}

#[test]
fn no_module_is_a_drawer_for_leftovers() {
    for path in files(&root().join("src"), &["rs"]) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            !["utils", "util", "helpers", "helper", "common", "misc"].contains(&name),
            "{}",
            path.display()
        );
    }
}
