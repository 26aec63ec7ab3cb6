//! The files of the tree.
//!
//! Owns finding them. Must not judge them.

use std::fs;
use std::path::{Path, PathBuf};

/// The project's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder with one of these endings.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if path
            .extension()
            .is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted))
        {
            found.push(path);
        }
    }
    found
}
