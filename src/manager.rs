//! The composition root: clients, stores, pollers, controllers, admin server, supervision.
//!
//! Owns how the parts are put together and in which order they start and stop. A task that ends without being asked to
//! ends the process with an error: a half-working operator is worse than a restarted one. Must not decide anything
//! about groups.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use futures::StreamExt;
use futures::channel::mpsc;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::admin::{self, Readiness};
use crate::aws::catalogue::{Catalogue, ChangedImage};
use crate::aws::clusters::Clusters;
use crate::aws::inventory::{ChangedName, Inventory};
use crate::aws::lookups::Lookups;
use crate::aws::{Connection, ConnectionSettings};
use crate::cli::RunArguments;
use crate::clock;
use crate::cluster::events::Publisher;
use crate::cluster::groups::GroupWriter;
use crate::cluster::nodes::{self, NodeIndex};
use crate::cluster::own_writes::OwnWrites;
use crate::cluster::requests::RequestWriter;
use crate::cluster::stores::{WatchState, Watched, trim_metadata};
use crate::controllers::backoff::Backoff;
use crate::controllers::instance_group::context::{Context, GuardedGroup, GuardedRequest, Wakes};
use crate::controllers::instance_group::followers::{Followed, Followers};
use crate::controllers::instance_group::{self, NAME};
use crate::controllers::unreadable::Unreadable;
use crate::metrics::Metrics;

/// Name of the settings `ConfigMap`, as with the peer.
const SETTINGS: &str = "instance-manager";

/// How long what is under way may take to finish; a pod has 30 s.
const GRACE: Duration = Duration::from_secs(20);

/// Tasks by name; the first that ends by itself ends the process.
#[derive(Default)]
struct Tasks {
    set: JoinSet<anyhow::Result<()>>,
    names: HashMap<Id, &'static str>,
}

impl Tasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Waits for the first task to end, whichever way.
    async fn first(&mut self) -> anyhow::Error {
        match self.set.join_next_with_id().await {
            Some(Ok((id, Ok(())))) => anyhow!("task {} ended by itself", self.name(id)),
            Some(Ok((id, Err(error)))) => error.context(format!("task {} failed", self.name(id))),
            Some(Err(error)) => anyhow!("task {} broke off: {error}", self.name(error.id())),
            None => anyhow!("no task is left"),
        }
    }

    /// Waits for a task that was asked to end; all others are simply dropped.
    async fn finished(&mut self, name: &str) -> anyhow::Result<()> {
        let task = async {
            while let Some(ended) = self.set.join_next_with_id().await {
                if ended.is_ok_and(|(id, _)| self.names.get(&id).is_some_and(|ended| *ended == name)) {
                    break;
                }
            }
        };
        let late = tokio::time::timeout(GRACE, task).await.is_err();
        anyhow::ensure!(!late, "{name} did not finish within {} s", GRACE.as_secs());
        Ok(())
    }

    fn name(&self, id: Id) -> &'static str {
        self.names.get(&id).copied().unwrap_or("unknown")
    }
}

/// Runs the operator until it is told to stop.
///
/// # Errors
/// When it cannot start, or a task ends that should not.
pub async fn run(arguments: RunArguments) -> anyhow::Result<()> {
    info!(version = env!("CARGO_PKG_VERSION"), "sluice starts");
    // First of all: whoever is asked to stop while starting has to end well, too.
    let asked_to_stop = asked_to_stop()?;
    known(&arguments.controllers)?;
    let listener = TcpListener::bind(arguments.metrics_addr)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.metrics_addr))?;
    info!(address = %listener.local_addr()?, "health and metrics");
    let client = client(&arguments).await?;
    let mut metrics = Metrics::new();
    let reconciles = metrics.reconciles(NAME);
    let connection = Connection::connect(&ConnectionSettings {
        region: arguments.aws_region.clone(),
        max_attempts: arguments.max_api_retries,
        observer: Some(metrics.aws_observer()),
        ..ConnectionSettings::default()
    })
    .await?;

    let stop = CancellationToken::new();
    let mut tasks = Tasks::default();
    let watches = Watches::default();
    let readiness = watches.readiness();
    let watched_first = watches.states();
    let (sender, wakes) = mpsc::unbounded();
    let (unreadable, untold) = Unreadable::new();
    let context = Arc::new(Context {
        groups: watches.groups.store.clone(),
        requests: watches.requests.store.clone(),
        namespaces: watches.namespaces.store.clone(),
        settings: watches.settings.store.clone(),
        nodes: Arc::new(NodeIndex::default()),
        own_groups: OwnWrites::default(),
        own_requests: OwnWrites::default(),
        group_writer: GroupWriter::new(client.clone()),
        request_writer: RequestWriter::new(client.clone()),
        publisher: Publisher::new(client.clone(), "sluice/instance-group", instance()),
        inventory: Inventory::new(&connection),
        catalogue: Catalogue::new(&connection, arguments.image_poll_interval, Arc::new(clock::now)),
        clusters: Clusters::new(&connection, arguments.image_poll_interval),
        lookups: Lookups::new(&connection),
        connection,
        followers: Followers::default(),
        wakes: Wakes::new(sender),
        kept_versions: arguments.config_retention,
        backoff: Backoff::default(),
        unreadable,
        stop: stop.clone(),
        metrics: reconciles,
    });
    tasks.spawn(
        "admin",
        admin::serve(listener, readiness, Arc::new(metrics), stop.clone()),
    );
    spawn_watches(&mut tasks, &client, &context, &arguments.config_namespace, watches);
    spawn_pollers(&mut tasks, &context, &arguments, &stop);
    tasks.spawn(
        "objects that cannot be read",
        endless(untold.tell(context.publisher.clone())),
    );
    if enabled(&arguments.controllers, NAME) {
        tasks.spawn(
            NAME,
            control(context, wakes, watched_first, arguments.max_workers, stop.clone()),
        );
    }

    tokio::select! {
        ended = tasks.first() => Err(ended),
        () = asked_to_stop => {
            info!("asked to stop: finishing what is under way");
            stop.cancel();
            if enabled(&arguments.controllers, NAME) {
                tasks.finished(NAME).await?;
            }
            info!("sluice stops");
            Ok(())
        }
    }
}

