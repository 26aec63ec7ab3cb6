//! Observe: everything that the plan for one group reads.
//!
//! Owns which look-ups are made, in which order and how fresh. Must not change anything or decide on anything; a look-up that
//! fails is a fact like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DeserializeGuard;

use super::context::Context;
use super::followers::Followed;
use crate::api::annotation;
use crate::api::instance_group::InstanceGroup;
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};
use crate::aws::inventory::Freshness;
use crate::aws::lookups::Asker;
use crate::clock;
use crate::cluster::stores::find;
use crate::plan::facts::workload::Pod;
use crate::plan::facts::{AutoScalingGroup, Fact, FailedActivity, Failure, Image, LaunchTemplate, Node, Parameter};
use crate::plan::group::{in_motion, resizes, scaling_group_name, template_name};
use crate::plan::image::{ImageSource, image_source};
use crate::plan::support::unsupported_fields;
use crate::plan::target::Approved;
use crate::plan::wanted::Wanted;
use crate::plan::{LookUps, Observed};

/// Looks at everything for one group. Also answers what the group follows from now on, as far as the look tells.
pub async fn observe(context: &Context, group: &InstanceGroup) -> (Observed, BTreeSet<Followed>) {
    let mut follows = BTreeSet::new();
    let namespace = group.namespace().unwrap_or_default();
    let group_name = (namespace.clone(), group.name_any());
    follows.insert(Followed::Namespace(namespace.clone()));
    let requests = requests(context, group);
    let settings = context.settings.now();
    let schedule = context.schedule(&settings, group);
    let slots = context.slots.seen_by(&group_name, schedule.into());
    // Who waits for instances must not wait for the next poll as well.
    let waited = context.followers.follows(&group_name, &Followed::Motion);
    let moving = group.is_being_deleted() || waited || in_motion(group, &requests);
    let scaling_group = scaling_group(context, group, moving, &mut follows).await;
    let template = template(context, group, moving, &scaling_group, &mut follows).await;
    let nodes = nodes(context, &scaling_group);
    let pods = pods(context, &nodes);
    let mut observed = Observed {
        now: clock::now(),
        group: group.clone(),
        namespace_lock: namespace_lock(context, &namespace),
        kept_versions: context.kept_versions,
        settings,
        namespace_labels: context.namespace_labels(&namespace),
        clock_skew: context.server_clock.skew(),
        histories: BTreeMap::new(),
        requests,
        nodes,
        troubles: troubles(context),
        pods,
        own_node: context.own_node.clone(),
        refuge: context.nodes.refuge(context.own_node.as_deref()),
        slots,
        vouched_since: context.vouching.since(),
        failed_activity: None,
        scaling_group,
        template,
        look_ups: LookUps::none(),
        parameters: BTreeMap::new(),
        images: BTreeMap::new(),
    };
    let hands_off = !unsupported_fields(group).is_empty() || !observed.settings.unsupported.is_empty();
    if !group.is_being_deleted()
        && !hands_off
        && let Ok(wanted) = Wanted::parse(group)
    {
        look_up(context, &wanted, &mut observed, &mut follows).await;
        observed.failed_activity = failed_activity(context, &observed).await;
    }
    if waits_for_nodes(&observed) {
        follows.insert(Followed::Motion);
    }
    (observed, follows)
}

/// The requests that name this very group, oldest first, each in its newest known state.
fn requests(context: &Context, group: &InstanceGroup) -> Vec<InstanceGroupUpgradeRequest> {
    let ours = |request: &InstanceGroupUpgradeRequest| request.is_about(group);
    let mut seen = BTreeSet::new();
    let mut requests = Vec::new();
    for guarded in context.requests.state() {
        let DeserializeGuard(Ok(request)) = guarded.as_ref() else {
            continue;
        };
        if !ours(request) {
            continue;
        }
        seen.insert(request.name_any());
        requests.extend(
            context
                .own_requests
                .newer(Arc::new(request.clone()))
                .filter(|request| ours(request)),
        );
    }
    requests.extend(context.own_requests.unseen(|_, name| seen.contains(name), ours));
    let mut requests: Vec<InstanceGroupUpgradeRequest> = requests.into_iter().map(Arc::unwrap_or_clone).collect();
    requests.sort_by_key(|request| {
        (
            request.metadata.creation_timestamp.as_ref().map(|time| time.0),
            request.name_any(),
        )
    });
    requests
}

