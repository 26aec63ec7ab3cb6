//! Which image a group should run, and whether it can.
//!
//! Owns the parameter paths, the Kubernetes version that `latest` follows and the usability rules. Must not read
//! a parameter or an image itself.

use std::fmt;

use jiff::Timestamp;

use super::facts::{Cluster, Fact, Image, InstanceType, Parameter};
use super::problem::Problem;
use super::wanted::Wanted;
use crate::api::instance_group::{ImageReference, InstanceGroup};
use crate::api::{Reason, annotation};

/// Path of the field that names the image.
const IMAGE_PATH: &str = "spec.eks.configuration.image";

/// The last Kubernetes minor for which EKS publishes Amazon Linux 2 images.
const LAST_AMAZON_LINUX_2: KubernetesVersion = KubernetesVersion { major: 1, minor: 32 };

/// A Kubernetes minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl KubernetesVersion {
    /// Reads `1.33`; anything after a second dot is ignored.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        Some(Self {
            major: parts.next()?.parse().ok()?,
            minor: parts.next()?.parse().ok()?,
        })
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Where the image id comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// The manifest names it.
    Id(String),
    /// An SSM parameter holds it.
    Parameter {
        /// Full parameter name.
        name: String,
        /// Kubernetes minor version that the name was made for.
        kubernetes_version: Option<String>,
        /// Whether that version is the cluster's because the manifest pins none.
        follows_cluster: bool,
    },
}

/// Works out where the image id comes from.
///
/// # Errors
/// A [`Problem`] when no parameter exists for what the manifest says.
pub fn image_source(
    group: &InstanceGroup,
    wanted: &Wanted,
    cluster: &Cluster,
    instance_type: &InstanceType,
) -> Result<ImageSource, Problem> {
    let (id, newest) = match ImageReference::parse(&wanted.image) {
        ImageReference::Id(id) => return Ok(ImageSource::Id(id.to_owned())),
        ImageReference::SsmParameter(name) => {
            return Ok(ImageSource::Parameter {
                name: name.to_owned(),
                kubernetes_version: None,
                follows_cluster: false,
            });
        }
        ImageReference::ResolvedByEc2(_) => {
            // EC2 would resolve it anew at each launch, behind the gate's back.
            return Err(Problem::image(
                Reason::SpecInvalid,
                IMAGE_PATH,
                "resolve:ssm: moves without approval; write ssm:///<parameter> instead",
            ));
        }
        ImageReference::Latest => (None, true),
        ImageReference::SsmRelease(release) => (Some(release), false),
    };
    let version = worker_version(wanted, cluster)?;
    let architecture = ["x86_64", "arm64"]
        .into_iter()
        .find(|architecture| instance_type.architectures.contains(*architecture))
        .ok_or_else(|| {
            Problem::target(
                Reason::Unusable,
                "spec.eks.configuration.instanceType",
                format!("{} is neither x86_64 nor arm64", instance_type.name),
            )
        })?;
    let release = id.unwrap_or("recommended");
    let name = match os_family(group) {
        OsFamily::AmazonLinux2023 => {
            format!(
                "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/standard/{release}/image_id"
            )
        }
        OsFamily::Bottlerocket => {
            let release = if newest { "latest" } else { release };
            format!("/aws/service/bottlerocket/aws-k8s-{version}/{architecture}/{release}/image_id")
        }
        family @ (OsFamily::AmazonLinux2 | OsFamily::Unset) => {
            if version > LAST_AMAZON_LINUX_2 {
                let how = match family {
                    OsFamily::Unset => "is absent, which means Amazon Linux 2",
                    _ => "says Amazon Linux 2",
                };
                return Err(Problem::image(
                    Reason::ImageFamilyUnknown,
                    &format!("metadata.annotations[{}]", annotation::OS_FAMILY),
                    format!(
                        "{how}; EKS has no such image for Kubernetes {version}; set amazonlinux2023 or bottlerocket"
                    ),
                ));
            }
            let suffix = if architecture == "arm64" { "-arm64" } else { "" };
            format!("/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}/{release}/image_id")
        }
        OsFamily::Other => {
            return Err(Problem::image(
                Reason::ImageFamilyUnknown,
                &format!("metadata.annotations[{}]", annotation::OS_FAMILY),
                "names no family whose images can be followed; name the image by id or ssm:///<parameter>",
            ));
        }
    };
    Ok(ImageSource::Parameter {
        name,
        kubernetes_version: Some(version.to_string()),
        follows_cluster: wanted.configuration.kubernetes_version.is_none(),
    })
}

