//! Who looks at what: the index from an outside name to the groups that follow it.
//!
//! Owns the answer to "this changed, who has to look". A change wakes exactly the groups concerned. Must not hold facts.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something outside that groups follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Followed {
    /// An Auto Scaling group, by name.
    ScalingGroup(String),
    /// A launch template, by name.
    Template(String),
    /// An SSM parameter, by full name.
    Parameter(String),
    /// An image, by id.
    Image(String),
    /// An EKS cluster, by name.
    Cluster(String),
    /// A namespace, by name.
    Namespace(String),
    /// The group is in motion: it waits for instances and nodes that nobody can attribute yet.
    Motion,
    /// The pods on a node, by node name.
    Pods(String),
    /// The budgets of pods: the group waits for one.
    Budgets,
    /// A slot for a rollout: the group waits for one. Holds the name of its schedule; blank = none.
    Slot(String),
}

/// Namespace and name of a group.
pub type GroupName = (String, String);

#[derive(Debug, Default)]
struct Index {
    by_group: HashMap<GroupName, BTreeSet<Followed>>,
    by_followed: HashMap<Followed, BTreeSet<GroupName>>,
}

/// The index.
#[derive(Debug, Default)]
pub struct Followers {
    index: Mutex<Index>,
}

impl Followers {
    /// Says what a group follows from now on, in place of before. Returns whether that is different.
    pub fn set(&self, group: &GroupName, follows: BTreeSet<Followed>) -> bool {
        let mut index = self.lock();
        if index.by_group.get(group).is_some_and(|before| *before == follows) {
            return false;
        }
        let before = if follows.is_empty() {
            index.by_group.remove(group)
        } else {
            index.by_group.insert(group.clone(), follows.clone())
        };
        for gone in before.unwrap_or_default().difference(&follows) {
            if let Some(groups) = index.by_followed.get_mut(gone) {
                groups.remove(group);
                if groups.is_empty() {
                    index.by_followed.remove(gone);
                }
            }
        }
        for followed in follows {
            index.by_followed.entry(followed).or_default().insert(group.clone());
        }
        true
    }

    /// Whether a group followed something when it was last looked at.
    #[must_use]
    pub fn follows(&self, group: &GroupName, followed: &Followed) -> bool {
        self.lock()
            .by_group
            .get(group)
            .is_some_and(|follows| follows.contains(followed))
    }

    /// The groups that follow something.
    #[must_use]
    pub fn of(&self, followed: &Followed) -> Vec<GroupName> {
        self.lock()
            .by_followed
            .get(followed)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Everything that any group follows.
    #[must_use]
    pub fn all(&self) -> BTreeSet<Followed> {
        self.lock().by_followed.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> GroupName {
        ("team".to_owned(), name.to_owned())
    }

    #[test]
    fn a_change_reaches_exactly_its_followers() {
        let followers = Followers::default();
        let image = Followed::Parameter("/image".to_owned());
        followers.set(&group("a"), BTreeSet::from([image.clone(), Followed::Motion]));
        followers.set(&group("b"), BTreeSet::from([image.clone()]));
        assert_eq!(followers.of(&image), [group("a"), group("b")]);
        assert_eq!(followers.of(&Followed::Motion), [group("a")]);
        assert!(
            followers.follows(&group("a"), &Followed::Motion) && !followers.follows(&group("b"), &Followed::Motion)
        );
        followers.set(&group("a"), BTreeSet::from([image.clone()]));
        assert!(followers.of(&Followed::Motion).is_empty());
        followers.set(&group("a"), BTreeSet::new());
        assert_eq!(followers.of(&image), [group("b")]);
        assert_eq!(followers.all(), BTreeSet::from([image]));
    }
}
