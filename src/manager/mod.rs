//! The composition root: clients, stores, pollers, controllers, admin server, supervision.
//!
//! Owns how the parts are put together and in which order they start and stop: health before the election, reconciles only
//! while leading, the Lease given back last. A task that ends without being asked to ends the process with an error: a half-working operator is worse than a restarted one. Must not decide anything
//! about groups.

mod approver;
mod election;
mod evidence;
mod pollers;
mod tasks;
mod watches;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use futures::channel::mpsc::{self, UnboundedReceiver};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::ObjectRef;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::admin;
use crate::aws::catalogue::Catalogue;
use crate::aws::clusters::Clusters;
use crate::aws::inventory::Inventory;
use crate::aws::lookups::Lookups;
use crate::aws::server_clock::OverheardClock;
use crate::aws::{Connection, ConnectionSettings};
use crate::cli::RunArguments;
use crate::clock;
use crate::cluster::budgets::BudgetIndex;
use crate::cluster::call;
use crate::cluster::events::Publisher;
use crate::cluster::evictions::Evictions;
use crate::cluster::groups::GroupWriter;
use crate::cluster::node_writes::NodeWriter;
use crate::cluster::nodes::NodeIndex;
use crate::cluster::own_writes::OwnWrites;
use crate::cluster::pods::PodWatches;
use crate::cluster::policies::{PolicyNames, Vouching};
use crate::cluster::requests::RequestWriter;
use crate::cluster::settings::SettingsInForce;
use crate::cluster::stores::WatchState;
use crate::controllers::auto_approver;
use crate::controllers::backoff::Backoff;
use crate::controllers::instance_group::answers::Answers;
use crate::controllers::instance_group::context::{Context, GuardedGroup, Wakes};
use crate::controllers::instance_group::followers::{Followed, Followers};
use crate::controllers::instance_group::orphans::{Found, Orphans};
use crate::controllers::instance_group::slots::Slots;
use crate::controllers::instance_group::terminations::Terminations;
use crate::controllers::instance_group::{self, NAME, standby};
use crate::controllers::settings;
use crate::controllers::unreadable::{Unreadable, Untold};
use crate::fence::Fence;
use crate::metrics::{Metrics, ReconcileMetrics, UpgradeMetrics};
use approver::{Approver, Inputs};
use election::Leadership;
use tasks::Tasks;
use watches::{Hearers, Watches};

/// The controllers, by the names that the flag knows.
const CONTROLLERS: [&str; 2] = [NAME, auto_approver::NAME];

