//! Apply: the effects of a plan, in order.
//!
//! Owns the step from an action to a call. Must not decide: an action that fails ends the pass, and the next look decides
//! anew. The log line of each effect is the action's own text.

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use kube::{Resource, ResourceExt};
use tracing::{debug, info};

use super::context::Context;
use crate::api::instance_group::InstanceGroup;
use crate::api::upgrade_request::InstanceGroupUpgradeRequest;
use crate::aws::autoscaling::{GroupChange, NewGroup};
use crate::aws::launch_templates::NewTemplate;
use crate::clock;
use crate::plan::facts::workload::{EvictionKind, PodId};
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::step::{Action, NodeEdit, Notice, RequestMove, RequestRef};

/// How far a pass came.
pub struct Applied {
    /// The group as it is after our own writes on it; `None` when it is gone.
    pub group: Option<InstanceGroup>,
    /// The failure that ended the pass.
    pub failure: Option<Failure>,
    /// The process was asked to end before the last action, or leads no more. The pass is then not reported: the status
    /// would tell of what was not done.
    pub cut_short: bool,
}

/// Carries out actions until one fails, or the process is asked to end or leads no more.
pub async fn apply(
    context: &Context,
    group: &InstanceGroup,
    requests: &[InstanceGroupUpgradeRequest],
    actions: &[Action],
) -> Applied {
    let mut applied = Applied {
        group: Some(group.clone()),
        failure: None,
        cut_short: false,
    };
    let mut rest = actions;
    while let Some(first) = rest.first() {
        if !context.goes_on() {
            applied.cut_short = true;
            break;
        }
        // Many nodes and pods at a time are nothing to one another; everything else is in order.
        let alike = rest.iter().take_while(|action| stands_alone(action)).count().max(1);
        let (now, later) = rest.split_at(alike);
        rest = later;
        let result = if stands_alone(first) {
            at_once(context, now).await
        } else {
            info!(action = %first, "apply");
            one(context, group, requests, &mut applied, first).await
        };
        match result {
            Ok(()) => {}
            Err(failure) if failure.class == FailureClass::NotLeading => {
                applied.cut_short = true;
                break;
            }
            Err(failure) => {
                applied.failure = Some(failure);
                break;
            }
        }
    }
    applied
}

/// Whether an action needs no order among others of its kind.
fn stands_alone(action: &Action) -> bool {
    matches!(action, Action::EditNode { .. } | Action::Evict { .. })
}

/// How many of them run at a time.
const AT_ONCE: usize = 16;

/// Carries out actions that need no order; the first failure counts, once all are over.
async fn at_once(context: &Context, actions: &[Action]) -> Result<(), Failure> {
    let effects: Vec<_> = actions.iter().map(|action| alone(context, action)).collect();
    let results: Vec<Result<(), Failure>> = stream::iter(effects).buffered(AT_ONCE).collect().await;
    results.into_iter().collect()
}

/// One of them. Boxed by name: the compiler cannot tell that many borrowed closures may cross threads.
fn alone<'a>(context: &'a Context, action: &'a Action) -> BoxFuture<'a, Result<(), Failure>> {
    Box::pin(async move {
        info!(action = %action, "apply");
        match action {
            Action::EditNode {
                node,
                instance_id,
                edit,
            } => edit_node(context, node, instance_id, edit).await,
            Action::Evict { pod, .. } => evict(context, pod).await,
            _ => Ok(()),
        }
    })
}

/// Carries out one action.
async fn one(
    context: &Context,
    group: &InstanceGroup,
    requests: &[InstanceGroupUpgradeRequest],
    applied: &mut Applied,
    action: &Action,
) -> Result<(), Failure> {
    match action {
        Action::AddFinalizer | Action::RemoveFinalizer | Action::RemoveAnnotation { .. } => {
            on_group(context, applied, action).await
        }
        Action::OpenRequest(request) => open(context, request).await,
        Action::MoveRequest(step) => move_request(context, requests, step).await,
        Action::ReleaseRequest(request) => release(context, group, request).await,
        Action::RemoveRequest(request) => remove(context, group, request).await,
        Action::TakeSlot => take_slot(context, group),
        _ => not_news(at_aws(context, action).await),
    }
}

