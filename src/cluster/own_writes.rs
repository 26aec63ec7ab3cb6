//! Our own writes, until the watch has caught up with them.
//!
//! Owns the answer to "which copy is newer, the watched one or the one a write returned". Without it a reconcile right
//! after a write would decide on the object as it was before. Must not invent state: it only holds what the API
//! server answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::{Resource, ResourceExt};

/// Namespace and name.
type Key = (String, String);

/// What a write left behind.
#[derive(Debug)]
enum Written<K> {
    /// The object as the server returned it.
    Present(Arc<K>),
    /// The object with this uid is deleted.
    Gone(String),
}

/// The returned objects of writes that the watch may not show yet.
#[derive(Debug)]
pub struct OwnWrites<K> {
    entries: Mutex<HashMap<Key, Written<K>>>,
}

impl<K> Default for OwnWrites<K> {
    fn default() -> Self {
        Self {
            entries: Mutex::new(HashMap::new()),
        }
    }
}

impl<K: Resource<DynamicType = ()>> OwnWrites<K> {
    /// Remembers what a write returned.
    pub fn wrote(&self, object: K) -> Arc<K> {
        let object = Arc::new(object);
        self.lock()
            .insert(key(object.as_ref()), Written::Present(Arc::clone(&object)));
        object
    }

    /// Remembers that an object was deleted.
    pub fn removed(&self, namespace: &str, name: &str, uid: &str) {
        self.lock()
            .insert((namespace.to_owned(), name.to_owned()), Written::Gone(uid.to_owned()));
    }

    /// The newer of the watched copy and our own.
    pub fn newer(&self, watched: Arc<K>) -> Option<Arc<K>> {
        let mut entries = self.lock();
        let key = key(watched.as_ref());
        match entries.get(&key) {
            Some(Written::Present(own))
                if own.uid() == watched.uid() && version(own.as_ref()) > version(watched.as_ref()) =>
            {
                Some(Arc::clone(own))
            }
            Some(Written::Gone(uid)) if watched.uid().as_ref() == Some(uid) => None,
            Some(_) => {
                entries.remove(&key);
                Some(watched)
            }
            None => Some(watched),
        }
    }

    /// Our own writes that fit, for objects that the watch does not show at all yet.
    pub fn unseen(&self, seen: impl Fn(&str, &str) -> bool, fits: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.lock()
            .iter()
            .filter_map(|((namespace, name), written)| match written {
                Written::Present(own) if fits(own) && !seen(namespace, name) => Some(Arc::clone(own)),
                _ => None,
            })
            .collect()
    }

    /// Whether a watched copy is only our own write coming back, or older: nothing that we do not know of.
    pub fn covers(&self, watched: &K) -> bool {
        match self.lock().get(&key(watched)) {
            Some(Written::Present(own)) => own.uid() == watched.uid() && version(own.as_ref()) >= version(watched),
            Some(Written::Gone(_)) | None => false,
        }
    }

    /// Forgets an object that the watch said is gone. One made anew under the name since is another.
    pub fn forget(&self, gone: &K) {
        let mut entries = self.lock();
        let key = key(gone);
        let is_of = match entries.get(&key) {
            Some(Written::Present(own)) => own.uid() == gone.uid(),
            Some(Written::Gone(uid)) => Some(uid) == gone.uid().as_ref(),
            None => false,
        };
        if is_of {
            entries.remove(&key);
        }
    }

    /// Keeps only entries of objects that a complete list shows: what went unseen while nobody watched stays gone. A write
    /// newer than the list is lost too, and is read again by the watch.
    pub fn retain(&self, listed: impl Fn(&str, &str) -> bool) {
        self.lock().retain(|(namespace, name), _| listed(namespace, name));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Written<K>>> {
        // A panic elsewhere does not make the map wrong: every change is one insert or remove.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key<K: Resource<DynamicType = ()>>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// The resourceVersion as a number: Kubernetes promises since 1.35 (KEP-5504), and etcd always gave, that versions of
/// one resource can be compared so. Something else counts as oldest, so the watched copy wins.
fn version<K: Resource>(object: &K) -> u128 {
    object
        .meta()
        .resource_version
        .as_deref()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;

    fn object(name: &str, uid: &str, version: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                namespace: Some("team".to_owned()),
                name: Some(name.to_owned()),
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    fn seen(writes: &OwnWrites<ConfigMap>, watched: ConfigMap) -> Option<String> {
        writes
            .newer(Arc::new(watched))
            .and_then(|newer| newer.resource_version())
    }

    #[test]
    fn the_newer_copy_wins_whichever_it_is() {
        let writes = OwnWrites::default();
        writes.wrote(object("a", "1", "10"));
        assert_eq!(seen(&writes, object("a", "1", "9")), Some("10".to_owned()));
        assert_eq!(seen(&writes, object("a", "1", "10")), Some("10".to_owned()));
        writes.wrote(object("a", "1", "10"));
        assert_eq!(seen(&writes, object("a", "1", "11")), Some("11".to_owned()));
        // The watch has caught up: what comes later is taken as it is.
        assert_eq!(seen(&writes, object("a", "1", "9")), Some("9".to_owned()));
    }

    #[test]
    fn an_object_made_anew_is_another_one() {
        let writes = OwnWrites::default();
        writes.wrote(object("a", "1", "10"));
        assert_eq!(seen(&writes, object("a", "2", "5")), Some("5".to_owned()));
        writes.removed("team", "b", "1");
        assert_eq!(seen(&writes, object("b", "1", "5")), None);
        assert_eq!(seen(&writes, object("b", "2", "6")), Some("6".to_owned()));
    }

    #[test]
    fn created_objects_show_before_the_watch_does() {
        let writes = OwnWrites::default();
        writes.wrote(object("a", "1", "10"));
        writes.wrote(object("b", "2", "11"));
        let found = writes.unseen(|_, name| name == "b", |_| true);
        assert_eq!(found.iter().map(|own| own.name_any()).collect::<Vec<_>>(), ["a"]);
        assert!(writes.unseen(|_, _| false, |own| own.name_any() == "c").is_empty());
        writes.forget(&object("a", "of an earlier one", "3"));
        assert_eq!(writes.unseen(|_, name| name == "b", |_| true).len(), 1);
        writes.forget(&object("a", "1", "10"));
        assert!(writes.unseen(|_, name| name == "b", |_| true).is_empty());
        writes.retain(|_, name| name == "a");
        assert!(writes.unseen(|_, _| false, |_| true).is_empty());
    }

    #[test]
    fn our_own_write_coming_back_is_no_news() {
        let writes = OwnWrites::default();
        writes.wrote(object("a", "1", "10"));
        assert!(writes.covers(&object("a", "1", "10")) && writes.covers(&object("a", "1", "9")));
        assert!(!writes.covers(&object("a", "1", "11")), "somebody wrote after us");
        assert!(!writes.covers(&object("a", "2", "9")), "another object");
        assert!(!writes.covers(&object("b", "1", "9")));
    }
}
