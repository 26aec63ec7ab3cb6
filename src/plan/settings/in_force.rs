//! Which settings are in force: the last that were understood, and what is wrong with the present ones.
//!
//! Owns what an absent, an empty and a broken text mean: never an unlock, and no automatic decision. Must not read a
//! `ConfigMap`; its data comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Settings, SettingsError, read};

/// Key of the `ConfigMap` that this version acts on.
pub const UPGRADES: &str = "upgrades";

/// The settings as they stand.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// The last that were understood since the process started.
    pub settings: Option<Arc<Settings>>,
    /// What is wrong with the present ones.
    pub trouble: Option<Trouble>,
    /// Paths of keys that this version does not act on.
    pub unsupported: Vec<String>,
}

/// What is wrong with the present settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no `ConfigMap`, no key, or only blanks in it.
    Missing,
    /// The text has mistakes.
    Broken(Vec<SettingsError>),
}

impl Default for InForce {
    /// As with a cluster that never had settings.
    fn default() -> Self {
        Self {
            settings: None,
            trouble: Some(Trouble::Missing),
            unsupported: Vec::new(),
        }
    }
}

impl InForce {
    /// These settings and nothing wrong with them.
    #[must_use]
    pub fn of(settings: Settings) -> Self {
        Self {
            settings: Some(Arc::new(settings)),
            trouble: None,
            unsupported: Vec::new(),
        }
    }

    /// What is in force once the `ConfigMap` holds this; `None` = it does not exist.
    #[must_use]
    pub fn next(&self, data: Option<&BTreeMap<String, String>>) -> Self {
        let text = data.and_then(|data| data.get(UPGRADES)).map(|text| text.trim_end());
        let (settings, trouble) = match text.filter(|text| !text.is_empty()).map(read) {
            Some(Ok(settings)) => (Some(Arc::new(settings)), None),
            Some(Err(mistakes)) => (self.settings.clone(), Some(Trouble::Broken(mistakes))),
            None => (self.settings.clone(), Some(Trouble::Missing)),
        };
        let unsupported = data
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter(|key| *key != UPGRADES)
            .map(|key| format!("ConfigMap instance-manager data.{key}"))
            .collect();
        Self {
            settings,
            trouble,
            unsupported,
        }
    }

    /// What automatic decisions may rest on: settings without trouble.
    #[must_use]
    pub fn sound(&self) -> Option<&Settings> {
        match self.trouble {
            None => self.settings.as_deref(),
            Some(_) => None,
        }
    }

    /// What holds groups back: the last good settings, also while the present ones are in trouble.
    #[must_use]
    pub fn binding(&self) -> Option<&Settings> {
        self.settings.as_deref()
    }

    /// Whether nothing was ever understood and what is there is broken: then every group counts as locked.
    #[must_use]
    pub fn locks_all(&self) -> bool {
        self.settings.is_none() && matches!(self.trouble, Some(Trouble::Broken(_)))
    }

    /// Whether there are no settings and never were, as far as this process knows.
    #[must_use]
    pub fn never_said(&self) -> bool {
        self.settings.is_none() && self.trouble == Some(Trouble::Missing)
    }

    /// What is wrong, in a sentence.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        match self.trouble.as_ref()? {
            Trouble::Missing => Some(format!(
                "the ConfigMap instance-manager or its key {UPGRADES} is missing or empty; to unlock, write locks: []"
            )),
            Trouble::Broken(mistakes) => {
                let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
                let more = match mistakes.len() {
                    0 | 1 => String::new(),
                    count => format!(" (and {} more)", count - 1),
                };
                let stands = if self.settings.is_some() {
                    "the last good settings stay in force"
                } else {
                    "none were understood since the start, so every group is locked"
                };
                Some(format!(
                    "ConfigMap instance-manager, key {UPGRADES}: {first}{more}; {stands}, and nothing is approved automatically"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(UPGRADES.to_owned(), text.to_owned())])
    }

    #[test]
    fn what_cannot_be_read_changes_nothing_and_decides_nothing() {
        let good = InForce::default().next(Some(&data("freeze: {enabled: true}")));
        assert!(good.sound().is_some_and(|settings| settings.freeze.enabled));
        for (what, bad) in [
            ("broken", good.next(Some(&data("freeze: [")))),
            ("empty", good.next(Some(&data("  \n")))),
            ("no key", good.next(Some(&BTreeMap::new()))),
            ("gone", good.next(None)),
        ] {
            assert!(bad.sound().is_none(), "{what}");
            assert!(bad.binding().is_some_and(|settings| settings.freeze.enabled), "{what}");
            assert!(!bad.locks_all() && bad.complaint().is_some(), "{what}");
            assert_eq!(bad.next(Some(&data("freeze: {enabled: true}"))), good, "{what}");
        }
    }

    #[test]
    fn nothing_ever_understood_locks_all_unless_nothing_was_ever_there() {
        let none = InForce::default();
        assert!(!none.locks_all() && none.next(None) == none);
        let broken = none.next(Some(&data("locks: maybe")));
        assert!(broken.locks_all());
        assert!(
            broken
                .complaint()
                .is_some_and(|text| text.contains("every group is locked"))
        );
        // Broken first and deleted then: nobody ever asked for a lock.
        assert!(!broken.next(None).locks_all());
    }

    #[test]
    fn other_keys_are_named() {
        let mut data = data("locks: []");
        data.insert("boundaries".into(), String::new());
        let found = InForce::default().next(Some(&data)).unsupported;
        assert_eq!(found, ["ConfigMap instance-manager data.boundaries"]);
    }
}
