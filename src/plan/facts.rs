//! Facts: what the outside world looks like, in the product's own words.
//!
//! Owns the plain values that `aws` and `cluster` fill in and that decisions read. Must not hold a client,
//! a clock or a decision. A look-up has three answers, never two: what could not be learned is
//! [`Fact::Unknown`], and nothing may be created, rotated or deleted on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::launch::LaunchInputs;
use crate::api::NodeRecord;

pub mod workload;

/// The answer of a look-up in the outside world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// The thing exists and looks like this.
    Found(T),
    /// The service said that the thing does not exist.
    NotFound,
    /// Nobody knows: the call failed, or the answer may still lag behind our own write.
    Unknown(Failure),
}

impl<T> Fact<T> {
    /// The value, if it was found.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::NotFound | Self::Unknown(_) => None,
        }
    }

    /// Turns the found value into another; the two other answers stay what they are.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Found(value) => Fact::Found(convert(value)),
            Self::NotFound => Fact::NotFound,
            Self::Unknown(failure) => Fact::Unknown(failure),
        }
    }
}

/// What kind of failure an outside call had; decides the condition's reason, the retry and the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr, strum::EnumIter)]
pub enum FailureClass {
    /// The service asked us to slow down.
    Throttled,
    /// No answer in time, a broken connection or a server-side fault.
    Unavailable,
    /// Our identity lacks a permission.
    Denied,
    /// The call named something that does not exist.
    NotFound,
    /// The call wanted to create something that exists.
    AlreadyExists,
    /// Something else is under way or uses the thing; trying later can help.
    Busy,
    /// A quota is used up.
    LimitExceeded,
    /// The request can never succeed as it is.
    Invalid,
    /// A read right after our own write that does not show the write yet.
    Lagging,
    /// This process does not lead, or does not any more: the pass is over and nothing is told of it.
    NotLeading,
    /// Nothing in the error table matches.
    Unclassified,
}

/// A failed outside call, as shown to people. Holds no secret and no request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub class: FailureClass,
    /// The API action in the service's own spelling, for example `autoscaling:CreateAutoScalingGroup`.
    pub action: String,
    /// The service's error code, where it gave one.
    pub code: Option<String>,
    /// The service's own words, cut to a length that fits a condition.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class: &'static str = self.class.into();
        write!(f, "{}: {}", self.action, class)?;
        if let Some(code) = &self.code {
            write!(f, " ({code})")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// An EC2 Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoScalingGroup {
    /// Its name; unique in an account and region.
    pub name: String,
    /// Lower bound of the size, in instances.
    pub min_size: i32,
    /// Upper bound of the size, in instances.
    pub max_size: i32,
    /// Size that Auto Scaling works towards, in instances.
    pub desired_capacity: i32,
    /// Ids of the subnets that it launches into.
    pub subnets: BTreeSet<String>,
    /// What it launches from.
    pub launch_source: LaunchSource,
    /// Tags by key.
    pub tags: BTreeMap<String, GroupTag>,
    /// Names of suspended processes.
    pub suspended_processes: BTreeSet<String>,
    /// Names of enabled group metrics.
    pub enabled_metrics: BTreeSet<String>,
    /// Its instances, in any life-cycle state.
    pub instances: Vec<Instance>,
    /// Set while a deletion is in progress.
    pub deleting: bool,
}

/// What an Auto Scaling group launches new instances from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchSource {
    /// A launch template.
    Template {
        /// Template id, `lt-...`.
        id: String,
        /// Template name.
        name: String,
        /// Which version; a number holds still, the two names move.
        version: VersionSelector,
    },
    /// A mixed instances policy or a launch configuration: known to exist, not understood yet.
    Other,
}

/// Which version of a launch template an Auto Scaling group boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionSelector {
    /// A fixed version.
    Number(i64),
    /// `$Latest`, `$Default` or nothing: moves without the group being touched.
    Moving(String),
}

impl fmt::Display for VersionSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Moving(name) => f.write_str(name),
        }
    }
}

/// The value of a tag on an Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTag {
    /// The tag's value.
    pub value: String,
    /// Whether new instances get the tag too.
    pub propagate: bool,
}

