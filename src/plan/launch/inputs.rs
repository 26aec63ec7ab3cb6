//! The launch inputs: everything that decides what a new node is.
//!
//! Owns the rendered value that becomes a launch template version, and its fingerprint. Must not read a spec
//! or know AWS's wire types: rendering is `super::render`, sending is `aws`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// What a new node gets, fully resolved: ids instead of names, text instead of templates.
///
/// # Invariants
/// Two values are equal exactly if their fingerprints are. Sets are sorted, so that the order in a manifest
/// means nothing. `Debug` hides the user data, which may hold secrets.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct LaunchInputs {
    /// Image id, `ami-...`.
    pub image_id: String,
    /// EC2 instance type.
    pub instance_type: String,
    /// ARN of the instance profile.
    pub instance_profile_arn: String,
    /// Security group ids.
    pub security_group_ids: BTreeSet<String>,
    /// Name of the SSH key pair.
    pub key_name: Option<String>,
    /// User data as plain text, before base64.
    pub user_data: String,
    /// Block devices, sorted by device name.
    pub volumes: Vec<LaunchVolume>,
    /// Instance metadata service options.
    pub metadata: LaunchMetadata,
    /// Placement, where given.
    pub placement: Option<LaunchPlacement>,
    /// License configuration ARNs.
    pub license_arns: BTreeSet<String>,
    /// Tags by resource type (`instance`, `volume`, ...) and key.
    pub tag_specifications: BTreeMap<String, BTreeMap<String, String>>,
}

/// A block device of a new node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchVolume {
    /// Device name, for example `/dev/xvda`.
    pub device: String,
    /// EBS volume type, lower case.
    pub volume_type: String,
    /// Size in GiB; absent when a snapshot decides.
    pub size_gib: Option<i32>,
    /// Provisioned I/O operations a second.
    pub iops: Option<i32>,
    /// Throughput in MiB a second.
    pub throughput: Option<i32>,
    /// Whether the volume goes with the instance.
    pub delete_on_termination: bool,
    /// Encryption, where the manifest says.
    pub encrypted: Option<bool>,
    /// Snapshot to start from.
    pub snapshot_id: Option<String>,
}

/// Instance metadata service options of a new node; absent = the account's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaunchMetadata {
    /// `enabled` or `disabled`.
    pub http_endpoint: Option<String>,
    /// `optional` or `required`.
    pub http_tokens: Option<String>,
    /// Hop limit of the answer to a token request, 1 to 64.
    pub http_put_hop_limit: Option<i32>,
}

/// Placement of a new node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchPlacement {
    /// Availability zone.
    pub availability_zone: Option<String>,
    /// ARN of a host resource group.
    pub host_resource_group_arn: Option<String>,
    /// `default`, `dedicated` or `host`.
    pub tenancy: Option<String>,
}

impl fmt::Debug for LaunchInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchInputs")
            .field("image_id", &self.image_id)
            .field("instance_type", &self.instance_type)
            .field("user_data_bytes", &self.user_data.len())
            .finish_non_exhaustive()
    }
}

impl LaunchInputs {
    /// The fingerprint: SHA-256 over the canonical JSON of all fields, as `sha256:<64 hex digits>`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        // Field order is fixed by the struct and map order by BTreeMap, so equal values give equal bytes.
        // A struct of strings, numbers and string-keyed maps always serializes.
        let canonical = serde_json::to_vec(self).unwrap_or_default();
        format!("sha256:{}", hex::encode(Sha256::digest(canonical)))
    }

    /// A short digest and the line count of the user data: enough for an approver to see that it changed,
    /// without showing what may be secret.
    #[must_use]
    pub fn user_data_summary(&self) -> String {
        let digest = hex::encode(Sha256::digest(self.user_data.as_bytes()));
        format!("{} ({} lines)", &digest[..12], self.user_data.lines().count())
    }
}