fn namespace_lock(context: &Context, namespace: &str) -> Option<String> {
    find(&context.namespaces, None, namespace)?
        .metadata
        .annotations
        .as_ref()?
        .get(annotation::LOCK_UPGRADES)
        .cloned()
}

async fn scaling_group(
    context: &Context,
    group: &InstanceGroup,
    moving: bool,
    follows: &mut BTreeSet<Followed>,
) -> Fact<AutoScalingGroup> {
    let Some(name) = scaling_group_name(group) else {
        return Fact::NotFound;
    };
    follows.insert(Followed::ScalingGroup(name.clone()));
    let freshness = if moving { Freshness::Fresh } else { Freshness::Snapshot };
    let mut fact = context.inventory.group(&name, freshness).await;
    if !moving && fact.found().is_some_and(|found| resizes(group, found)) {
        fact = context.inventory.group(&name, Freshness::Fresh).await;
    }
    if let Fact::Found(group) = &mut fact {
        context.terminations.show(group);
    }
    fact
}

/// The template: its default version suffices at rest; all versions are read while something moves or differs.
async fn template(
    context: &Context,
    group: &InstanceGroup,
    moving: bool,
    scaling_group: &Fact<AutoScalingGroup>,
    follows: &mut BTreeSet<Followed>,
) -> Fact<LaunchTemplate> {
    let Some(name) = template_name(group) else {
        return Fact::NotFound;
    };
    follows.insert(Followed::Template(name.clone()));
    let complete = moving || scaling_group.found().is_none();
    let template = context.inventory.template(&name, Freshness::Snapshot, complete).await;
    let approved = group
        .status
        .as_ref()
        .and_then(|status| status.launch_template.as_ref())
        .and_then(|record| record.approved_version.as_deref())
        .and_then(|version| version.parse::<i64>().ok());
    match &template {
        Fact::Found(found) if !found.complete && approved.is_some_and(|version| version != found.default_version) => {
            context.inventory.template(&name, Freshness::Snapshot, true).await
        }
        _ => template,
    }
}

fn nodes(context: &Context, scaling_group: &Fact<AutoScalingGroup>) -> BTreeMap<String, Node> {
    let instances = scaling_group
        .found()
        .map(|group| group.instances.as_slice())
        .unwrap_or_default();
    instances
        .iter()
        .filter_map(|instance| Some((instance.id.clone(), context.nodes.on(&instance.id)?)))
        .collect()
}

/// The pods of those nodes that the plan before asked about, with how our evictions of them were answered.
fn pods(context: &Context, nodes: &BTreeMap<String, Node>) -> BTreeMap<String, Fact<Vec<Pod>>> {
    let watched = context.pods.nodes();
    let asked_about = nodes.iter().filter(|(_, node)| watched.contains(&node.name));
    asked_about
        .map(|(instance, node)| {
            let pods = context.pods.facts(&node.name, &context.budgets);
            let with_answers = pods.map(|mut pods| {
                for pod in &mut pods {
                    pod.answer = context.answers.of(&pod.id.uid);
                }
                pods
            });
            (instance.clone(), with_answers)
        })
        .collect()
}

