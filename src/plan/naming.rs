//! Names and marks on everything the product makes in AWS and in the cluster.
//!
//! Owns AWS resource names, ownership tags, client tokens, version descriptions and request names, all as pure
//! functions of a group's identity, so that a second attempt finds what the first one made. Must not decide
//! what to make.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::facts::{AutoScalingGroup, GroupTag, LaunchTemplate};

/// Tag on an Auto Scaling group: the cluster's name. Shared with the peer; the ownership check reads it.
pub const TAG_CLUSTER: &str = "instancegroups.keikoproj.io/ClusterName";
/// Tag on an Auto Scaling group: the instance group's namespace.
pub const TAG_NAMESPACE: &str = "instancegroups.keikoproj.io/Namespace";
/// Tag on an Auto Scaling group: the instance group's name.
pub const TAG_INSTANCE_GROUP: &str = "instancegroups.keikoproj.io/InstanceGroup";
/// Tag on everything we make, so that an IAM policy can be limited to it.
pub const TAG_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`TAG_MANAGED_BY`].
pub const MANAGED_BY: &str = "sluice";

/// Longest name of an Auto Scaling group, in characters (Auto Scaling API, `AutoScalingGroupName`).
const GROUP_NAME_LIMIT: usize = 255;
/// Longest name of a launch template, in characters (EC2 API, `LaunchTemplateName`).
const TEMPLATE_NAME_LIMIT: usize = 128;
/// Longest object name in Kubernetes, in characters (RFC 1123 subdomain).
const OBJECT_NAME_LIMIT: usize = 253;

/// Who a group is: what its names, tags and tokens are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// EKS cluster.
    pub cluster: String,
    /// Namespace of the group.
    pub namespace: String,
    /// Name of the group.
    pub name: String,
    /// Uid of the group: a group made anew under the same name is another one.
    pub uid: String,
    /// When the group was created; part of the template's name.
    pub created_at: Timestamp,
}

impl Identity {
    /// `<cluster>-<namespace>-<name>`, the peer's prefix. Two groups can share it, hence the tags.
    fn prefix(&self) -> String {
        format!("{}-{}-{}", self.cluster, self.namespace, self.name)
    }

    /// Name of the Auto Scaling group.
    #[must_use]
    pub fn scaling_group(&self) -> String {
        shortened(&self.prefix(), GROUP_NAME_LIMIT)
    }

    /// Name of the launch template: the peer's form, with the group's own creation time as the stamp.
    #[must_use]
    pub fn launch_template(&self) -> String {
        let stamp = self.created_at.strftime("%Y%m%d%H%M%S").to_string();
        shortened(&format!("{}-{stamp}", self.prefix()), TEMPLATE_NAME_LIMIT)
    }

