//! What a manifest asks for, parsed once.
//!
//! Owns the step from the wire type to a value whose shape later code can rely on. Must not look anything up:
//! names stay names here. The API server refuses most bad manifests by CEL; what is refused here was stored
//! before a rule existed, and is reported with its path.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Taint;

use super::naming::Identity;
use super::problem::Problem;
use crate::api::instance_group::{EksConfiguration, InstanceGroup};

/// A validated instance group of provisioner `eks`.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Who the group is.
    pub identity: Identity,
    /// Lower bound, in instances.
    pub min_size: i32,
    /// Upper bound, in instances.
    pub max_size: i32,
    /// The configuration, with the required fields present.
    pub configuration: EksConfiguration,
    /// EC2 instance type.
    pub instance_type: String,
    /// The image as written: an id, `latest` or a parameter.
    pub image: String,
    /// Instance profile to launch with.
    pub instance_profile: String,
    /// Subnet ids and names, without repeats.
    pub subnets: BTreeSet<String>,
    /// Security group ids and names, without repeats.
    pub security_groups: BTreeSet<String>,
}

impl Wanted {
    /// Parses a group.
    ///
    /// # Errors
    /// A [`Problem`] with the path of the field that is missing or makes no sense.
    pub fn parse(group: &InstanceGroup) -> Result<Self, Problem> {
        let eks = group
            .spec
            .eks
            .as_ref()
            .ok_or_else(|| Problem::invalid("spec.eks", "is required"))?;
        let configuration = eks.configuration.clone();
        let identity =
            identity(group).ok_or_else(|| Problem::invalid("spec.eks.configuration.clusterName", "is required"))?;
        let min_size = size("spec.eks.minSize", eks.effective_min())?;
        let max_size = size("spec.eks.maxSize", eks.effective_max())?;
        if min_size > max_size {
            return Err(Problem::invalid("spec.eks.minSize", "is above spec.eks.maxSize"));
        }
        let required = |value: &Option<String>, name: &str| {
            value
                .clone()
                .ok_or_else(|| Problem::invalid(&format!("spec.eks.configuration.{name}"), "is required"))
        };
        let set = |values: &[String], name: &str| {
            let set: BTreeSet<String> = values.iter().cloned().collect();
            if set.is_empty() {
                return Err(Problem::invalid(
                    &format!("spec.eks.configuration.{name}"),
                    "names none",
                ));
            }
            Ok(set)
        };
        Ok(Self {
            identity,
            min_size,
            max_size,
            instance_type: required(&configuration.instance_type, "instanceType")?,
            image: required(&configuration.image, "image")?,
            instance_profile: required(&configuration.instance_profile_name, "instanceProfileName")?,
            subnets: set(&configuration.subnets, "subnets")?,
            security_groups: set(&configuration.security_groups, "securityGroups")?,
            configuration,
        })
    }

    /// The taints of a new node.
    #[must_use]
    pub fn taints(&self) -> &[Taint] {
        &self.configuration.taints
    }
}

/// Who a group is; `None` while its cluster is not known. A deletion needs nothing more of a group than this.
#[must_use]
pub fn identity(group: &InstanceGroup) -> Option<Identity> {
    let cluster = group.spec.eks.as_ref()?.configuration.cluster_name.clone()?;
    Some(Identity {
        cluster,
        namespace: group.metadata.namespace.clone()?,
        name: group.metadata.name.clone()?,
        uid: group.metadata.uid.clone()?,
        created_at: group.metadata.creation_timestamp.as_ref()?.0,
    })
}

/// A size as AWS takes it.
fn size(path: &str, value: i64) -> Result<i32, Problem> {
    i32::try_from(value)
        .ok()
        .filter(|size| *size >= 0)
        .ok_or_else(|| Problem::invalid(path, "is not a size that Auto Scaling takes"))
}