/// An instance as its Auto Scaling group sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Instance id, `i-...`.
    pub id: String,
    /// Availability zone.
    pub zone: String,
    /// Life-cycle state in AWS's words, for example `InService`, `Pending:Wait`, `Terminating`.
    pub lifecycle_state: String,
    /// Whether Auto Scaling counts it as healthy.
    pub healthy: bool,
    /// Id of the template it was launched from, if from a template.
    pub template_id: Option<String>,
    /// Version of that template it was launched from.
    pub template_version: Option<i64>,
}

impl Instance {
    /// Whether it serves: the only state in which a node can be counted on.
    #[must_use]
    pub fn in_service(&self) -> bool {
        self.lifecycle_state == "InService"
    }

    /// Whether it is on its way out.
    #[must_use]
    pub fn terminating(&self) -> bool {
        self.lifecycle_state.starts_with("Terminat")
    }
}

/// A launch template and the versions that were looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTemplate {
    /// Template id, `lt-...`.
    pub id: String,
    /// Template name.
    pub name: String,
    /// Number of the default version: by our own rule the approved one.
    pub default_version: i64,
    /// The versions known, by number. The shared inventory only lists the default one.
    pub versions: BTreeMap<i64, TemplateVersion>,
    /// Whether `versions` is the whole list.
    pub complete: bool,
}

/// One version of a launch template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateVersion {
    /// Its number.
    pub number: i64,
    /// The version description, where our fingerprint stands.
    pub description: String,
    /// The image it boots.
    pub image_id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it gives a new node, where it was asked for: only the approved version of a group that differs.
    pub inputs: Option<Box<LaunchInputs>>,
}

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Image id, `ami-...`.
    pub id: String,
    /// Image name.
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Image state in EC2's words; only `available` can be launched.
    pub state: String,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it is deprecated from, if set.
    pub deprecated_at: Option<Timestamp>,
}

impl Image {
    /// Whether EC2 launches it now.
    #[must_use]
    pub fn can_launch(&self) -> bool {
        self.state == "available"
    }
}

/// An SSM parameter that names an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Full parameter name.
    pub name: String,
    /// Its value: an image id, if it is well.
    pub value: String,
    /// Version of the parameter.
    pub version: i64,
    /// When SSM last changed it.
    pub last_modified: Option<Timestamp>,
}

/// An EKS cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Kubernetes version of the control plane, as `1.33`.
    pub kubernetes_version: String,
    /// URL of the API server.
    pub endpoint: String,
    /// Base64 of the API server's certificate authority.
    pub certificate_authority: String,
    /// CIDR of Service addresses, IPv4 or IPv6.
    pub service_cidr: String,
    /// VPC id.
    pub vpc_id: String,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    /// Subnet id, `subnet-...`.
    pub id: String,
    /// Availability zone.
    pub zone: String,
}

/// An EC2 instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// Name, as `m5.large`.
    pub name: String,
    /// Processor architectures, as `x86_64`, `arm64`.
    pub architectures: BTreeSet<String>,
    /// Zones of the region in which it is offered.
    pub zones: BTreeSet<String>,
}

/// An IAM instance profile and the role in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceProfile {
    /// Profile name.
    pub name: String,
    /// Profile ARN.
    pub arn: String,
    /// ARN of its role; a profile without a role cannot start a node.
    pub role_arn: Option<String>,
}

/// A Kubernetes node of an instance group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Node name.
    pub name: String,
    /// Id of the EC2 instance behind it, from `spec.providerID`.
    pub instance_id: String,
    /// Whether the Ready condition is True.
    pub ready: bool,
    /// Value of the node's image label, which it registered with.
    pub image_label: Option<String>,
    /// Whether new pods are kept away from it (`spec.unschedulable`), by whomever.
    pub cordoned: bool,
    /// Whether it carries our taint that asks the scheduler to prefer other nodes.
    pub avoided: bool,
    /// What a rollout noted on it.
    pub record: Option<NodeRecord>,
}

/// The most recent scaling activity that failed, in AWS's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedActivity {
    /// When it started.
    pub at: Timestamp,
    /// The status message: capacity, quota, key, image.
    pub message: String,
}