/// Runs the controller of instance groups until asked to stop, and until what is under way then is done.
async fn control(
    context: Arc<Context>,
    wakes: mpsc::UnboundedReceiver<ObjectRef<GuardedGroup>>,
    watched_first: [watch::Receiver<WatchState>; 5],
    workers: u16,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    // No decision before every input was seen once: an empty store is not an empty cluster.
    let all_seen = async {
        for mut state in watched_first {
            state.wait_for(|state| *state == WatchState::Following).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        seen = all_seen => seen?,
    }
    instance_group::run(context, wakes, workers, stop.clone().cancelled_owned()).await;
    stop.cancelled().await;
    Ok(())
}

/// All watches, before they run.
#[derive(Default)]
struct Watches {
    groups: Watched<GuardedGroup>,
    requests: Watched<GuardedRequest>,
    node_watch: Watched<Node>,
    namespaces: Watched<PartialObjectMeta<Namespace>>,
    settings: Watched<ConfigMap>,
}

impl Watches {
    /// What readiness depends on, by what people know it as.
    fn readiness(&self) -> Readiness {
        let names = [
            "instancegroups.instancemgr.keikoproj.io",
            "instancegroupupgraderequests.instancemgr.keikoproj.io",
            "nodes",
            "namespaces",
            "ConfigMap instance-manager",
        ];
        Readiness {
            watches: names.into_iter().zip(self.states()).collect(),
        }
    }

    fn states(&self) -> [watch::Receiver<WatchState>; 5] {
        [
            self.groups.state.clone(),
            self.requests.state.clone(),
            self.node_watch.state.clone(),
            self.namespaces.state.clone(),
            self.settings.state.clone(),
        ]
    }
}

/// Starts the watches; each says which groups a change concerns.
fn spawn_watches(tasks: &mut Tasks, client: &Client, context: &Arc<Context>, config_namespace: &str, watches: Watches) {
    let Watches {
        groups,
        requests,
        node_watch,
        namespaces,
        settings,
    } = watches;
    let shared = Arc::clone(context);
    let touched = move |group: &GuardedGroup, gone: bool| {
        let name = (group.namespace().unwrap_or_default(), group.name_any());
        if gone {
            shared.own_groups.forget(&name.0, &name.1);
            shared.lookups.forget(&group.uid().unwrap_or_default());
            shared.backoff.rested(&format!("{}/{}", name.0, name.1));
            shared.follow(&name, std::collections::BTreeSet::new());
        } else {
            shared.wakes.wake(&name.0, &name.1);
        }
        readable(&shared, group, gone);
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of instance groups",
        endless(groups.follow(api, watcher::Config::default(), trim_metadata, touched, || {})),
    );

    let shared = Arc::clone(context);
    let touched = move |request: &GuardedRequest, gone: bool| {
        let namespace = request.namespace().unwrap_or_default();
        if gone {
            shared.own_requests.forget(&namespace, &request.name_any());
        }
        if let Ok(request) = &request.0 {
            shared.wakes.wake(&namespace, &request.spec.instance_group_ref.name);
        }
        readable(&shared, request, gone);
    };
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of upgrade requests",
        endless(requests.follow(api, watcher::Config::default(), trim_metadata, touched, || {})),
    );

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

    let shared = Arc::clone(context);
    let touched =
        move |namespace: &PartialObjectMeta<Namespace>, _| shared.changed(&Followed::Namespace(namespace.name_any()));
    let api = Api::all(client.clone());
    tasks.spawn(
        "watch of namespaces",
        endless(namespaces.follow(api, watcher::Config::default(), trim_metadata, touched, || {})),
    );

    let shared = Arc::clone(context);
    let touched = move |_: &ConfigMap, _| wake_all(&shared);
    // A list shows what is there; settings that went while nobody looked are missed only so.
    let shared = Arc::clone(context);
    let relisted = move || wake_all(&shared);
    let only = watcher::Config::default().fields(&format!("metadata.name={SETTINGS}"));
    let api = Api::namespaced(client.clone(), config_namespace);
    tasks.spawn(
        "watch of settings",
        endless(settings.follow(api, only, trim_metadata, touched, relisted)),
    );
}