/// How long reconciles under way may take to finish when the process is asked to stop.
const GRACE: Duration = Duration::from_secs(20);

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
    let mut leadership = Leadership::prepare(&arguments.election)?;
    let config = config(arguments.kubeconfig.as_deref()).await?;
    let client = call::client(config.clone())?;
    let mut metrics = Metrics::new();
    let reconciles = metrics.reconciles(NAME);
    let approvals = metrics.reconciles(auto_approver::NAME);
    let overheard = OverheardClock::new(Arc::new(clock::now));
    let connection = Connection::connect(&ConnectionSettings {
        region: arguments.aws_region.clone(),
        max_attempts: arguments.max_api_retries,
        fence: leadership.fence.clone(),
        clock: overheard.clone(),
        observer: Some(metrics.aws_observer()),
        ..ConnectionSettings::default()
    })
    .await?;

    let stop = CancellationToken::new();
    let mut tasks = Tasks::default();
    let watches = Watches::new();
    let states = watches.states();
    let mut readiness = watches.readiness();
    readiness
        .watches
        .extend(leadership.state.clone().map(|state| ("leader election", state)));
    let metrics = Arc::new(metrics);
    tasks.spawn(
        "admin",
        admin::serve(listener, readiness, Arc::clone(&metrics), stop.clone()),
    );
    // A client of its own: nobody else's connections hold up a renewal.
    leadership.spawn(&mut tasks, call::client(config)?, &metrics, &instance(), &stop);
    let (sender, wakes) = mpsc::unbounded();
    let (unreadable, untold) = Unreadable::new();
    let (orphans, found) = Orphans::new();
    let parts = Parts {
        wakes: Wakes::new(sender),
        unreadable,
        orphans,
        stop: stop.clone(),
        fence: leadership.fence.clone(),
        server_clock: overheard,
        metrics: reconciles,
        upgrades: metrics.upgrades(),
    };
    let context = Arc::new_cyclic(|itself| {
        let pods = pods(&client, itself);
        context(&arguments, &client, connection, &watches, pods, parts)
    });
    tell(&mut tasks, &context, &metrics, untold, found);
    let approver = enabled(&arguments.controllers, auto_approver::NAME)
        .then(|| Approver::new(&context, &client, &instance(), arguments.approved_by.clone(), approvals));
    let proofs = approver.as_ref().map(|approver| Arc::clone(&approver.context.proofs));
    let home = leadership.namespace.as_deref().unwrap_or(&arguments.config_namespace);
    let known = evidence::spawn(&mut tasks, &context, &client, home, proofs);
    let hearers = Hearers {
        groups: Arc::clone(&context),
        approver: approver.as_ref().map(|approver| Arc::clone(&approver.context)),
    };
    watches.spawn(&mut tasks, &client, &hearers, &arguments.config_namespace);
    pollers::spawn(&mut tasks, &context, &arguments, &stop);
    #[cfg(feature = "testing")]
    let approver_context = approver.as_ref().map(|approver| Arc::clone(&approver.context));
    let running: Vec<&'static str> = CONTROLLERS
        .into_iter()
        .filter(|name| enabled(&arguments.controllers, name))
        .collect();
    if let Some(approver) = approver {
        let watches = states.clone();
        let inputs = Inputs { watches, known };
        approver.spawn(&mut tasks, inputs, arguments.max_workers, stop.clone());
    }
    #[cfg(feature = "testing")]
    tasks.spawn(
        "clock for tests",
        tasks::endless(follow_clock(Arc::clone(&context), approver_context)),
    );
    if running.contains(&NAME) {
        tasks.spawn(
            NAME,
            controller(context, wakes, states, arguments.max_workers, stop.clone()),
        );
    }

    tokio::select! {
        ended = tasks.first() => Err(ended),
        () = asked_to_stop => end_well(tasks, leadership, &running, &stop).await,
    }
}

