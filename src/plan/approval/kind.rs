//! What kinds of change a request is made of.
//!
//! Owns the taking apart of a request, `Multiple` above all: its rule is the strictest of its kinds. Must not look at
//! anything but the request.

use std::fmt;

use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, UpgradeReason};

/// A kind of change that a schedule has a rule for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A new image.
    Image,
    /// The parameter went back to an earlier image.
    Rollback,
    /// An edit of the group.
    Spec,
    /// Another minor version of Kubernetes.
    KubernetesVersion,
    /// A group taken over that differs.
    Adoption,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Image => "new images",
            Self::Rollback => "images that AWS went back to",
            Self::Spec => "edits of the group",
            Self::KubernetesVersion => "Kubernetes versions",
            Self::Adoption => "groups taken over",
        })
    }
}

/// The kinds of a request, at least one.
#[must_use]
pub fn kinds(request: &InstanceGroupUpgradeRequest) -> Vec<Kind> {
    match request.spec.reason {
        UpgradeReason::ImageDrift => vec![Kind::Image],
        UpgradeReason::ImageRollback => vec![Kind::Rollback],
        UpgradeReason::SpecDrift => vec![Kind::Spec],
        UpgradeReason::KubernetesVersionDrift => vec![Kind::KubernetesVersion],
        UpgradeReason::Adoption => vec![Kind::Adoption],
        UpgradeReason::Multiple => several(request),
    }
}

fn several(request: &InstanceGroupUpgradeRequest) -> Vec<Kind> {
    let (from, target) = (request.spec.from.as_ref(), &request.spec.target);
    let mut kinds = Vec::new();
    let version = from.and_then(|from| from.kubernetes_version.as_ref());
    let steps = target.kubernetes_version.is_some() && version != target.kubernetes_version.as_ref();
    if steps {
        kinds.push(Kind::KubernetesVersion);
    }
    // With a step the image is another one in any case; the image counts as a kind of its own all the same: stricter.
    if from.and_then(|from| from.image_id.as_ref()) != target.image_id.as_ref() {
        kinds.push(Kind::Image);
    }
    let edits = target.changes.iter().any(|change| change.path != "imageId");
    // What cannot be told apart counts as an edit: by default that is for a person.
    if edits || !target.removed_subnets.is_empty() || kinds.len() < 2 {
        kinds.push(Kind::Spec);
    }
    kinds
}