    /// Tags of the launch template.
    #[must_use]
    pub fn template_tags(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (TAG_CLUSTER.to_owned(), self.cluster.clone()),
            (TAG_NAMESPACE.to_owned(), self.namespace.clone()),
            (TAG_INSTANCE_GROUP.to_owned(), self.name.clone()),
            (TAG_MANAGED_BY.to_owned(), MANAGED_BY.to_owned()),
        ])
    }

    /// Tags of the Auto Scaling group that belong to us: the peer's, and our mark.
    #[must_use]
    pub fn scaling_group_tags(&self) -> BTreeMap<String, GroupTag> {
        let mut tags = self.template_tags();
        tags.insert("Name".to_owned(), self.scaling_group());
        tags.insert("KubernetesCluster".to_owned(), self.cluster.clone());
        tags.into_iter()
            .map(|(key, value)| (key, GroupTag { value, propagate: true }))
            .collect()
    }

    /// Whether an Auto Scaling group carries exactly this group's ownership tags.
    #[must_use]
    pub fn owns(&self, group: &AutoScalingGroup) -> bool {
        let is = |key: &str, value: &str| group.tags.get(key).is_some_and(|tag| tag.value == value);
        is(TAG_CLUSTER, &self.cluster) && is(TAG_NAMESPACE, &self.namespace) && is(TAG_INSTANCE_GROUP, &self.name)
    }

    /// Idempotency token of the call that makes a template version for a fingerprint: the same group and
    /// content give the same token, so a repeated call has one effect (EC2 allows 128 characters).
    #[must_use]
    pub fn client_token(&self, action: &str, fingerprint: &str) -> String {
        digest(&[action, &self.uid, fingerprint], 32)
    }

    /// Idempotency token of the call that adds a version to a template. The newest known version is in it: a repeated call
    /// still sees the same one and has one effect, while a content that comes back after its version was deleted gets
    /// a new version instead of EC2's answer of then.
    #[must_use]
    pub fn version_token(&self, template: &LaunchTemplate, fingerprint: &str) -> String {
        let newest = template.versions.keys().max().copied().unwrap_or_default();
        self.client_token(&format!("version-after-{}-{newest}", template.id), fingerprint)
    }

    /// Name of the upgrade request for a target: the name is the content.
    #[must_use]
    pub fn request_name<'a>(
        &self,
        fingerprint: &'a str,
        removed_subnets: impl IntoIterator<Item = &'a String>,
    ) -> String {
        let mut parts = vec![fingerprint];
        parts.extend(removed_subnets.into_iter().map(String::as_str));
        let suffix = digest(&parts, 10);
        let stem = shortened(&self.name, OBJECT_NAME_LIMIT - suffix.len() - 1);
        format!("{stem}-{suffix}")
    }
}

/// The first `length` hex digits of a hash over `parts`, with the parts kept apart.
fn digest(parts: &[&str], length: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(length);
    text
}

/// `name` if it fits, else a cut of it and a hash of the whole.
fn shortened(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit {
        return name.to_owned();
    }
    let suffix = digest(&[name], 10);
    let kept: String = name.chars().take(limit - suffix.len() - 1).collect();
    format!("{kept}-{suffix}")
}

/// What a block is kept under: the target's fingerprint, and with it the subnets that the target leaves, so that a
/// denied removal of a subnet blocks neither what runs nor the removal of another.
#[must_use]
pub fn block_key<'a>(fingerprint: &'a str, removed_subnets: impl IntoIterator<Item = &'a String>) -> String {
    let subnets: Vec<&str> = removed_subnets.into_iter().map(String::as_str).collect();
    if subnets.is_empty() {
        return fingerprint.to_owned();
    }
    format!("{fingerprint}-{}", digest(&subnets, 10))
}

/// The target's fingerprint in what a block is kept under.
#[must_use]
pub fn blocked_fingerprint(key: &str) -> &str {
    key.split_once('-').map_or(key, |(fingerprint, _)| fingerprint)
}

/// What we write into a template version's description: enough to know an approved configuration again when
/// the cluster has forgotten it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionMark {
    /// Fingerprint of the launch inputs.
    pub fingerprint: String,
    /// Rendering rules that the fingerprint was made with.
    pub render_version: String,
    /// Kubernetes minor version the image was resolved for, if it follows one.
    pub kubernetes_version: Option<String>,
}

