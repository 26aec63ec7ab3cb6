//! What one reconcile of an instance group saw.
//!
//! Owns the snapshot that the plan decides on, and the step from look-ups to a ground that can be rendered on. Must
//! not fetch anything; a look-up that was not made is unknown, never absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::evidence::ParameterHistory;
use super::facts::workload::Pod;
use super::facts::{
    AutoScalingGroup, Cluster, Fact, FailedActivity, Failure, FailureClass, Image, InstanceProfile, InstanceType,
    LaunchTemplate, Node, Parameter, Subnet,
};
use super::launch::Ground;
use super::problem::Problem;
use super::settings::{GroupLabels, InForce};
use super::wanted::Wanted;
use crate::api::Reason;
use crate::api::instance_group::InstanceGroup;
use crate::api::upgrade_request::InstanceGroupUpgradeRequest;

/// Everything that the plan for one group may look at.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The time of the look.
    pub now: Timestamp,
    /// The group as read.
    pub group: InstanceGroup,
    /// The namespace's lock annotation, if it has one.
    pub namespace_lock: Option<String>,
    /// How many launch template versions are kept even if nothing needs them.
    pub kept_versions: usize,
    /// The fleet's settings.
    pub settings: Arc<InForce>,
    /// Labels of the group's namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// How far AWS's clock is ahead of ours, where they differ by more than is harmless.
    pub clock_skew: Option<SignedDuration>,
    /// The upgrade requests that name this group.
    pub requests: Vec<InstanceGroupUpgradeRequest>,
    /// The group's Auto Scaling group.
    pub scaling_group: Fact<AutoScalingGroup>,
    /// The group's launch template.
    pub template: Fact<LaunchTemplate>,
    /// What rendering needs.
    pub look_ups: LookUps,
    /// Values of parameters over time, by name.
    pub histories: BTreeMap<String, ParameterHistory>,
    /// SSM parameters by name.
    pub parameters: BTreeMap<String, Fact<Parameter>>,
    /// Images by id.
    pub images: BTreeMap<String, Fact<Image>>,
    /// Calls that fail now although what they told before is still known: shown, and nothing follows from them.
    pub troubles: Vec<Failure>,
    /// Nodes by instance id.
    pub nodes: BTreeMap<String, Node>,
    /// Pods by instance id, of the nodes that the plan before asked about.
    pub pods: BTreeMap<String, Fact<Vec<Pod>>>,
    /// Name of the node that this operator runs on, where it is known.
    pub own_node: Option<String>,
    /// Whether the cluster has a Ready node that takes pods besides that one.
    pub refuge: bool,
    /// Since when the API server vouches for the names of who decides; `None` = it does not, or nobody knows.
    pub vouched_since: Option<Timestamp>,
    /// The fleet's slots for rollouts.
    pub slots: Slots,
    /// The last failed scaling activity, looked up only while instances are missing.
    pub failed_activity: Option<FailedActivity>,
}

/// The fleet's slots for rollouts, as this group sees them (rule R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Whether this group has one.
    pub held: bool,
    /// How many are taken, by anybody.
    pub taken: usize,
    /// How many there are.
    pub all: usize,
    /// How many of the group's schedule are taken, and how many it has, where it has a cap of its own.
    pub of_schedule: Option<(usize, usize)>,
}

/// No labels.
static UNLABELLED: BTreeMap<String, String> = BTreeMap::new();

impl Observed {
    /// The labels that the settings select by.
    #[must_use]
    pub fn labels(&self) -> GroupLabels<'_> {
        GroupLabels {
            namespace: &self.namespace_labels,
            group: self.group.metadata.labels.as_ref().unwrap_or(&UNLABELLED),
        }
    }

    /// Ids of the subnets besides those of the manifest that have to be known: what the Auto Scaling group has, and what a
    /// rollout removed.
    #[must_use]
    pub fn other_subnets(&self) -> BTreeSet<String> {
        let status = self.group.status.as_ref();
        let removed = status.and_then(|status| status.rollout.as_ref());
        let mut ids: BTreeSet<String> = removed
            .iter()
            .flat_map(|record| &record.removed_subnets)
            .cloned()
            .collect();
        ids.extend(
            self.scaling_group
                .found()
                .iter()
                .flat_map(|group| &group.subnets)
                .cloned(),
        );
        let facts = self.look_ups.subnets.values();
        for known in facts.filter_map(Fact::found) {
            ids.remove(&known.id);
        }
        ids
    }

    /// What is known of a subnet by its id.
    #[must_use]
    pub fn subnet(&self, id: &str) -> Fact<Subnet> {
        look(self.look_ups.subnets.get(id), "ec2:DescribeSubnets")
    }

    /// What is known of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Fact<Parameter> {
        self.parameters
            .get(name)
            .cloned()
            .unwrap_or_else(|| Fact::Unknown(not_looked_up("ssm:GetParameters")))
    }

    /// What is known of an image.
    #[must_use]
    pub fn image(&self, id: &str) -> Fact<Image> {
        self.images
            .get(id)
            .cloned()
            .unwrap_or_else(|| Fact::Unknown(not_looked_up("ec2:DescribeImages")))
    }
}

