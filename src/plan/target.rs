//! What a group should run now, and what it is approved to run.
//!
//! Owns drift: the comparison of the two. Must not decide what follows from it; the gate does.

use std::collections::BTreeSet;

use super::facts::{Fact, Image, LaunchSource, Parameter};
use super::image::{ImageSource, image_source, parameter_value, usable};
use super::launch::{Ground, LaunchInputs, RENDER_VERSION, render};
use super::naming::VersionMark;
use super::observed::{Observed, offered};
use super::problem::Problem;
use super::wanted::Wanted;

/// What was last approved for a group: what every new node boots outside a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    /// Its mark: fingerprint, rendering rules and Kubernetes version.
    pub mark: VersionMark,
    /// Number of the template version, once that exists.
    pub version: Option<i64>,
    /// The image it boots.
    pub image_id: Option<String>,
}

impl Approved {
    /// The record in a group's status; `None` when nothing was approved yet, or the status was lost.
    #[must_use]
    pub fn from_status(observed: &Observed) -> Option<Self> {
        let status = observed.group.status.as_ref()?;
        let fingerprint = status.fingerprint.as_ref()?;
        Some(Self {
            mark: VersionMark {
                fingerprint: fingerprint.approved.clone()?,
                render_version: fingerprint
                    .render_version
                    .clone()
                    .unwrap_or_else(|| RENDER_VERSION.to_owned()),
                kubernetes_version: status.image.as_ref().and_then(|image| image.kubernetes_version.clone()),
            },
            version: status
                .launch_template
                .as_ref()
                .and_then(|template| template.approved_version.as_deref())
                .and_then(|version| version.parse().ok()),
            image_id: status.image.as_ref().and_then(|image| image.current.clone()),
        })
    }

    /// The record as AWS holds it: the template's default version, if its description is ours and the Auto
    /// Scaling group boots from that template by number. This survives a lost status.
    #[must_use]
    pub fn from_aws(observed: &Observed) -> Option<Self> {
        let template = observed.template.found()?;
        let group = observed.scaling_group.found()?;
        let LaunchSource::Template {
            id,
            version: super::facts::VersionSelector::Number(_),
            ..
        } = &group.launch_source
        else {
            return None;
        };
        if *id != template.id {
            return None;
        }
        let version = template.versions.get(&template.default_version)?;
        Some(Self {
            mark: VersionMark::parse(&version.description)?,
            version: Some(version.number),
            image_id: Some(version.image_id.clone()),
        })
    }
}

/// What a group should run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Mark of the template version it would become.
    pub mark: VersionMark,
    /// What a new node would get.
    pub inputs: LaunchInputs,
    /// The image.
    pub image: Image,
    /// The parameter that names the image, if one does.
    pub parameter: Option<Parameter>,
    /// Whether the Kubernetes version of the image follows the cluster.
    pub follows_cluster: bool,
    /// Subnets that the Auto Scaling group has and the manifest has not.
    pub removed_subnets: BTreeSet<String>,
}

impl Target {
    /// Whether this is what the group is approved to run, so that there is nothing to do.
    #[must_use]
    pub fn is(&self, approved: &Approved) -> bool {
        self.mark.fingerprint == approved.mark.fingerprint && self.removed_subnets.is_empty()
    }
}

/// Works out what a group should run now.
///
/// # Errors
/// A [`Problem`] when that is unusable or unknown. What is approved already is not judged again: an image that was
/// deprecated later is no reason for a group at rest to complain.
pub fn target(
    observed: &Observed,
    wanted: &Wanted,
    ground: &Ground,
    approved: Option<&Approved>,
) -> Result<Target, Problem> {
    let source = image_source(&observed.group, wanted, &ground.cluster, &ground.instance_type)?;
    let (image_id, parameter, kubernetes_version, follows_cluster) = match source {
        ImageSource::Id(id) => (id, None, None, false),
        ImageSource::Parameter {
            name,
            kubernetes_version,
            follows_cluster,
        } => {
            let parameter = parameter_value(&name, &observed.parameter(&name))?;
            (
                parameter.value.clone(),
                Some(parameter),
                kubernetes_version,
                follows_cluster,
            )
        }
    };
    let removed_subnets = removed_subnets(observed, ground);
    let image = observed.image(&image_id);
    if let Some(approved) = approved {
        // Drift is judged by the rules that the group was approved under.
        let inputs = render(wanted, ground, &image_id, &approved.mark.render_version)?;
        if inputs.fingerprint() == approved.mark.fingerprint && removed_subnets.is_empty() {
            let image = image.found().cloned().unwrap_or_else(|| nameless(&image_id));
            return Ok(Target {
                mark: approved.mark.clone(),
                inputs,
                image,
                parameter,
                follows_cluster,
                removed_subnets,
            });
        }
    }
    let image = usable(
        &image_id,
        &image,
        &ground.instance_type,
        parameter.is_some(),
        observed.now,
    )?;
    offered(ground)?;
    let inputs = render(wanted, ground, &image_id, RENDER_VERSION)?;
    let mark = VersionMark {
        fingerprint: inputs.fingerprint(),
        render_version: RENDER_VERSION.to_owned(),
        kubernetes_version,
    };
    Ok(Target {
        mark,
        inputs,
        image,
        parameter,
        follows_cluster,
        removed_subnets,
    })
}

/// An approved image whose facts are not at hand; its name is only shown.
fn nameless(image_id: &str) -> Image {
    Image {
        id: image_id.to_owned(),
        name: String::new(),
        architecture: String::new(),
        state: String::new(),
        created_at: None,
        deprecated_at: None,
    }
}

/// Subnets that the Auto Scaling group has and the manifest has not.
fn removed_subnets(observed: &Observed, ground: &Ground) -> BTreeSet<String> {
    let wanted: BTreeSet<&str> = ground.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
    match &observed.scaling_group {
        Fact::Found(group) => group
            .subnets
            .iter()
            .filter(|subnet| !wanted.contains(subnet.as_str()))
            .cloned()
            .collect(),
        Fact::NotFound | Fact::Unknown(_) => BTreeSet::new(),
    }
}

/// Renders what was approved before, from the current manifest: the same fingerprint means that the manifest has not
/// moved away from it.
#[must_use]
pub fn render_again(wanted: &Wanted, ground: &Ground, image_id: &str, mark: &VersionMark) -> Option<LaunchInputs> {
    let inputs = render(wanted, ground, image_id, &mark.render_version).ok()?;
    (inputs.fingerprint() == mark.fingerprint).then_some(inputs)
}
