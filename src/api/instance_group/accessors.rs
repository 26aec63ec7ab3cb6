//! Readings of a group that need nothing but the group: annotations, words in any case, sizes.
//!
//! It must not apply defaults of the settings or the operator's flags.

use std::time::Duration;

use strum::{AsRefStr, Display, EnumString, IntoStaticStr};

use super::{EksConfiguration, EksSpec, InstanceGroup, InstanceGroupSpec, RollingUpdate, UpgradeStrategy};
use crate::api::{annotation, parse_duration};

/// Time for draining one node, and for a replacement to become Ready, when the group says nothing.
const DEFAULT_STEP_TIMEOUT: Duration = Duration::from_mins(15);

/// Who makes the nodes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumString, IntoStaticStr)]
#[strum(ascii_case_insensitive, serialize_all = "kebab-case")]
pub enum Provisioner {
    /// An EC2 Auto Scaling group.
    Eks,
    /// A managed node group.
    EksManaged,
    /// A Fargate profile.
    EksFargate,
}

/// How nodes of a group are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsRefStr, Display, EnumString, IntoStaticStr)]
#[strum(ascii_case_insensitive, serialize_all = "camelCase")]
pub enum StrategyKind {
    /// By the operator, some at a time.
    RollingUpdate,
    /// By an object of another controller.
    Crd,
    /// By the provisioner itself.
    Managed,
}

/// What the text of `image` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageReference<'a> {
    /// An AMI id.
    Id(&'a str),
    /// A parameter that EC2 itself would look up at each launch (`resolve:ssm:...`).
    ResolvedByEc2(&'a str),
    /// The newest recommended image of the operating system family.
    Latest,
    /// An id within the EKS parameter path, such as `amazon-eks-node-1.33-v20250101`.
    SsmRelease(&'a str),
    /// The full name of an SSM parameter, with its leading slash.
    SsmParameter(&'a str),
}

impl<'a> ImageReference<'a> {
    /// Reads the text of `image`. `latest` is taken in any case, the prefix `ssm://` is not.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        match text.strip_prefix("ssm://") {
            Some(name) if name.starts_with('/') => Self::SsmParameter(name),
            Some(release) => Self::SsmRelease(release),
            None if text.starts_with("resolve:ssm:") => Self::ResolvedByEc2(text),
            None if text.eq_ignore_ascii_case("latest") => Self::Latest,
            None => Self::Id(text),
        }
    }

    /// Whether the image behind the text can change without an edit.
    #[must_use]
    pub fn is_moving(self) -> bool {
        !matches!(self, Self::Id(_))
    }
}

impl InstanceGroup {
    /// Whether the user data holds a nodeadm document; only Amazon Linux 2023 reads one, so it names the family.
    #[must_use]
    pub fn has_node_config(&self) -> bool {
        let stages = self.spec.eks.iter().flat_map(|eks| &eks.configuration.user_data);
        stages
            .into_iter()
            .any(|stage| stage.stage.eq_ignore_ascii_case("NodeConfigYaml"))
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of the annotation that locks this group's upgrades, as written.
    #[must_use]
    pub fn lock_annotation(&self) -> Option<&str> {
        self.annotation(annotation::LOCK_UPGRADES)
    }

    /// Whether that annotation locks the group: every value but `false` does.
    #[must_use]
    pub fn is_locked_by_annotation(&self) -> bool {
        self.lock_annotation()
            .is_some_and(|value| !value.eq_ignore_ascii_case("false"))
    }

    /// Whether the group is being deleted.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl InstanceGroupSpec {
    /// The provisioner, if it is given and known.
    #[must_use]
    pub fn provisioner_kind(&self) -> Option<Provisioner> {
        self.provisioner.as_deref()?.parse().ok()
    }

    /// The strategy; `rollingUpdate` when none is given, nothing when the word is not known.
    #[must_use]
    pub fn strategy_kind(&self) -> Option<StrategyKind> {
        self.strategy
            .as_ref()
            .map_or(Some(StrategyKind::RollingUpdate), UpgradeStrategy::kind)
    }
}

impl UpgradeStrategy {
    /// The strategy; `rollingUpdate` when none is given, nothing when the word is not known.
    #[must_use]
    pub fn kind(&self) -> Option<StrategyKind> {
        match self.type_.as_deref() {
            None => Some(StrategyKind::RollingUpdate),
            Some(word) => word.parse().ok(),
        }
    }
}

impl RollingUpdate {
    /// Time that draining one node may take; 15 minutes when absent or not readable.
    #[must_use]
    pub fn effective_drain_timeout(&self) -> Duration {
        timeout(self.drain_timeout.as_deref())
    }

    /// Time in which a replacement must be Ready; 15 minutes when absent or not readable.
    #[must_use]
    pub fn effective_ready_timeout(&self) -> Duration {
        timeout(self.ready_timeout.as_deref())
    }

    /// Whether pods that no controller would make anew may be evicted; not when absent.
    #[must_use]
    pub fn may_delete_bare_pods(&self) -> bool {
        self.delete_bare_pods.unwrap_or(false)
    }

    /// Whether nodes are drained when the group is deleted; they are when absent.
    #[must_use]
    pub fn drains_on_delete(&self) -> bool {
        self.drain_on_delete.unwrap_or(true)
    }
}

/// A step's time limit.
fn timeout(text: Option<&str>) -> Duration {
    text.and_then(parse_duration).unwrap_or(DEFAULT_STEP_TIMEOUT)
}

impl EksConfiguration {
    /// What the text of `image` means, if there is one.
    #[must_use]
    pub fn image_reference(&self) -> Option<ImageReference<'_>> {
        self.image.as_deref().map(ImageReference::parse)
    }
}

impl EksSpec {
    /// Fewest nodes; 0 when absent.
    #[must_use]
    pub fn effective_min(&self) -> i64 {
        self.min_size.unwrap_or(0)
    }

    /// Most nodes; 0 when absent.
    #[must_use]
    pub fn effective_max(&self) -> i64 {
        self.max_size.unwrap_or(0)
    }
}
