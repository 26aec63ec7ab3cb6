//! Teardown: a group that is being deleted.
//!
//! Owns the order in which everything of a group goes. Must not need a valid manifest, an image, an instance type or a
//! settings key: deletion always works. Each pass looks at everything anew, so a crash or a failed call anywhere is
//! made up for; the finalizer goes last, and only when everything is known to be gone.

use crate::api::Reason;
use crate::api::instance_group::{CurrentState, InstanceGroup};
use crate::plan::facts::{AutoScalingGroup, Fact, LaunchTemplate};
use crate::plan::naming::{TAG_INSTANCE_GROUP, TAG_NAMESPACE, VersionMark};
use crate::plan::problem::Problem;
use crate::plan::step::{Action, RequestRef};
use crate::plan::wanted::identity;

use super::draft::Draft;
use super::{scaling_group_name, shrink};

/// Plans the next step of a deletion.
pub fn plan(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    // Even where somebody took our finalizer off the group, its requests still carry theirs.
    if !observed.requests.is_empty() {
        for request in &observed.requests {
            let reference = RequestRef::of(request);
            draft.act(if request.metadata.deletion_timestamp.is_some() {
                Action::ReleaseRequest(reference)
            } else {
                Action::RemoveRequest(reference)
            });
        }
        return draft.again();
    }
    let finalizers = observed.group.metadata.finalizers.as_deref().unwrap_or_default();
    if !finalizers
        .iter()
        .any(|finalizer| finalizer == crate::api::INSTANCE_GROUP_FINALIZER)
    {
        return;
    }
    draft.headline(
        CurrentState::Deleting,
        Reason::Deleting,
        "deletes the group's AWS resources",
    );
    if scaling_group_name(&observed.group).is_none() {
        // Without a cluster name nothing could ever be made.
        return draft.act(Action::RemoveFinalizer);
    }
    match &observed.scaling_group {
        Fact::Unknown(failure) => return unknown(draft, &Problem::Unknown(failure.clone())),
        Fact::Found(group) if !is_ours(&observed.group, group) => {
            let message = format!(
                "Auto Scaling group {} does not carry this group's tags: left alone",
                group.name
            );
            draft.notice(true, "NotOurs", message);
            // Two groups can share a name; the template of that name is then no more ours than the group.
            return draft.act(Action::RemoveFinalizer);
        }
        Fact::Found(group) if group.deleting => {
            let message = format!(
                "waits until Auto Scaling group {} and its {} instances are gone",
                group.name,
                group.instances.len()
            );
            draft.headline(CurrentState::Deleting, Reason::ScalingGroupDeleting, &message);
            draft.wait(Reason::ScalingGroupDeleting, &message);
            return draft.look_in(5);
        }
        Fact::Found(group) => {
            if !shrink::drained(draft, group) {
                return;
            }
            draft.notice(
                false,
                "InstanceGroupDeleted",
                format!("deletes Auto Scaling group {} and its instances", group.name),
            );
            draft.act(Action::DeleteGroup {
                name: group.name.clone(),
            });
            return draft.again();
        }
        Fact::NotFound => {}
    }
    match &observed.template {
        Fact::Unknown(failure) => unknown(draft, &Problem::Unknown(failure.clone())),
        Fact::Found(template) if ours(template) => {
            draft.act(Action::DeleteTemplate {
                id: template.id.clone(),
            });
            draft.again();
        }
        Fact::Found(_) | Fact::NotFound => draft.act(Action::RemoveFinalizer),
    }
}

/// Whether the Auto Scaling group is this group's. One that the status recorded as made needs only the tags for namespace and
/// name: the manifest's cluster name may have been edited since, and a deletion must not depend on it.
pub fn is_ours(group: &InstanceGroup, scaling_group: &AutoScalingGroup) -> bool {
    if identity(group).is_some_and(|identity| identity.owns(scaling_group)) {
        return true;
    }
    let recorded = group
        .status
        .as_ref()
        .and_then(|status| status.active_scaling_group_name.as_ref());
    let is = |key: &str, value: &Option<String>| {
        value.is_some() && scaling_group.tags.get(key).map(|tag| &tag.value) == value.as_ref()
    };
    recorded == Some(&scaling_group.name)
        && is(TAG_NAMESPACE, &group.metadata.namespace)
        && is(TAG_INSTANCE_GROUP, &group.metadata.name)
}

/// Whether a template's known versions are ours. Its name alone is no proof.
fn ours(template: &LaunchTemplate) -> bool {
    template
        .versions
        .values()
        .any(|version| VersionMark::parse(&version.description).is_some())
}

/// Something could not be looked up: the finalizer stays.
fn unknown(draft: &mut Draft<'_>, problem: &Problem) {
    let message = format!("cannot see whether anything is left: {problem}");
    draft.condition(problem.condition(), true, problem.reason(), &message);
    draft.headline(CurrentState::Deleting, problem.reason(), &message);
    draft.wait(problem.reason(), &message);
    draft.look_in(30);
}
