//! Opening a request: what it says.
//!
//! Owns a request's reason, content, name and labels. Must not decide whether one opens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::Resource;
use kube::api::ObjectMeta;

use crate::api::upgrade_request::{
    InstanceGroupRef, InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestSpec, MAX_CHANGES, SsmParameter,
    TargetChange, UpgradeReason, UpgradeSource, UpgradeTarget,
};
use crate::api::{InstanceGroup, PREFIX, UPGRADE_REQUEST_FINALIZER, label};
use crate::plan::launch::changes::changes;
use crate::plan::observed::Observed;
use crate::plan::target::{Target, render_again};

use super::Standing;

/// Whether the target is another Kubernetes minor version than what is approved, and nobody pinned one. Such a step asks
/// even where the group is not locked (gate rule L1).
pub fn is_minor_step(standing: &Standing<'_>, target: &Target) -> bool {
    let approved = &standing.approved.mark.kubernetes_version;
    target.follows_cluster && approved.is_some() && *approved != target.mark.kubernetes_version
}

/// What kind of change the target is.
pub fn reason(observed: &Observed, standing: &Standing<'_>, target: &Target) -> UpgradeReason {
    let approved = &standing.approved;
    let image_differs = approved.image_id.as_ref() != Some(&target.image.id);
    let as_approved = standing.ground.as_ref().ok().zip(approved.image_id.as_deref());
    let spec_differs = !target.removed_subnets.is_empty()
        || as_approved
            .is_none_or(|(ground, image)| render_again(standing.wanted, ground, image, &approved.mark).is_none());
    if is_minor_step(standing, target) {
        // The image is another one in any case; a second one for the same minor is a change of its own.
        let joined = observed.requests.iter().any(|request| {
            let other = &request.spec.target;
            other.kubernetes_version == target.mark.kubernetes_version
                && other.image_id.as_ref() != Some(&target.image.id)
        });
        return if spec_differs || joined {
            UpgradeReason::Multiple
        } else {
            UpgradeReason::KubernetesVersionDrift
        };
    }
    match (image_differs, spec_differs) {
        (true, false) if goes_back(observed, standing, target) => UpgradeReason::ImageRollback,
        (true, true) => UpgradeReason::Multiple,
        (true, false) => UpgradeReason::ImageDrift,
        (false, _) => UpgradeReason::SpecDrift,
    }
}

/// Whether AWS itself went back: the parameter has a value that it had before what runs, and that is older.
fn goes_back(observed: &Observed, standing: &Standing<'_>, target: &Target) -> bool {
    let Some((runs, parameter)) = standing.approved.image_id.as_deref().zip(target.parameter.as_ref()) else {
        return false;
    };
    let history = observed.histories.get(&parameter.name);
    let returned = history.is_some_and(|history| history.went_back(&target.image.id, runs));
    let older = created_at(observed, Some(runs)).zip(target.image.created_at);
    // An image that AWS withdrew may have taken its date along; the parameter's own past tells then.
    returned && older.is_none_or(|(runs, target)| target < runs)
}

