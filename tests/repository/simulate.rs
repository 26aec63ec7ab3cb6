//! `sluice simulate` on its examples, and how long a large fleet takes.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use pretty_assertions::assert_eq;

use crate::tree::root;

fn simulate(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let answer = command
        .current_dir(root())
        .arg("simulate")
        .args(arguments)
        .output()
        .unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8(answer.stdout).unwrap()
}

const EXAMPLES: [&str; 6] = [
    "--settings",
    "examples/settings/tiers.yaml",
    "--groups",
    "examples/simulate/groups.yaml",
    "--releases",
    "examples/simulate/releases.yaml",
];

#[test]
fn the_examples_are_replayed_as_reviewed() {
    let golden = root().join("tests/golden/simulate/examples.txt");
    let text = simulate(&EXAMPLES);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &text).unwrap();
    }
    assert_eq!(
        text,
        std::fs::read_to_string(golden).unwrap(),
        "review the difference; UPDATE=1 accepts it"
    );
}

#[test]
fn the_same_in_other_forms() {
    let with = |form: &'static str| simulate(&[&EXAMPLES[..], &["--output", form]].concat());
    let json: serde_json::Value = serde_json::from_str(&with("json")).unwrap();
    let outcomes = json["outcomes"].as_array().unwrap();
    assert!(
        outcomes
            .iter()
            .any(|outcome| outcome["by"] == "prod" && outcome["finished"].is_string())
    );
    let svg = with("svg");
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>") && svg.matches("<rect ").count() > 50);
}

/// 1,000 groups over two years of weekly releases. The product's promise of 2 s is for a release build; this one is not.
#[test]
fn a_thousand_groups_over_two_years_take_seconds() {
    let folder = std::env::temp_dir().join(format!("sluice-simulate-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (groups, releases) = (folder.join("groups.yaml"), folder.join("releases.yaml"));
    let fleet = "namespaces:\n  dev: {instancemgr.keikoproj.io/tier: dev}\n  prod: {instancemgr.keikoproj.io/tier: prod}\ngroups:\n\
                 - {namespace: dev, name: a, count: 400, nodes: 3}\n- {namespace: prod, name: a, count: 600, nodes: 10, perNode: 1m}\n";
    std::fs::write(&groups, fleet).unwrap();
    let mut text = String::new();
    for week in 0..104i64 {
        let at = jiff::Timestamp::from_second(1_700_000_000 + week * 604_800).unwrap();
        let _ = writeln!(text, "- {{at: {at}, image: ami-{week}}}");
    }
    std::fs::write(&releases, text).unwrap();
    let (groups, releases) = (groups.display().to_string(), releases.display().to_string());
    let started = Instant::now();
    let report = simulate(&[
        "--settings",
        "examples/settings/three-tiers.yaml",
        "--groups",
        &groups,
        "--releases",
        &releases,
        "--max-concurrent-rollouts",
        "50",
    ]);
    let took = started.elapsed();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        report.contains("1000 groups, 104 releases"),
        "{}",
        report.lines().last().unwrap_or_default()
    );
    println!("{took:?} in this build");
    assert!(took.as_secs() < 60, "{took:?}");
}