/// The look-ups behind [`Ground`].
#[derive(Clone, Debug)]
pub struct LookUps {
    /// The cluster.
    pub cluster: Fact<Cluster>,
    /// The instance profile.
    pub profile: Fact<InstanceProfile>,
    /// The instance type.
    pub instance_type: Fact<InstanceType>,
    /// Subnets by what the manifest calls them.
    pub subnets: BTreeMap<String, Fact<Subnet>>,
    /// Security group ids by what the manifest calls them.
    pub security_groups: BTreeMap<String, Fact<String>>,
}

impl LookUps {
    /// Nothing looked up yet: all unknown.
    #[must_use]
    pub fn none() -> Self {
        Self {
            cluster: Fact::Unknown(not_looked_up("eks:DescribeCluster")),
            profile: Fact::Unknown(not_looked_up("iam:GetInstanceProfile")),
            instance_type: Fact::Unknown(not_looked_up("ec2:DescribeInstanceTypes")),
            subnets: BTreeMap::new(),
            security_groups: BTreeMap::new(),
        }
    }

    /// The ground that a manifest can be rendered on.
    ///
    /// # Errors
    /// A [`Problem`] naming the first thing that is missing, does not fit, or could not be learned. Nothing is
    /// skipped: a security group that could not be looked up must not vanish from the launch template.
    pub fn ground(&self, wanted: &Wanted) -> Result<Ground, Problem> {
        let path = |field: &str| format!("spec.eks.configuration.{field}");
        let cluster = existing(&self.cluster, &path("clusterName"), &wanted.identity.cluster, "cluster")?;
        let instance_type = existing(
            &self.instance_type,
            &path("instanceType"),
            &wanted.instance_type,
            "instance type",
        )?;
        let profile = existing(
            &self.profile,
            &path("instanceProfileName"),
            &wanted.instance_profile,
            "instance profile",
        )?;
        if profile.role_arn.is_none() {
            return Err(Problem::target(
                Reason::Unusable,
                &path("instanceProfileName"),
                format!(
                    "instance profile {} holds no role; its nodes could not join",
                    profile.name
                ),
            ));
        }
        let mut subnets = BTreeSet::new();
        for reference in &wanted.subnets {
            let fact = look(self.subnets.get(reference), "ec2:DescribeSubnets");
            subnets.insert(existing(&fact, &path("subnets"), reference, "subnet")?);
        }
        let mut security_groups = BTreeSet::new();
        for reference in &wanted.security_groups {
            let fact = look(self.security_groups.get(reference), "ec2:DescribeSecurityGroups");
            security_groups.insert(existing(&fact, &path("securityGroups"), reference, "security group")?);
        }
        Ok(Ground {
            cluster,
            profile,
            instance_type,
            subnets,
            security_groups,
        })
    }
}

/// Checks that the instance type can be had in every zone of the group (gate rule L3).
///
/// # Errors
/// A [`Problem`] naming type and zone.
pub fn offered(ground: &Ground) -> Result<(), Problem> {
    let missing: BTreeSet<&str> = ground
        .subnets
        .iter()
        .map(|subnet| subnet.zone.as_str())
        .filter(|zone| !ground.instance_type.zones.contains(*zone))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let zones: Vec<&str> = missing.into_iter().collect();
    Err(Problem::target(
        Reason::InstanceTypeNotOffered,
        "spec.eks.configuration.instanceType",
        format!("{} is not offered in {}", ground.instance_type.name, zones.join(", ")),
    ))
}

/// The found value, or why there is none.
fn existing<T: Clone>(fact: &Fact<T>, path: &str, name: &str, what: &str) -> Result<T, Problem> {
    match fact {
        Fact::Found(value) => Ok(value.clone()),
        Fact::NotFound => Err(Problem::target(
            Reason::NotFound,
            path,
            format!("{what} {name:?} does not exist"),
        )),
        Fact::Unknown(failure) => Err(Problem::Unknown(failure.clone())),
    }
}

fn look<T: Clone>(fact: Option<&Fact<T>>, action: &str) -> Fact<T> {
    fact.cloned().unwrap_or_else(|| Fact::Unknown(not_looked_up(action)))
}

/// The answer for a look-up that has not been made.
#[must_use]
pub fn not_looked_up(action: &str) -> Failure {
    Failure {
        class: FailureClass::Lagging,
        action: action.to_owned(),
        code: None,
        message: "not looked up yet".to_owned(),
    }
}