/// What we wanted to make is there already: the answer to an earlier attempt was lost. The next look reads it and judges
/// by its tags and content whose it is.
fn not_news(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(failure) if failure.class == FailureClass::AlreadyExists => {
            info!(%failure, "exists already");
            Ok(())
        }
        result => result,
    }
}

/// Writes on the group itself.
async fn on_group(context: &Context, applied: &mut Applied, action: &Action) -> Result<(), Failure> {
    let Some(group) = &applied.group else { return Ok(()) };
    let written = match action {
        Action::AddFinalizer => context.group_writer.finalizer(group, true).await?,
        Action::RemoveAnnotation { key, value } => context.group_writer.remove_annotation(group, key, value).await?,
        _ => {
            match context.group_writer.finalizer(group, false).await {
                Ok(_) => {}
                Err(failure) if failure.class == FailureClass::NotFound => {}
                Err(failure) => return Err(failure),
            }
            context.own_groups.removed(
                &group.namespace().unwrap_or_default(),
                &group.name_any(),
                &group.uid().unwrap_or_default(),
            );
            applied.group = None;
            return Ok(());
        }
    };
    applied.group = Some(context.own_groups.wrote(written).as_ref().clone());
    Ok(())
}

async fn open(context: &Context, request: &InstanceGroupUpgradeRequest) -> Result<(), Failure> {
    let created = context
        .own_requests
        .wrote(context.request_writer.create(request).await?);
    let from = request
        .spec
        .from
        .as_ref()
        .and_then(|from| from.image_id.as_deref())
        .unwrap_or("-");
    let to = request.spec.target.image_id.as_deref().unwrap_or("-");
    let notice = Notice {
        warning: false,
        reason: "UpgradeRequestOpened",
        message: format!("{}: {} from {from} to {to}", created.name_any(), request.spec.reason),
    };
    context
        .publisher
        .publish(&created.object_ref(&()), &notice, clock::now())
        .await;
    if let Some(owner) = group_of(context, request) {
        context
            .publisher
            .publish(&owner.object_ref(&()), &notice, clock::now())
            .await;
    }
    Ok(())
}

/// The group that owns a request, as watched.
fn group_of(context: &Context, request: &InstanceGroupUpgradeRequest) -> Option<InstanceGroup> {
    let namespace = request.namespace()?;
    let guarded =
        crate::cluster::stores::find(&context.groups, Some(&namespace), &request.spec.instance_group_ref.name)?;
    guarded.0.as_ref().ok().cloned()
}

/// Writes a request's status, then publishes the transition on the request and on its group.
async fn move_request(
    context: &Context,
    requests: &[InstanceGroupUpgradeRequest],
    step: &RequestMove,
) -> Result<(), Failure> {
    let Some(request) = requests
        .iter()
        .find(|request| request.uid().as_deref() == Some(step.request.uid.as_str()))
    else {
        return Ok(());
    };
    let written = context
        .own_requests
        .wrote(context.request_writer.status(request, &step.status).await?);
    if let Some(notice) = &step.notice {
        context
            .publisher
            .publish(&written.object_ref(&()), notice, clock::now())
            .await;
        if let Some(owner) = group_of(context, &written) {
            context
                .publisher
                .publish(&owner.object_ref(&()), notice, clock::now())
                .await;
        }
    }
    Ok(())
}

