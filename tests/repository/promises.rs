//! Every test that `docs/promises.md` names exists.

use std::fs;

use crate::tree::{files, root};

#[test]
fn each_named_test_exists() {
    let root = root();
    let mut all = files(&root.join("src"), &["rs"]);
    all.extend(files(&root.join("tests"), &["rs"]));
    let source: String = all.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
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
