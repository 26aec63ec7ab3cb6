//! The plan for one instance group: what to do next, in a fixed order.
//!
//! Owns the order: hands off what is not understood, then deletion, creation, upkeep, the gate, the rollout. Each step is
//! a file of its own. Must not touch anything: facts and the time come in, a [`Plan`] goes out.

mod aging;
mod creation;
mod draft;
mod gate;
mod let_go;
mod lock;
mod opening;
mod records;
mod requests;
mod rollout;
mod settings;
mod shrink;
mod teardown;
#[cfg(test)]
mod tests;
mod turn;
mod upkeep;

use crate::api::instance_group::CurrentState;
use crate::api::{ConditionType, Reason};

use super::facts::{AutoScalingGroup, Fact, LaunchTemplate};
use super::launch::Ground;
use super::observed::Observed;
use super::problem::Problem;
use super::settings::Schedule;
use super::step::{Action, Plan};
use super::support::unsupported_fields;
use super::target::{Approved, Target, target};
use super::wanted::{Wanted, identity};
use draft::Draft;

pub use requests::TARGET_REVERTED;
pub use rollout::in_motion;
pub use shrink::resizes;

/// Decides the next steps for a group.
#[must_use]
pub fn plan(observed: &Observed) -> Plan {
    let mut draft = Draft::new(observed);
    if observed.group.is_being_deleted() {
        teardown::plan(&mut draft);
    } else if let Some(wanted) = understood(&mut draft) {
        live(&mut draft, &wanted);
    } else {
        let_go::nodes_in_hand(&mut draft);
    }
    draft.finish()
}

/// Name of the group's Auto Scaling group: the recorded one, else the one it will get.
#[must_use]
pub fn scaling_group_name(observed_group: &crate::api::InstanceGroup) -> Option<String> {
    let recorded = observed_group
        .status
        .as_ref()
        .and_then(|status| status.active_scaling_group_name.clone());
    recorded
        .filter(|name| !name.is_empty())
        .or_else(|| identity(observed_group).map(|identity| identity.scaling_group()))
}

/// Name of the group's launch template: the recorded one, else the one it will get.
#[must_use]
pub fn template_name(observed_group: &crate::api::InstanceGroup) -> Option<String> {
    let recorded = observed_group
        .status
        .as_ref()
        .and_then(|status| status.active_launch_template_name.clone());
    recorded
        .filter(|name| !name.is_empty())
        .or_else(|| identity(observed_group).map(|identity| identity.launch_template()))
}

/// Everything that the later steps share about a group that is understood and exists.
struct Standing<'a> {
    wanted: &'a Wanted,
    ground: Result<Ground, Problem>,
    target: Result<Target, Problem>,
    approved: Approved,
    scaling_group: &'a AutoScalingGroup,
    template: &'a Fact<LaunchTemplate>,
    lock: lock::Lock,
    /// The schedule for the group.
    schedule: Option<&'a Schedule>,
}

/// Parses the manifest, or says that we keep our hands off and why (promise P15).
fn understood(draft: &mut Draft<'_>) -> Option<Wanted> {
    let group = &draft.observed.group;
    let mut paths = unsupported_fields(group);
    let reason = if paths.is_empty() {
        Reason::UnsupportedSetting
    } else {
        Reason::UnsupportedField
    };
    paths.extend(draft.observed.settings.unsupported.iter().cloned());
    let wanted = Wanted::parse(group);
    if paths.is_empty() {
        return match wanted {
            Ok(wanted) => Some(wanted),
            Err(problem) => {
                draft.obstacle(&problem);
                None
            }
        };
    }
    let message = format!(
        "not supported by this version: {}; nothing at AWS is changed until it is removed",
        paths.join(", ")
    );
    draft.condition(ConditionType::Unsupported, true, reason, &message);
    draft.headline(CurrentState::Failed, reason, &message);
    draft.wait(reason, &message);
    None
}

/// A group that lives and is understood.
fn live(draft: &mut Draft<'_>, wanted: &Wanted) {
    let observed = draft.observed;
    let finalizers = observed.group.metadata.finalizers.as_deref().unwrap_or_default();
    if !finalizers
        .iter()
        .any(|finalizer| finalizer == crate::api::INSTANCE_GROUP_FINALIZER)
    {
        draft.act(Action::AddFinalizer);
        draft.again();
        return;
    }
    if let Some(name) = scaling_group_name(&observed.group).filter(|name| *name != wanted.identity.scaling_group()) {
        draft.obstacle(&Problem::invalid(
            "spec.eks.configuration.clusterName",
            &format!("cannot change: Auto Scaling group {name} was made for another cluster; put it back, or make a new group"),
        ));
        return let_go::nodes_in_hand(draft);
    }
    let lock = lock::lock(observed);
    draft.status.lock = Some(lock.status());
    settings::show(draft, &lock);
    draft.status.provisioner = observed.group.spec.provisioner.clone();
    draft.status.strategy = observed.group.spec.strategy_kind().map(|kind| kind.to_string());
    draft.status.lifecycle = Some("normal".to_owned());
    let ground = observed.look_ups.ground(wanted);
    let scaling_group = match &observed.scaling_group {
        Fact::Found(group) => group,
        Fact::NotFound => return creation::plan(draft, wanted, ground),
        Fact::Unknown(failure) => return draft.obstacle(&Problem::Unknown(failure.clone())),
    };
    if !wanted.identity.owns(scaling_group) {
        return hands_off(
            draft,
            &format!(
                "Auto Scaling group {} exists and does not carry this group's tags; rename one of the two",
                scaling_group.name
            ),
        );
    }
    if scaling_group.deleting {
        let message = format!(
            "Auto Scaling group {} is being deleted by somebody; it is made anew when it is gone",
            scaling_group.name
        );
        draft.headline(CurrentState::ReconcileModifying, Reason::ScalingGroupDeleting, &message);
        draft.wait(Reason::ScalingGroupDeleting, &message);
        return draft.look_in(15);
    }
    let Some(approved) = records::approved(draft) else {
        return;
    };
    let target = ground
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|ground| target(observed, wanted, ground, Some(&approved)));
    let standing = Standing {
        wanted,
        ground,
        target,
        approved,
        scaling_group,
        template: &observed.template,
        lock,
        schedule: settings::schedule(observed),
    };
    records::show(draft, &standing);
    for failure in &observed.troubles {
        draft.trouble(failure);
    }
    if upkeep::plan(draft, &standing) {
        gate::plan(draft, &standing);
    }
}

/// An Auto Scaling group that is not ours to touch.
fn hands_off(draft: &mut Draft<'_>, message: &str) {
    draft.condition(ConditionType::Unsupported, true, Reason::NotOurs, message);
    draft.headline(CurrentState::Failed, Reason::NotOurs, message);
    draft.wait(Reason::NotOurs, message);
}