/// Changes a Node. One that is gone needs no change; the next look sees that.
async fn edit_node(context: &Context, node: &str, instance_id: &str, edit: &NodeEdit) -> Result<(), Failure> {
    match context.node_writer.edit(node, instance_id, edit).await {
        Ok(written) => {
            context.nodes.touched(&written, false);
            Ok(())
        }
        Err(failure) if failure.class == FailureClass::NotFound => {
            info!(%failure, "the node is gone");
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// Asks a pod to go. A refusal is an answer for the next look, not a failure of this one; only a lost lease ends the pass.
async fn evict(context: &Context, pod: &PodId) -> Result<(), Failure> {
    let kind = context.evictions.evict(pod).await;
    debug!(%pod, answer = ?kind, "eviction");
    match kind {
        EvictionKind::Failed(failure) if failure.class == FailureClass::NotLeading => Err(failure),
        kind => {
            context.answers.keep(&pod.uid, kind, clock::now());
            Ok(())
        }
    }
}

/// Takes a slot, if nobody was faster.
fn take_slot(context: &Context, group: &InstanceGroup) -> Result<(), Failure> {
    let name = (group.namespace().unwrap_or_default(), group.name_any());
    let in_force = context.settings.now();
    if context.slots.take(&name, context.schedule(&in_force, group).into()) {
        return Ok(());
    }
    Err(Failure {
        class: FailureClass::Busy,
        action: "kubernetes:slots".to_owned(),
        code: None,
        message: "another group took the last slot for rollouts".to_owned(),
    })
}

async fn release(context: &Context, group: &InstanceGroup, request: &RequestRef) -> Result<(), Failure> {
    let namespace = group.namespace().unwrap_or_default();
    context.request_writer.release(&namespace, request).await?;
    context.own_requests.removed(&namespace, &request.name, &request.uid);
    Ok(())
}

async fn remove(context: &Context, group: &InstanceGroup, request: &RequestRef) -> Result<(), Failure> {
    let namespace = group.namespace().unwrap_or_default();
    context.request_writer.remove(&namespace, request).await?;
    context.own_requests.removed(&namespace, &request.name, &request.uid);
    Ok(())
}

/// Writes at AWS.
async fn at_aws(context: &Context, action: &Action) -> Result<(), Failure> {
    let aws = &context.connection;
    match action {
        Action::CreateTemplate {
            name,
            mark,
            inputs,
            token,
            tags,
        } => {
            let new = NewTemplate {
                name: name.clone(),
                description: mark.describe(),
                client_token: token.clone(),
                inputs,
                tags: tags.clone(),
            };
            aws.create_launch_template(&new).await.map(drop)
        }
        Action::CreateVersion {
            template_id,
            mark,
            inputs,
            token,
        } => aws
            .create_template_version(template_id, &mark.describe(), token, inputs)
            .await
            .map(drop),
        Action::SetDefaultVersion { template_id, number } => aws.set_default_version(template_id, *number).await,
        Action::DeleteVersions { template_id, numbers } => aws.delete_template_versions(template_id, numbers).await,
        Action::CreateGroup {
            name,
            template_id,
            version,
            min_size,
            max_size,
            subnets,
            tags,
        } => {
            let new = NewGroup {
                name: name.clone(),
                template_id: template_id.clone(),
                version: *version,
                min: *min_size,
                max: *max_size,
                subnets: subnets.clone(),
                tags: tags.clone(),
            };
            aws.create_group(&new).await
        }
        Action::UpdateGroup { name, change } => {
            let change = GroupChange {
                min: change.sizes.map(|(min, _)| min),
                max: change.sizes.map(|(_, max)| max),
                subnets: change.subnets.clone(),
                pin: change.pin.clone(),
            };
            aws.update_group(name, &change).await
        }
        Action::PutTags { name, tags } => aws.put_group_tags(name, tags).await,
        Action::DeleteTags { name, keys } => aws.delete_group_tags(name, keys).await,
        Action::Terminate {
            group,
            instance_id,
            shrink,
        } => {
            aws.terminate_instance(group, instance_id, *shrink).await?;
            context.terminations.terminated(instance_id);
            Ok(())
        }
        Action::SuspendProcess { group, process } => aws.suspend_processes(group, &[process.clone()].into()).await,
        Action::ResumeProcess { group, process } => aws.resume_processes(group, &[process.clone()].into()).await,
        Action::DeleteGroup { name } => aws.delete_group(name, true).await,
        Action::DeleteTemplate { id } => aws.delete_launch_template(id).await,
        Action::AddFinalizer
        | Action::RemoveFinalizer
        | Action::RemoveAnnotation { .. }
        | Action::OpenRequest(_)
        | Action::MoveRequest(_)
        | Action::ReleaseRequest(_)
        | Action::RemoveRequest(_)
        | Action::EditNode { .. }
        | Action::Evict { .. }
        | Action::TakeSlot => Ok(()),
    }
}
