//! The watches, and which groups a change concerns.
//!
//! Owns one reflector for each kind. Must not decide what a woken group does.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::watch;

use super::approver;
use super::tasks::{Tasks, endless};
use crate::admin::Readiness;
use crate::cluster::stores::{WatchState, Watched, find, trim_metadata};
use crate::cluster::{budgets, nodes, requests as kept_requests};
use crate::controllers::auto_approver::context::Context as ApproverContext;
use crate::controllers::instance_group::context::{Context, GuardedGroup, GuardedRequest};
use crate::controllers::instance_group::followers::Followed;
use crate::controllers::instance_group::orphans;

/// Name of the settings `ConfigMap`, as with the peer.
const SETTINGS: &str = "instance-manager";

/// All watches, before they run.
pub struct Watches {
    /// Instance groups.
    pub groups: Watched<GuardedGroup>,
    /// Upgrade requests.
    pub requests: Watched<GuardedRequest>,
    /// Nodes, trimmed.
    pub nodes: Watched<Node>,
    /// Budgets of pods, trimmed.
    pub budgets: Watched<PodDisruptionBudget>,
    /// Namespaces, metadata only.
    pub namespaces: Watched<PartialObjectMeta<Namespace>>,
    /// The settings.
    pub settings: Watched<ConfigMap>,
}

/// Who is told of changes.
#[derive(Clone)]
pub struct Hearers {
    /// The controller of groups.
    pub groups: Arc<Context>,
    /// The auto-approver, where it runs.
    pub approver: Option<Arc<ApproverContext>>,
}

impl Watches {
    /// Stores that nothing fills yet.
    pub fn new() -> Self {
        Self {
            groups: Watched::new(),
            requests: Watched::new(),
            nodes: Watched::new(),
            budgets: Watched::new(),
            namespaces: Watched::new(),
            settings: Watched::new(),
        }
    }

    /// How each watch is doing.
    pub fn states(&self) -> Vec<watch::Receiver<WatchState>> {
        self.readiness().watches.into_iter().map(|(_, state)| state).collect()
    }

    /// The same with names, for readiness.
    pub fn readiness(&self) -> Readiness {
        Readiness {
            watches: vec![
                ("instancegroups.instancemgr.keikoproj.io", self.groups.state.clone()),
                (
                    "instancegroupupgraderequests.instancemgr.keikoproj.io",
                    self.requests.state.clone(),
                ),
                ("nodes", self.nodes.state.clone()),
                ("poddisruptionbudgets.policy", self.budgets.state.clone()),
                ("namespaces", self.namespaces.state.clone()),
                ("ConfigMap instance-manager", self.settings.state.clone()),
            ],
        }
    }

    /// Starts them; each says which groups a change concerns.
    pub fn spawn(self, tasks: &mut Tasks, client: &Client, hearers: &Hearers, config_namespace: &str) {
        let context = &hearers.groups;
        let groups = self.groups.state.clone();
        watch_groups(tasks, client, hearers, self.groups);
        watch_requests(tasks, client, hearers, self.requests, groups);
        watch_nodes(tasks, client, context, self.nodes);
        watch_budgets(tasks, client, context, self.budgets);
        watch_namespaces(tasks, client, hearers, self.namespaces);
        watch_settings(tasks, client, context, config_namespace, self.settings);
    }
}

fn watch_groups(tasks: &mut Tasks, client: &Client, hearers: &Hearers, groups: Watched<GuardedGroup>) {
    let context = &hearers.groups;
    let (shared, approver) = (Arc::clone(context), hearers.approver.clone());
    let touched = move |guarded: &GuardedGroup, gone: bool| {
        let name = (guarded.namespace().unwrap_or_default(), guarded.name_any());
        if let (Some(approver), Ok(group)) = (&approver, &guarded.0) {
            approver::group_touched(approver, group, gone);
        }
        match &guarded.0 {
            Ok(group) if gone => {
                shared.own_groups.forget(group);
                shared.upgrades.overdue(&format!("{}/{}", name.0, name.1), false);
                shared.lookups.forget(&group.uid().unwrap_or_default());
                shared.backoff.rested(&format!("{}/{}", name.0, name.1));
                shared.follow(&name, BTreeSet::new());
                if shared.slots.release(&name) {
                    shared.slot_freed();
                }
            }
            // Our own status write coming back must not cut a pause after a failure short.
            Ok(group) if shared.own_groups.covers(group) => {}
            Ok(_) | Err(_) => shared.wakes.wake(&name.0, &name.1),
        }
        readable(&shared, guarded, gone);
    };
    // While a list comes in, the store still holds the one before; only at its end everything can be looked at.
    let (shared, store) = (Arc::clone(context), groups.store.clone());
    let approver = hearers.approver.clone();
    let relisted = move || {
        approver::relisted(approver.as_deref());
        shared
            .own_groups
            .retain(|namespace, name| find(&store, Some(namespace), name).is_some());
        shared.wake_all();
        orphans::look_at_all(&shared);
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of instance groups",
        endless(groups.follow(api, watcher::Config::default(), trim_metadata, touched, relisted)),
    );
}