/// Has every group looked at.
fn wake_all(context: &Context) {
    for group in context.groups.state() {
        context
            .wakes
            .wake(&group.namespace().unwrap_or_default(), &group.name_any());
    }
}

/// Tells of an object that cannot be read; all others go on.
fn readable<K: Resource<DynamicType = ()>>(context: &Context, object: &DeserializeGuard<K>, gone: bool) {
    match &object.0 {
        Err(invalid) if !gone => context.unreadable.saw(object.object_ref(&()), &invalid.error),
        _ => context.unreadable.forget(&object.uid().unwrap_or_default()),
    }
}

/// Starts the pollers of AWS, and what hands their changes on.
fn spawn_pollers(tasks: &mut Tasks, context: &Arc<Context>, arguments: &RunArguments, stop: &CancellationToken) {
    let interval = arguments.aws_poll_interval;
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of groups", async move {
        shared.inventory.run_groups(interval, stopped.clone()).await;
        until(&stopped).await
    });
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of templates", async move {
        shared.inventory.run_templates(interval, stopped.clone()).await;
        until(&stopped).await
    });
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of images", async move {
        shared.catalogue.run(stopped.clone()).await;
        until(&stopped).await
    });
    let (shared, stopped) = (Arc::clone(context), stop.clone());
    tasks.spawn("poller of clusters", async move {
        shared.clusters.run(stopped.clone()).await;
        until(&stopped).await
    });
    let shared = Arc::clone(context);
    let mut changes = context.inventory.watch_changes();
    tasks.spawn(
        "changes of groups",
        endless(async move {
            while let Some(change) = changes.next().await {
                shared.changed(&match change {
                    ChangedName::Group(name) => Followed::ScalingGroup(name),
                    ChangedName::Template(name) => Followed::Template(name),
                });
            }
        }),
    );
    let shared = Arc::clone(context);
    let mut changes = context.catalogue.watch_changes();
    tasks.spawn(
        "changes of images",
        endless(async move {
            while let Some(change) = changes.next().await {
                shared.changed(&match change {
                    ChangedImage::Parameter(name) => Followed::Parameter(name),
                    ChangedImage::Image(id) => Followed::Image(id),
                });
            }
        }),
    );
    let shared = Arc::clone(context);
    let mut changes = context.clusters.watch_changes();
    tasks.spawn(
        "changes of clusters",
        endless(async move {
            while let Some(name) = changes.next().await {
                shared.changed(&Followed::Cluster(name));
            }
        }),
    );
}

/// A task that has no end of its own.
async fn endless(task: impl Future<Output = ()>) -> anyhow::Result<()> {
    task.await;
    Ok(())
}

/// Ends well only once it was asked to.
async fn until(stop: &CancellationToken) -> anyhow::Result<()> {
    if stop.is_cancelled() {
        std::future::pending().await
    } else {
        Ok(())
    }
}

/// Whether the flag's list runs a controller: the last entry that speaks of it holds.
fn enabled(list: &[String], name: &str) -> bool {
    list.iter().fold(false, |on, entry| match entry.as_str() {
        "*" => true,
        entry if entry == name => true,
        entry if entry.strip_prefix('-') == Some(name) => false,
        _ => on,
    })
}

/// Refuses a list that names no controller of ours: a slip of the pen must not run nothing in silence.
fn known(list: &[String]) -> anyhow::Result<()> {
    for entry in list {
        let name = entry.strip_prefix('-').unwrap_or(entry);
        anyhow::ensure!(
            ["*", NAME].contains(&name),
            "--controllers: there is no controller {name:?}; there are: {NAME}"
        );
    }
    Ok(())
}

/// Tells replicas apart in Events.
fn instance() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| "sluice".to_owned())
}

/// The client for the API server, by the usual rules.
async fn client(arguments: &RunArguments) -> anyhow::Result<Client> {
    let mut config = match &arguments.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::infer()
            .await
            .context("no way to the API server: not in a cluster and no kubeconfig")?,
    };
    // An API server that cannot be reached is to be noticed, and tried again, within seconds.
    config.connect_timeout = Some(Duration::from_secs(5));
    Ok(Client::try_from(config)?)
}

/// Listens for SIGTERM and SIGINT from now on; what it answers ends with the first of them.
fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_switched_by_name() {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        for (text, on) in [
            ("*", true),
            ("*,-instance-group", false),
            ("-instance-group,*", true),
            ("aws-auth", false),
            ("instance-group", true),
        ] {
            assert_eq!(enabled(&list(text), NAME), on, "{text}");
        }
    }

    #[test]
    fn a_controller_that_does_not_exist_is_refused() {
        for (name, good) in [
            ("*", true),
            ("-instance-group", true),
            ("instance-groups", false),
            ("", false),
        ] {
            assert_eq!(known(&[name.to_owned()]).is_ok(), good, "{name}");
        }
    }
}
