//! Report: one status write, then the Events.
//!
//! Owns how a failed effect shows in the status. Must not decide what the status says otherwise; the plan does.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;

use super::apply::Applied;
use super::context::Context;
use crate::api::instance_group::{CurrentState, InstanceGroupStatus};
use crate::api::{ConditionType, set_condition};
use crate::clock;
use crate::plan::Plan;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::problem::{failure_condition, failure_reason};

/// Writes the status if it differs, then publishes the plan's notices.
///
/// # Errors
/// The failure of the write. Notices are not published then: an Event never precedes the state it tells of.
pub async fn report(context: &Context, plan: &Plan, applied: &Applied) -> Result<(), Failure> {
    let mut status = plan.status.clone();
    if let Some(failure) = &applied.failure {
        let before = stored_conditions(applied);
        show(&mut status, &before, failure, clock::now());
    }
    let Some(group) = &applied.group else { return Ok(()) };
    if let Some(written) = context.group_writer.status(group, &status).await? {
        context.own_groups.wrote(written);
    }
    if applied.failure.is_none() {
        for notice in &plan.notices {
            context
                .publisher
                .publish(&group.object_ref(&()), notice, clock::now())
                .await;
        }
    }
    Ok(())
}

/// The conditions that the object holds.
fn stored_conditions(applied: &Applied) -> Vec<Condition> {
    let status = applied.group.as_ref().and_then(|group| group.status.as_ref());
    status.map(|status| status.conditions.clone()).unwrap_or_default()
}

/// Shows a failed effect. A lost race is no news: the next look is a moment away.
fn show(status: &mut InstanceGroupStatus, before: &[Condition], failure: &Failure, now: Timestamp) {
    if failure.class == FailureClass::Busy && failure.action.starts_with("kubernetes:") {
        return;
    }
    let message = failure.to_string();
    let reason = failure_reason(failure.class);
    let condition = |kind: ConditionType, holds: &str| Condition {
        type_: kind.to_string(),
        status: holds.to_owned(),
        reason: reason.to_string(),
        message: message.clone(),
        observed_generation: status.observed_generation,
        last_transition_time: Time(now),
    };
    let shown = [
        condition(failure_condition(failure.class), "True"),
        condition(ConditionType::Ready, "False"),
    ];
    for condition in shown {
        // The plan did not know of the failure and may have dropped or turned the condition; what the object holds counts,
        // or a failure that lasts would look new with every try.
        status.conditions.retain(|planned| planned.type_ != condition.type_);
        status
            .conditions
            .extend(before.iter().find(|stored| stored.type_ == condition.type_).cloned());
        set_condition(&mut status.conditions, condition, now);
    }
    status.current_state = Some(CurrentState::Failed.to_string());
    status.message = Some(message);
}
