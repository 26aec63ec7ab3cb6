//! Where the text of settings stands in a file: bare, or in the manifest of a `ConfigMap`.
//!
//! Owns the way from lines of the text to lines of the file. Must not know what the text means.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::plan::settings::UPGRADES;

/// The text of key `upgrades`, found in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The text.
    pub text: String,
    place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// So many lines of the file come before it.
    After(usize),
    /// Written in a style that breaks lines elsewhere than the text does: all is told at the line of the key.
    At(usize),
}

impl Found {
    /// The line of the file that a line of the text stands in.
    #[must_use]
    pub fn line(&self, line: usize) -> usize {
        match self.place {
            Place::After(before) => before + line,
            Place::At(key) => key,
        }
    }
}

/// As much of an object as is needed here.
#[derive(Deserialize)]
struct Manifest {
    kind: Option<String>,
    data: Option<BTreeMap<String, Option<Spanned<String>>>>,
}

/// Finds the text. A file that is no manifest is the text itself, mistakes included.
///
/// # Errors
/// When a manifest has no such key, in a sentence.
pub fn find(file: &str) -> Result<Found, String> {
    let bare = Found {
        text: file.to_owned(),
        place: Place::After(0),
    };
    let Ok(objects) = serde_saphyr::from_multiple::<Manifest>(file) else {
        return Ok(bare);
    };
    if objects.iter().all(|object| object.kind.is_none()) {
        return Ok(bare);
    }
    let mut texts = objects
        .into_iter()
        .filter(|object| object.kind.as_deref() == Some("ConfigMap"))
        .filter_map(|object| object.data?.remove(UPGRADES)?);
    let text = texts.next().filter(|text| !text.value.trim().is_empty());
    let text = text.ok_or_else(|| {
        format!(
            "there is no ConfigMap with a text under data.{UPGRADES}; to unlock what settings locked, write locks: []"
        )
    })?;
    if texts.next().is_some() {
        return Err(format!(
            "more than one ConfigMap has key {UPGRADES}; check one at a time"
        ));
    }
    let key = usize::try_from(text.referenced.line()).unwrap_or(1);
    Ok(Found {
        place: place(file, &text.value, key),
        text: text.value,
    })
}

/// Where the lines of a text stand one to one in a file, from the line of its key on.
fn place(file: &str, text: &str, key: usize) -> Place {
    let lines: Vec<&str> = file.lines().map(str::trim).collect();
    let stands = |before: &usize| {
        let there = lines.iter().skip(*before).copied();
        let all = text.lines().map(str::trim);
        all.clone().count() <= there.len() && all.zip(there).all(|(line, there)| line == there)
    };
    // What the library tells is the line of the key or that of the first line with something in it.
    let blank = text.lines().take_while(|line| line.trim().is_empty()).count();
    let found = [key, key.saturating_sub(1), key.saturating_sub(1 + blank)];
    found.into_iter().find(stands).map_or(Place::At(key), Place::After)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: instance-manager\ndata:\n";

    fn lines(file: &str) -> Vec<usize> {
        let found = find(file).unwrap();
        (1..=found.text.lines().count()).map(|line| found.line(line)).collect()
    }

    #[test]
    fn a_line_is_found_again_in_the_file() {
        assert_eq!(lines("locks: []\nfreeze: {}\n"), [1, 2]);
        assert_eq!(
            lines(&format!("{HEAD}  upgrades: |\n    locks: []\n\n    freeze: {{}}\n")),
            [7, 8, 9]
        );
        assert_eq!(
            lines(&format!("{HEAD}  upgrades: |-\n\n    # why\n    locks: []\n")),
            [7, 8, 9]
        );
        let second =
            format!("kind: Namespace\nmetadata: {{name: x}}\n---\n{HEAD}  awsAuth: x\n  upgrades: |\n    locks: []\n");
        assert_eq!(lines(&second), [11]);
        // Styles that break lines elsewhere.
        assert_eq!(
            lines(&format!("{HEAD}  upgrades: \"locks: []\\nfreeze: {{}}\"\n")),
            [6, 6]
        );
    }

    #[test]
    fn a_manifest_without_the_text_is_told_and_nonsense_is_left_to_the_reader() {
        for file in [
            "kind: ConfigMap\n",
            "kind: ConfigMap\ndata: {awsAuth: x}\n",
            "kind: ConfigMap\ndata: {upgrades: \"\"}\n",
            "kind: ConfigMap\ndata: {upgrades: }\n",
            "kind: Secret\ndata: {upgrades: x}\n",
        ] {
            assert!(find(file).unwrap_err().contains("data.upgrades"), "{file}");
        }
        let twice = format!("{HEAD}  upgrades: a\n---\n{HEAD}  upgrades: b\n");
        assert!(find(&twice).unwrap_err().contains("more than one"));
        for file in ["locks: [", "", "- a", "locks: []\ndata: 3"] {
            assert_eq!(find(file).unwrap().text, file);
        }
    }
}