impl VersionMark {
    /// The description text (EC2 allows 255 characters; this has under 120).
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("sluice render={} fingerprint={}", self.render_version, self.fingerprint);
        if let Some(version) = &self.kubernetes_version {
            text.push_str(" kubernetes=");
            text.push_str(version);
        }
        text
    }

    /// Reads a description back; `None` if it is not one of ours.
    #[must_use]
    pub fn parse(description: &str) -> Option<Self> {
        let mut words = description.split(' ');
        if words.next() != Some("sluice") {
            return None;
        }
        let values: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
        Some(Self {
            fingerprint: (*values.get("fingerprint")?).to_owned(),
            render_version: (*values.get("render")?).to_owned(),
            kubernetes_version: values.get("kubernetes").map(|version| (*version).to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(namespace: &str, name: &str) -> Identity {
        Identity {
            cluster: "demo".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: "3f6c".to_owned(),
            created_at: "2026-11-30T10:20:30Z".parse().unwrap(),
        }
    }

    #[test]
    fn names_follow_the_peer() {
        let group = identity("team", "workers");
        assert_eq!(group.scaling_group(), "demo-team-workers");
        assert_eq!(group.launch_template(), "demo-team-workers-20261130102030");
    }

    #[test]
    fn long_names_are_cut_to_the_limit_and_stay_distinct() {
        let one = identity(&"n".repeat(63), &format!("{}a", "x".repeat(200)));
        let two = identity(&"n".repeat(63), &format!("{}b", "x".repeat(200)));
        assert_eq!(one.scaling_group().len(), GROUP_NAME_LIMIT);
        assert_eq!(one.launch_template().len(), TEMPLATE_NAME_LIMIT);
        assert_ne!(one.scaling_group(), two.scaling_group());
        assert_ne!(one.launch_template(), two.launch_template());
        let long = Identity {
            name: "y".repeat(253),
            ..one
        };
        assert_eq!(long.request_name("sha256:aa", []).len(), OBJECT_NAME_LIMIT);
    }

    #[test]
    fn names_at_the_limit_are_kept() {
        assert_eq!(shortened("abcdefghijkl", 12), "abcdefghijkl");
        assert_eq!(shortened("abcdefghijklm", 12).len(), 12);
        assert!(shortened("abcdefghijklm", 12).starts_with("a-"));
    }

    #[test]
    fn a_request_name_is_its_content() {
        let group = identity("team", "workers");
        let subnets = ["subnet-1".to_owned()];
        let plain = group.request_name("sha256:aa", []);
        assert!(plain.starts_with("workers-") && plain.len() == "workers-".len() + 10);
        assert_eq!(plain, group.request_name("sha256:aa", []));
        assert_ne!(plain, group.request_name("sha256:ab", []));
        assert_ne!(plain, group.request_name("sha256:aa", &subnets));
    }

    #[test]
    fn tokens_belong_to_a_group_an_action_and_a_content() {
        let group = identity("team", "workers");
        let again = Identity {
            uid: "other".to_owned(),
            ..group.clone()
        };
        let token = group.client_token("version", "sha256:aa");
        assert_eq!(token.len(), 32);
        assert_eq!(token, group.client_token("version", "sha256:aa"));
        assert_ne!(token, group.client_token("template", "sha256:aa"));
        assert_ne!(token, group.client_token("version", "sha256:ab"));
        assert_ne!(token, again.client_token("version", "sha256:aa"));
    }

    #[test]
    fn a_version_mark_survives_the_round_trip() {
        for kubernetes_version in [None, Some("1.33".to_owned())] {
            let mark = VersionMark {
                fingerprint: format!("sha256:{}", "a".repeat(64)),
                render_version: "1".to_owned(),
                kubernetes_version,
            };
            assert!(mark.describe().len() <= 255);
            assert_eq!(VersionMark::parse(&mark.describe()), Some(mark));
        }
        assert_eq!(VersionMark::parse(""), None);
        assert_eq!(VersionMark::parse("made by hand fingerprint=x render=1"), None);
        assert_eq!(VersionMark::parse("sluice render=1"), None);
        assert_eq!(VersionMark::parse("sluice fingerprint=sha256:aa"), None);
    }

    #[test]
    fn ownership_needs_all_three_tags_exactly() {
        let group = identity("team", "workers");
        let scaling_group = |tags: BTreeMap<String, GroupTag>| AutoScalingGroup {
            tags,
            ..super::super::test_world::empty_group()
        };
        assert!(group.owns(&scaling_group(group.scaling_group_tags())));
        for missing in [TAG_CLUSTER, TAG_NAMESPACE, TAG_INSTANCE_GROUP] {
            let mut tags = group.scaling_group_tags();
            tags.remove(missing);
            assert!(!group.owns(&scaling_group(tags)), "{missing} was not needed");
        }
        assert!(!identity("team", "workers-2").owns(&scaling_group(group.scaling_group_tags())));
        assert!(!identity("other", "workers").owns(&scaling_group(group.scaling_group_tags())));
    }
}
