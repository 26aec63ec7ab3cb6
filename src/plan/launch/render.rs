//! Rendering rules, by version.
//!
//! Owns the step from a validated manifest, resolved ground and an image to [`LaunchInputs`]. A group keeps the
//! rules it was approved under until its next approved change, so an upgrade of the operator rolls nothing.
//! Must not look anything up.

use std::collections::{BTreeMap, BTreeSet};

use super::inputs::{LaunchInputs, LaunchMetadata, LaunchPlacement, LaunchVolume};
use super::user_data::{NodeConfig, amazon_linux_2023};
use crate::api::instance_group::{EksConfiguration, NodeVolume};
use crate::api::{Reason, label};
use crate::plan::facts::{Cluster, InstanceProfile, InstanceType, Subnet};
use crate::plan::problem::Problem;
use crate::plan::wanted::Wanted;

/// The newest rendering rules; what new groups and approved changes use.
pub const RENDER_VERSION: &str = "1";

/// Most user data EC2 takes, in bytes before base64 (EC2 user guide, "user data is limited to 16 KB").
const USER_DATA_LIMIT: usize = 16 * 1024;

/// Everything that rendering needs besides the manifest and the image, looked up and known to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The cluster that nodes join.
    pub cluster: Cluster,
    /// The instance profile.
    pub profile: InstanceProfile,
    /// The instance type.
    pub instance_type: InstanceType,
    /// The subnets, resolved.
    pub subnets: BTreeSet<Subnet>,
    /// Security group ids, resolved.
    pub security_groups: BTreeSet<String>,
}

/// Renders what a new node of the group gets with this image.
///
/// # Errors
/// A [`Problem`] when the rules are of an unknown version or the result is more than EC2 takes.
pub fn render(wanted: &Wanted, ground: &Ground, image_id: &str, version: &str) -> Result<LaunchInputs, Problem> {
    if version != RENDER_VERSION {
        return Err(Problem::target(
            Reason::Unusable,
            "status.fingerprint.renderVersion",
            format!("this operator has no rules {version:?}"),
        ));
    }
    let configuration = &wanted.configuration;
    let labels = node_labels(wanted, image_id);
    let user_data = amazon_linux_2023(
        &NodeConfig {
            cluster: &ground.cluster,
            labels: &labels,
            taints: wanted.taints(),
            max_pods: configuration
                .bootstrap_options
                .as_ref()
                .and_then(|options| options.max_pods),
        },
        &configuration.user_data,
    );
    if user_data.len() > USER_DATA_LIMIT {
        return Err(Problem::target(
            Reason::Unusable,
            "spec.eks.configuration.userData",
            format!(
                "user data is {} bytes with the rest; EC2 takes {USER_DATA_LIMIT}",
                user_data.len()
            ),
        ));
    }
    Ok(LaunchInputs {
        image_id: image_id.to_owned(),
        instance_type: wanted.instance_type.clone(),
        instance_profile_arn: ground.profile.arn.clone(),
        security_group_ids: ground.security_groups.clone(),
        key_name: configuration.key_pair_name.clone(),
        user_data,
        volumes: volumes(&configuration.volumes)?,
        metadata: metadata(configuration),
        placement: configuration.placement.as_ref().map(|placement| LaunchPlacement {
            availability_zone: placement.availability_zone.clone(),
            host_resource_group_arn: placement.host_resource_group_arn.clone(),
            tenancy: placement.tenancy.clone(),
        }),
        license_arns: configuration.license_specifications.iter().cloned().collect(),
        tag_specifications: tag_specifications(configuration),
    })
}

/// Labels of a new node: the manifest's, and the ones that the peer's users select by.
fn node_labels(wanted: &Wanted, image_id: &str) -> BTreeMap<String, String> {
    let mut labels = wanted.configuration.labels.clone();
    labels
        .entry(label::NODE_ROLE.to_owned())
        .or_insert_with(|| wanted.identity.name.clone());
    labels.insert(label::LIFECYCLE.to_owned(), "normal".to_owned());
    labels.insert(label::IMAGE.to_owned(), image_id.to_owned());
    labels
}

/// Block devices; a manifest without any gets one root volume of 32 GiB, as with the peer.
fn volumes(listed: &[NodeVolume]) -> Result<Vec<LaunchVolume>, Problem> {
    if listed.is_empty() {
        return Ok(vec![LaunchVolume {
            device: "/dev/xvda".to_owned(),
            volume_type: "gp2".to_owned(),
            size_gib: Some(32),
            iops: None,
            throughput: None,
            delete_on_termination: true,
            encrypted: None,
            snapshot_id: None,
        }]);
    }
    let number = |value: i64, index: usize, field: &str| {
        i32::try_from(value).map_err(|_| {
            Problem::invalid(
                &format!("spec.eks.configuration.volumes[{index}].{field}"),
                "is out of range",
            )
        })
    };
    let mut volumes = Vec::new();
    for (index, volume) in listed.iter().enumerate() {
        let size = number(volume.size, index, "size")?;
        volumes.push(LaunchVolume {
            device: volume.name.clone(),
            volume_type: volume.type_.to_ascii_lowercase(),
            // 0 is how the schema, which demands a size, says "as the snapshot".
            size_gib: (size > 0).then_some(size),
            iops: volume
                .iops
                .filter(|iops| *iops > 0)
                .map(|iops| number(iops, index, "iops"))
                .transpose()?,
            throughput: volume
                .throughput
                .filter(|rate| *rate > 0)
                .map(|rate| number(rate, index, "throughput"))
                .transpose()?,
            delete_on_termination: volume.delete_on_termination.unwrap_or(true),
            encrypted: volume.encrypted,
            snapshot_id: volume.snapshot_id.clone(),
        });
    }
    volumes.sort_by(|left, right| left.device.cmp(&right.device));
    Ok(volumes)
}

/// Metadata options; what the manifest leaves out is left to the account's default.
fn metadata(configuration: &EksConfiguration) -> LaunchMetadata {
    configuration
        .metadata_options
        .as_ref()
        .map_or_else(LaunchMetadata::default, |options| LaunchMetadata {
            http_endpoint: options.http_endpoint.clone(),
            http_tokens: options.http_tokens.clone(),
            http_put_hop_limit: options.http_put_hop_limit.and_then(|limit| i32::try_from(limit).ok()),
        })
}

/// Tags by resource type; entries for one type are merged, the last value of a key holds.
fn tag_specifications(configuration: &EksConfiguration) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut by_type: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for specification in &configuration.tag_specifications {
        let tags = specification
            .tags
            .iter()
            .map(|tag| (tag.key.clone(), tag.value.clone()));
        by_type
            .entry(specification.resource_type.clone())
            .or_default()
            .extend(tags);
    }
    by_type.retain(|resource_type, tags| !resource_type.is_empty() && !tags.is_empty());
    by_type
}