/// The order of a good end: no new work, what is under way, the Lease.
async fn end_well(
    mut tasks: Tasks,
    leadership: Leadership,
    running: &[&'static str],
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    info!("asked to stop: finishing what is under way");
    stop.cancel();
    // A controller ends when its reconciles are done; watches are simply dropped.
    for name in running {
        let ended = tokio::time::timeout(GRACE, tasks.ended(name)).await;
        // The Lease is not given back then: somebody still writes.
        ended.map_err(|_| anyhow!("reconciles did not finish within {} s", GRACE.as_secs()))??;
    }
    leadership.give_back(&mut tasks).await?;
    info!("sluice stops");
    Ok(())
}

/// A clock that was put concerns everybody who waits for a time.
#[cfg(feature = "testing")]
async fn follow_clock(groups: Arc<Context>, approver: Option<Arc<auto_approver::context::Context>>) {
    let mut changes = clock::testing::changes();
    while changes.changed().await.is_ok() {
        groups.wake_all();
        if let Some(approver) = &approver {
            auto_approver::wake_all(approver);
        }
    }
}

/// Tells people what is found: objects that cannot be read, requests without a group, the settings.
fn tell(tasks: &mut Tasks, context: &Arc<Context>, metrics: &Metrics, untold: Untold, found: Found) {
    let (publisher, fence) = (context.publisher.clone(), context.fence.clone());
    tasks.spawn(
        "objects that cannot be read",
        tasks::endless(untold.tell(publisher, fence)),
    );
    tasks.spawn(
        "requests without a group",
        tasks::endless(found.release(Arc::clone(context))),
    );
    let (seen, publisher) = (context.settings.follow(), context.publisher.clone());
    let tell = settings::tell(seen, publisher, context.fence.clone(), metrics.settings());
    tasks.spawn("settings told", tasks::endless(tell));
}

/// The ends of channels and the like that the context takes over.
struct Parts {
    wakes: Wakes,
    unreadable: Unreadable,
    orphans: Orphans,
    stop: CancellationToken,
    fence: Fence,
    server_clock: OverheardClock,
    metrics: ReconcileMetrics,
    upgrades: UpgradeMetrics,
}

/// Watches of pods, whose changes wake the groups that follow them.
fn pods(client: &Client, context: &Weak<Context>) -> PodWatches {
    let context = Weak::clone(context);
    PodWatches::new(client.clone(), move |node| {
        if let Some(context) = context.upgrade() {
            context.changed(&Followed::Pods(node.to_owned()));
        }
    })
}

/// What the reconciles share.
fn context(
    arguments: &RunArguments,
    client: &Client,
    connection: Connection,
    watches: &Watches,
    pods: PodWatches,
    parts: Parts,
) -> Context {
    let Parts {
        wakes,
        unreadable,
        orphans,
        stop,
        fence,
        server_clock,
        metrics,
        upgrades,
    } = parts;
    Context {
        groups: watches.groups.store.clone(),
        requests: watches.requests.store.clone(),
        namespaces: watches.namespaces.store.clone(),
        settings: SettingsInForce::default(),
        nodes: Arc::new(NodeIndex::default()),
        pods,
        budgets: BudgetIndex::default(),
        own_groups: OwnWrites::default(),
        own_requests: OwnWrites::default(),
        orphans,
        terminations: Terminations::default(),
        answers: Answers::default(),
        vouching: Vouching::new(client.clone(), policy_names(arguments)),
        slots: Slots::new(arguments.max_concurrent_rollouts),
        own_node: arguments.node_name.clone(),
        group_writer: GroupWriter::new(client.clone(), fence.clone()),
        request_writer: RequestWriter::new(client.clone(), fence.clone()),
        node_writer: NodeWriter::new(client.clone(), fence.clone()),
        evictions: Evictions::new(client.clone(), fence.clone()),
        publisher: Publisher::new(client.clone(), fence.clone(), "sluice/instance-group", instance()),
        inventory: Inventory::new(&connection),
        catalogue: Catalogue::new(&connection, arguments.image_poll_interval, Arc::new(clock::now)),
        server_clock,
        clusters: Clusters::new(&connection, arguments.image_poll_interval),
        lookups: Lookups::new(&connection),
        connection,
        followers: Followers::default(),
        wakes,
        kept_versions: arguments.config_retention,
        backoff: Backoff::default(),
        unreadable,
        stop,
        fence,
        metrics,
        upgrades,
    }
}

/// Runs the controller of instance groups once this process leads and every input was seen once: an empty store is not an
/// empty cluster.
async fn controller(
    context: Arc<Context>,
    mut wakes: UnboundedReceiver<ObjectRef<GuardedGroup>>,
    states: Vec<watch::Receiver<WatchState>>,
    workers: u16,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if !standby::until_leading(&context, &mut wakes, &stop).await {
        return Ok(());
    }
    for mut state in states {
        tokio::select! {
            followed = state.wait_for(|state| *state == WatchState::Following) => drop(followed?),
            () = stop.cancelled() => return Ok(()),
        }
    }
    tokio::select! {
        () = context.vouching.looked() => {}
        () = stop.cancelled() => return Ok(()),
    }
    tokio::select! {
        () = standby::take_over(&context) => {}
        () = stop.cancelled() => return Ok(()),
    }
    instance_group::run(context, wakes, workers, stop.cancelled_owned()).await;
    Ok(())
}

/// The admission policies to look for.
fn policy_names(arguments: &RunArguments) -> Option<PolicyNames> {
    let names = &arguments.policies;
    Some(PolicyNames {
        request: names.request_policy_name.clone()?,
        stamping: names.stamping_policy_name.clone()?,
    })
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
            name == "*" || CONTROLLERS.contains(&name),
            "--controllers: there is no controller {name:?}; there are: {}",
            CONTROLLERS.join(", ")
        );
    }
    Ok(())
}

/// Tells replicas apart in Events and in the Lease.
fn instance() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| "sluice".to_owned())
}

/// The way to the API server, by the usual rules.
pub(crate) async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<kube::Config> {
    let mut config = match kubeconfig {
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
    Ok(config)
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
            ("-auto-approver", true),
            ("instance-groups", false),
            ("", false),
        ] {
            assert_eq!(known(&[name.to_owned()]).is_ok(), good, "{name}");
        }
    }
}