fn watch_requests(
    tasks: &mut Tasks,
    client: &Client,
    hearers: &Hearers,
    requests: Watched<GuardedRequest>,
    groups: watch::Receiver<WatchState>,
) {
    let context = &hearers.groups;
    let (shared, approver) = (Arc::clone(context), hearers.approver.clone());
    let groups_state = groups.clone();
    let touched = move |guarded: &GuardedRequest, gone: bool| {
        let namespace = guarded.namespace().unwrap_or_default();
        if let Some(approver) = &approver {
            approver::request_touched(approver, guarded);
        }
        if let Ok(request) = &guarded.0 {
            if gone {
                shared.own_requests.forget(request);
            }
            if gone || !shared.own_requests.covers(request) {
                shared.wakes.wake(&namespace, &request.spec.instance_group_ref.name);
            }
            if !gone && *groups.borrow() == WatchState::Following {
                orphans::look(&shared, request);
            }
        }
        readable(&shared, guarded, gone);
    };
    let (shared, store) = (Arc::clone(context), requests.store.clone());
    let approver = hearers.approver.clone();
    let relisted = move || {
        approver::relisted(approver.as_deref());
        shared
            .own_requests
            .retain(|namespace, name| find(&store, Some(namespace), name).is_some());
        shared.wake_all();
        if *groups_state.borrow() == WatchState::Following {
            orphans::look_at_all(&shared);
        }
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of upgrade requests",
        endless(requests.follow(api, watcher::Config::default(), kept_requests::trim, touched, relisted)),
    );
}

fn watch_nodes(tasks: &mut Tasks, client: &Client, context: &Arc<Context>, node_watch: Watched<Node>) {
    let shared = Arc::clone(context);
    let touched = move |node: &Node, gone: bool| {
        let Some(instance) = shared.nodes.touched(node, gone) else {
            return;
        };
        match shared.inventory.group_of_instance(&instance) {
            Some(group) => shared.changed(&Followed::ScalingGroup(group)),
            // Too new for the snapshot: one of the groups that wait for nodes.
            None => shared.changed(&Followed::Motion),
        }
    };
    let (shared, store) = (Arc::clone(context), node_watch.store.clone());
    let relisted = move || {
        let all = store.state();
        shared.nodes.replace(all.iter().map(AsRef::as_ref));
        shared.changed(&Followed::Motion);
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of nodes",
        endless(node_watch.follow(api, watcher::Config::default(), nodes::trim, touched, relisted)),
    );
}

fn watch_budgets(
    tasks: &mut Tasks,
    client: &Client,
    context: &Arc<Context>,
    budget_watch: Watched<PodDisruptionBudget>,
) {
    let shared = Arc::clone(context);
    let touched = move |budget: &PodDisruptionBudget, gone: bool| {
        if shared.budgets.touched(budget, gone) {
            shared.changed(&Followed::Budgets);
        }
    };
    let (shared, store) = (Arc::clone(context), budget_watch.store.clone());
    let relisted = move || {
        let all = store.state();
        shared.budgets.replace(all.iter().map(AsRef::as_ref));
        shared.changed(&Followed::Budgets);
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of budgets",
        endless(budget_watch.follow(api, watcher::Config::default(), budgets::trim, touched, relisted)),
    );
}

fn watch_namespaces(
    tasks: &mut Tasks,
    client: &Client,
    hearers: &Hearers,
    namespaces: Watched<PartialObjectMeta<Namespace>>,
) {
    let context = &hearers.groups;
    let (shared, approver) = (Arc::clone(context), hearers.approver.clone());
    let touched = move |namespace: &PartialObjectMeta<Namespace>, _| {
        shared.changed(&Followed::Namespace(namespace.name_any()));
        if let Some(approver) = &approver {
            approver::namespace_touched(approver, namespace);
        }
    };
    let (shared, approver) = (Arc::clone(context), hearers.approver.clone());
    let relisted = move || {
        approver::relisted(approver.as_deref());
        shared.wake_all();
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of namespaces",
        endless(namespaces.follow(api, watcher::Config::default(), trim_metadata, touched, relisted)),
    );
}

fn watch_settings(
    tasks: &mut Tasks,
    client: &Client,
    context: &Arc<Context>,
    config_namespace: &str,
    settings: Watched<ConfigMap>,
) {
    let shared = Arc::clone(context);
    let touched = move |settings: &ConfigMap, gone: bool| take_over(&shared, Some(settings).filter(|_| !gone));
    // A list shows what is there; settings that went while nobody looked are missed only so.
    let (shared, store) = (Arc::clone(context), settings.store.clone());
    let relisted = move || take_over(&shared, store.state().first().map(AsRef::as_ref));
    let only = watcher::Config::default().fields(&format!("metadata.name={SETTINGS}"));
    let api = Api::namespaced(client.clone(), config_namespace);
    tasks.spawn(
        "watch of settings",
        endless(settings.follow(api, only, trim_metadata, touched, relisted)),
    );
}

/// Settings that are different concern every group.
fn take_over(context: &Context, settings: Option<&ConfigMap>) {
    if context.settings.saw(settings) {
        let in_force = context.settings.now();
        let cap = in_force.binding().and_then(|settings| settings.max_concurrent_rollouts);
        context.slots.allow(cap);
        context.wake_all();
    }
}

/// Tells of an object that cannot be read; all others go on.
fn readable<K: Resource<DynamicType = ()>>(context: &Context, object: &DeserializeGuard<K>, gone: bool) {
    match &object.0 {
        Err(invalid) if !gone => context.unreadable.saw(object.object_ref(&()), &invalid.error),
        _ => context.unreadable.forget(&object.uid().unwrap_or_default()),
    }
}
