//! Every test that `docs/promises.md` names exists.

use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn each_named_test_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&root.join("src"), &mut files);
    rust_files(&root.join("tests"), &mut files);
    let source: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let promises = fs::read_to_string(root.join("docs/promises.md")).unwrap();
    let mut named = 0;
    for row in promises
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
    {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        for test in tests.split('`').skip(1).step_by(2) {
            named += 1;
            let function = test.rsplit("::").next().unwrap_or_default();
            assert!(
                source.contains(&format!("fn {function}(")),
                "docs/promises.md names {test}, which does not exist"
            );
        }
    }
    assert!(named > 0, "docs/promises.md names no test");
}