/// The operating system family that the image look-up goes by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OsFamily {
    AmazonLinux2023,
    AmazonLinux2,
    Bottlerocket,
    Unset,
    Other,
}

fn os_family(group: &InstanceGroup) -> OsFamily {
    let has_node_config = group.has_node_config();
    match group
        .annotation(annotation::OS_FAMILY)
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        _ if has_node_config => OsFamily::AmazonLinux2023,
        Some("amazonlinux2023") => OsFamily::AmazonLinux2023,
        Some("amazonlinux2") => OsFamily::AmazonLinux2,
        Some("bottlerocket") => OsFamily::Bottlerocket,
        Some(_) => OsFamily::Other,
        None => OsFamily::Unset,
    }
}

/// The Kubernetes minor version for the workers: the manifest's, else the cluster's; never newer than that.
fn worker_version(wanted: &Wanted, cluster: &Cluster) -> Result<KubernetesVersion, Problem> {
    let of_cluster = KubernetesVersion::parse(&cluster.kubernetes_version).ok_or_else(|| {
        Problem::target(
            Reason::Unusable,
            "spec.eks.configuration.clusterName",
            format!("the cluster's version {:?} makes no sense", cluster.kubernetes_version),
        )
    })?;
    let Some(pinned) = &wanted.configuration.kubernetes_version else {
        return Ok(of_cluster);
    };
    let path = "spec.eks.configuration.kubernetesVersion";
    let pinned =
        KubernetesVersion::parse(pinned).ok_or_else(|| Problem::invalid(path, "is not a version like 1.33"))?;
    if pinned > of_cluster {
        // Kubernetes version skew policy: a kubelet must not be newer than the API server.
        return Err(Problem::target(
            Reason::VersionTooNew,
            path,
            format!("{pinned} is newer than the cluster, which runs {of_cluster}"),
        ));
    }
    Ok(pinned)
}

/// The image id that a parameter holds.
///
/// # Errors
/// A [`Problem`] when the parameter does not exist, is not known, or holds something else.
pub fn parameter_value(name: &str, parameter: &Fact<Parameter>) -> Result<Parameter, Problem> {
    match parameter {
        Fact::Found(parameter) if is_image_id(&parameter.value) => Ok(parameter.clone()),
        Fact::Found(parameter) => Err(Problem::image(
            Reason::ParameterUnusable,
            IMAGE_PATH,
            format!("parameter {name} holds {:?}, which is no image id", parameter.value),
        )),
        Fact::NotFound => Err(Problem::image(
            Reason::ParameterNotFound,
            IMAGE_PATH,
            format!("parameter {name} does not exist"),
        )),
        Fact::Unknown(failure) => Err(Problem::Unknown(failure.clone())),
    }
}

/// Whether this has the shape of an image id.
fn is_image_id(text: &str) -> bool {
    text.strip_prefix("ami-")
        .is_some_and(|id| !id.is_empty() && id.chars().all(|character| character.is_ascii_hexdigit()))
}

/// Checks that new nodes can run an image (gate rule L3).
///
/// # Errors
/// A [`Problem`] saying what is wrong with it. An image that a person named by id may be deprecated: EC2 still
/// launches it, and the choice was deliberate.
pub fn usable(
    image_id: &str,
    image: &Fact<Image>,
    instance_type: &InstanceType,
    followed: bool,
    now: Timestamp,
) -> Result<Image, Problem> {
    let unusable =
        |reason: Reason, message: String| Err(Problem::image(reason, IMAGE_PATH, format!("{image_id} {message}")));
    let image = match image {
        Fact::Found(image) => image,
        Fact::NotFound => {
            return unusable(
                Reason::ImageNotFound,
                "does not exist, or is not shared with this account".to_owned(),
            );
        }
        Fact::Unknown(failure) => return Err(Problem::Unknown(failure.clone())),
    };
    if !image.can_launch() {
        return unusable(
            Reason::ImageUnavailable,
            format!("is in state {:?}, not available", image.state),
        );
    }
    if !instance_type.architectures.contains(&image.architecture) {
        let offered: Vec<&str> = instance_type.architectures.iter().map(String::as_str).collect();
        return unusable(
            Reason::ImageArchitecture,
            format!(
                "is built for {}, instance type {} is {}",
                image.architecture,
                instance_type.name,
                offered.join(", ")
            ),
        );
    }
    if let Some(since) = image.deprecated_at.filter(|since| followed && *since <= now) {
        return unusable(Reason::ImageDeprecated, format!("is deprecated since {since}"));
    }
    Ok(image.clone())
}
