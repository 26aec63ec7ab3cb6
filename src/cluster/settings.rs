//! The settings `ConfigMap` as last seen.
//!
//! Owns which settings are in force, and tells of changes. Must not judge what they mean for a group; `plan` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::Resource;
use tokio::sync::watch;

use crate::plan::settings::InForce;

/// What is in force, and the object that it comes from.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What is in force.
    pub in_force: Arc<InForce>,
    /// The `ConfigMap`, if it exists.
    pub object: Option<ObjectReference>,
}

/// The settings. Cheap to clone; all clones see the same.
#[derive(Clone, Debug)]
pub struct SettingsInForce {
    seen: watch::Sender<Seen>,
}

impl Default for SettingsInForce {
    fn default() -> Self {
        Self {
            seen: watch::Sender::new(Seen::default()),
        }
    }
}

impl SettingsInForce {
    /// What is in force now.
    #[must_use]
    pub fn now(&self) -> Arc<InForce> {
        Arc::clone(&self.seen.borrow().in_force)
    }

    /// Follows what is in force from now on.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Seen> {
        self.seen.subscribe()
    }

    /// Takes over what the `ConfigMap` says; `None` = it does not exist. Returns whether that is something else than before.
    #[must_use]
    pub fn saw(&self, settings: Option<&ConfigMap>) -> bool {
        self.seen.send_if_modified(|seen| {
            let next = seen.in_force.next(settings.map(all_keys).as_ref());
            let object = settings.map(|settings| settings.object_ref(&()));
            let differs = next != *seen.in_force;
            if differs {
                seen.in_force = Arc::new(next);
            }
            seen.object = object;
            differs
        })
    }
}

/// The data; a binary key is there as well, and never one that we act on.
fn all_keys(settings: &ConfigMap) -> BTreeMap<String, String> {
    let mut data = settings.data.clone().unwrap_or_default();
    for key in settings.binary_data.iter().flatten().map(|(key, _)| key) {
        data.insert(format!("{key} (binary)"), String::new());
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> ConfigMap {
        ConfigMap {
            data: Some(BTreeMap::from([("upgrades".to_owned(), text.to_owned())])),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn only_what_is_different_is_told() {
        let store = SettingsInForce::default();
        let mut follower = store.follow();
        assert!(!store.saw(None));
        assert!(store.saw(Some(&settings("locks: []"))) && store.now().sound().is_some());
        assert!(follower.has_changed().unwrap());
        follower.mark_unchanged();
        assert!(!store.saw(Some(&settings("locks: []"))) && !follower.has_changed().unwrap());
        assert!(store.saw(None) && store.now().sound().is_none() && store.now().binding().is_some());
    }

    #[test]
    fn binary_keys_count_as_keys() {
        let mut with_binary = settings("locks: []");
        with_binary.binary_data = Some(BTreeMap::from([("blob".to_owned(), k8s_openapi::ByteString(vec![1]))]));
        let store = SettingsInForce::default();
        assert!(store.saw(Some(&with_binary)));
        assert_eq!(
            store.now().unsupported,
            ["ConfigMap instance-manager data.blob (binary)"]
        );
    }
}