/// Looks up what rendering needs, then the image.
async fn look_up(context: &Context, wanted: &Wanted, observed: &mut Observed, follows: &mut BTreeSet<Followed>) {
    follows.insert(Followed::Cluster(wanted.identity.cluster.clone()));
    let asker = Asker {
        group: &wanted.identity.uid,
        generation: observed.group.metadata.generation.unwrap_or_default(),
    };
    let cluster = context.clusters.cluster(&wanted.identity.cluster).await;
    let (profile, instance_type) = tokio::join!(
        context.lookups.instance_profile(asker, &wanted.instance_profile),
        context.lookups.instance_type(asker, &wanted.instance_type),
    );
    observed.look_ups.profile = profile;
    observed.look_ups.instance_type = instance_type;
    observed.look_ups.cluster = cluster;
    let Fact::Found(cluster) = observed.look_ups.cluster.clone() else {
        return;
    };
    let (subnets, security_groups) = tokio::join!(
        context.lookups.subnets(asker, &cluster.vpc_id, &wanted.subnets),
        context
            .lookups
            .security_groups(asker, &cluster.vpc_id, &wanted.security_groups),
    );
    observed.look_ups.subnets = subnets;
    observed.look_ups.security_groups = security_groups;
    let others = observed.other_subnets();
    if !others.is_empty() {
        let others = context.lookups.subnets(asker, &cluster.vpc_id, &others).await;
        observed.look_ups.subnets.extend(others);
    }
    let Fact::Found(instance_type) = observed.look_ups.instance_type.clone() else {
        return;
    };
    let mut images: BTreeSet<String> = BTreeSet::new();
    match image_source(&observed.group, wanted, &cluster, &instance_type) {
        Ok(ImageSource::Id(id)) => {
            images.insert(id);
        }
        Ok(ImageSource::Parameter { name, .. }) => {
            follows.insert(Followed::Parameter(name.clone()));
            let parameter = context.catalogue.parameter(&name).await;
            if parameter.found().is_some() {
                observed.troubles.extend(context.catalogue.parameter_failure(&name));
            }
            if let Fact::Found(Parameter { value, .. }) = &parameter {
                images.insert(value.clone());
            }
            observed
                .histories
                .extend(context.catalogue.history(&name).map(|history| (name.clone(), history)));
            observed.parameters.insert(name, parameter);
        }
        Err(_) => {}
    }
    let status = observed.group.status.as_ref();
    let open = observed.requests.iter().filter(|request| !request.is_terminal());
    images.extend(open.filter_map(|request| request.spec.target.image_id.clone()));
    images.extend(status.and_then(|status| status.image.as_ref()?.current.clone()));
    images.extend(status.and_then(|status| status.rollout.as_ref()?.image_id.clone()));
    for id in images.into_iter().filter(|id| id.starts_with("ami-")) {
        follows.insert(Followed::Image(id.clone()));
        let image: Fact<Image> = context.catalogue.image(&id).await;
        observed.images.insert(id, image);
    }
    look_again_before_a_claim(context, observed).await;
}

/// An approved image is looked at once more just before the claim: what was learned a poll ago may be gone.
async fn look_again_before_a_claim(context: &Context, observed: &mut Observed) {
    let approved = observed
        .requests
        .iter()
        .filter(|request| request.spec.approved && matches!(request.phase(), Phase::Pending | Phase::Approved));
    let ids: Vec<String> = approved
        .filter_map(|request| request.spec.target.image_id.clone())
        .collect();
    // Without a slot there is no claim yet: a thousand that wait for one make no call.
    if ids.is_empty() || !observed.slots.held {
        return;
    }
    let answer = context.connection.images(&ids).await;
    for id in ids {
        let fact = match &answer {
            Ok(found) => found.get(&id).cloned().map_or(Fact::NotFound, Fact::Found),
            Err(failure) => Fact::Unknown(failure.clone()),
        };
        observed.images.insert(id, fact);
    }
}

/// Reads what the approved template version gives a node. If that fails, the request only names the image.
pub async fn add_approved_inputs(context: &Context, observed: &mut Observed) {
    let Some(approved) = Approved::from_status(observed).and_then(|approved| approved.version) else {
        return;
    };
    let Fact::Found(template) = &mut observed.template else {
        return;
    };
    if let Fact::Found(version) = context.connection.template_version(&template.id, approved).await {
        template.versions.insert(approved, version);
    }
}

/// The polls that fail now.
fn troubles(context: &Context) -> Vec<Failure> {
    let polls = [context.inventory.groups_health(), context.inventory.templates_health()];
    polls.into_iter().filter_map(|health| health.failure).collect()
}

/// Asks why no instance comes, only while fewer are there than wanted.
async fn failed_activity(context: &Context, observed: &Observed) -> Option<FailedActivity> {
    let group = observed.scaling_group.found()?;
    let present = group
        .instances
        .iter()
        .filter(|instance| !instance.terminating())
        .count();
    if i32::try_from(present).is_ok_and(|present| present >= group.desired_capacity) {
        return None;
    }
    // Failing to learn the reason must not hide that nodes are missing.
    context
        .connection
        .latest_failed_activity(&group.name)
        .await
        .ok()
        .flatten()
}

/// Whether nodes or instances of the group are still to come.
fn waits_for_nodes(observed: &Observed) -> bool {
    observed.scaling_group.found().is_none_or(|group| {
        let ready = group
            .instances
            .iter()
            .filter(|instance| observed.nodes.get(&instance.id).is_some_and(|node| node.ready))
            .count();
        i32::try_from(ready) != Ok(group.desired_capacity) || ready != group.instances.len()
    })
}