/// The request for a target.
pub fn request(
    observed: &Observed,
    standing: &Standing<'_>,
    target: &Target,
    reason: UpgradeReason,
) -> InstanceGroupUpgradeRequest {
    let identity = &standing.wanted.identity;
    let approved = &standing.approved;
    let mut request = InstanceGroupUpgradeRequest::new(
        &identity.request_name(&target.mark.fingerprint, &target.removed_subnets),
        InstanceGroupUpgradeRequestSpec {
            instance_group_ref: InstanceGroupRef {
                name: identity.name.clone(),
                uid: identity.uid.clone(),
            },
            reason,
            from: Some(UpgradeSource {
                fingerprint: Some(approved.mark.fingerprint.clone()),
                image_id: approved.image_id.clone(),
                image_name: approved.image_id.as_ref().and_then(|id| image_name(observed, id)),
                image_created_at: created_at(observed, approved.image_id.as_deref()).map(Time),
                launch_template_version: approved.version.map(|version| version.to_string()),
                kubernetes_version: approved.mark.kubernetes_version.clone(),
            }),
            target: UpgradeTarget {
                fingerprint: target.mark.fingerprint.clone(),
                render_version: Some(target.mark.render_version.clone()),
                image_id: Some(target.image.id.clone()),
                image_name: Some(target.image.name.clone()).filter(|name| !name.is_empty()),
                image_created_at: target.image.created_at.map(Time),
                ssm: target.parameter.as_ref().map(|parameter| SsmParameter {
                    parameter: parameter.name.clone(),
                    version: Some(parameter.version),
                    last_modified: parameter.last_modified.map(Time),
                }),
                kubernetes_version: target.mark.kubernetes_version.clone(),
                removed_subnets: target.removed_subnets.iter().cloned().collect(),
                changes: what_changes(standing, target),
            },
            approved: false,
            denied: false,
            cancelled: false,
            urgent: false,
            approved_by: String::new(),
            decision_reason: String::new(),
        },
    );
    request.metadata = ObjectMeta {
        name: request.metadata.name,
        namespace: Some(identity.namespace.clone()),
        labels: Some(labels(&observed.group, target, reason)),
        owner_references: Some(vec![owner(&observed.group)]),
        finalizers: Some(vec![UPGRADE_REQUEST_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    request
}

fn image_name(observed: &Observed, id: &str) -> Option<String> {
    observed
        .image(id)
        .found()
        .map(|image| image.name.clone())
        .filter(|name| !name.is_empty())
}

/// When an image was made, where that is known.
fn created_at(observed: &Observed, id: Option<&str>) -> Option<Timestamp> {
    observed.image(id?).found()?.created_at
}

/// Marks a request whose target was blocked before and that a person asked for again.
pub fn asks_again(request: &mut InstanceGroupUpgradeRequest) {
    let labels = request.metadata.labels.get_or_insert_default();
    labels.insert(label::ASKED_AGAIN.to_owned(), "true".to_owned());
}

/// What changes, old to new. Where the approved inputs are not at hand, at least the image is named.
fn what_changes(standing: &Standing<'_>, target: &Target) -> Vec<TargetChange> {
    let recorded = standing
        .template
        .found()
        .zip(standing.approved.version)
        .and_then(|(template, version)| template.versions.get(&version))
        .and_then(|version| version.inputs.as_deref());
    let mut list = match recorded {
        Some(inputs) => changes(inputs, &target.inputs),
        None => vec![TargetChange {
            path: "imageId".to_owned(),
            from: standing.approved.image_id.clone(),
            to: Some(target.image.id.clone()),
        }],
    };
    list.truncate(MAX_CHANGES.saturating_sub(target.removed_subnets.len()));
    list.extend(target.removed_subnets.iter().map(|subnet| TargetChange {
        path: "subnets".to_owned(),
        from: Some(subnet.clone()),
        to: None,
    }));
    list
}

/// Labels for `kubectl get -l`: the group's own under our prefix, and what the request is about, which wins.
fn labels(group: &InstanceGroup, target: &Target, reason: UpgradeReason) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = group
        .metadata
        .labels
        .iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // A label value has at most 63 characters; a longer group name is found by field selector instead.
    let name: String = group
        .metadata
        .name
        .clone()
        .unwrap_or_default()
        .chars()
        .take(63)
        .collect();
    labels.insert(
        label::INSTANCE_GROUP.to_owned(),
        name.trim_end_matches(['-', '.', '_']).to_owned(),
    );
    labels.insert(label::REASON.to_owned(), reason.to_string());
    labels.insert(label::IMAGE.to_owned(), target.image.id.clone());
    labels
}

fn owner(group: &InstanceGroup) -> OwnerReference {
    OwnerReference {
        api_version: InstanceGroup::api_version(&()).into_owned(),
        kind: InstanceGroup::kind(&()).into_owned(),
        name: group.metadata.name.clone().unwrap_or_default(),
        uid: group.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
