//! Pods of single nodes and the budgets over them, as they come and go.
//!
//! Owns what the watches see. What of a pod is read is tested in a table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::api::ListParams;
use serde_json::json;
use sluice::clock;
use sluice::cluster::budgets::BudgetIndex;
use sluice::cluster::evictions::Evictions;
use sluice::cluster::pods::{PodWatches, SeenPod};
use sluice::fence::Fence;
use sluice::plan::facts::workload::{Budget, EvictionKind, PodKind};
use sluice::plan::facts::{Fact, Failure};

use super::{Ground, SOON};
use crate::operator::relay::Relay;
use crate::testbed::credentials;
use crate::testbed::watchdog::locked;

/// Watches, and how often they said that something changed, by node.
struct Watching {
    watches: PodWatches,
    told: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Watching {
    fn new(client: Client) -> Self {
        let told = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
        let shared = Arc::clone(&told);
        let changed = move |node: &str| *locked(&shared).entry(node.to_owned()).or_default() += 1;
        Self {
            watches: PodWatches::new(client, changed),
            told,
        }
    }

    fn follow(&self, owner: &str, nodes: &[&str]) {
        let nodes: BTreeSet<String> = nodes.iter().map(ToString::to_string).collect();
        self.watches.follow(owner, nodes);
    }

    fn told(&self, node: &str) -> usize {
        locked(&self.told).get(node).copied().unwrap_or_default()
    }

    /// It is told just after it can be seen.
    async fn told_just(&self, ground: &Ground, node: &str, times: usize) -> Result<()> {
        let what = format!("a change to be told {times} times");
        let told = ground
            .testbed
            .until(SOON, &what, async || {
                Ok(Some(self.told(node)).filter(|told| *told >= times))
            })
            .await?;
        ensure!(told == times, "{what}, not {told} times");
        Ok(())
    }

    fn unknown(&self, node: &str) -> Result<Failure> {
        match self.watches.on(node) {
            Fact::Unknown(failure) => Ok(failure),
            other => anyhow::bail!("{node}: {other:?}"),
        }
    }

    async fn until(
        &self,
        ground: &Ground,
        node: &str,
        what: &str,
        holds: impl Fn(&[SeenPod]) -> bool,
    ) -> Result<Vec<SeenPod>> {
        ground
            .testbed
            .until(SOON, what, async || match self.watches.on(node) {
                Fact::Found(pods) if holds(&pods) => Ok(Some(pods)),
                other => anyhow::bail!("{other:?}"),
            })
            .await
    }
}

fn names(pods: &[SeenPod]) -> Vec<&str> {
    pods.iter().map(|pod| pod.id.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_a_followed_node_come_and_go() -> Result<()> {
    let ground = Ground::new("pods-story").await?;
    let client = ground.client().await?;
    let watching = Watching::new(client.clone());
    let (node, other) = ("pods-story-1", "pods-story-2");
    ground.running("first", node, "web").await?;
    ground.running("elsewhere", other, "web").await?;
    watching.unknown(node)?;
    watching.follow("group", &[node]);
    let seen = watching.until(&ground, node, "the first list", |_| true).await?;
    assert_eq!(names(&seen), ["first"]);
    assert!(seen[0].ready && seen[0].kind == PodKind::Bare && seen[0].grace_seconds == 3600);
    watching.told_just(&ground, node, 1).await?;
    watching.unknown(other)?;

    let second = ground.running("second", node, "web").await?;
    let is_ready = |pods: &[SeenPod]| names(pods) == ["first", "second"] && pods.iter().all(|pod| pod.ready);
    watching.until(&ground, node, "the second, ready", is_ready).await?;
    // It came, and it turned Ready.
    watching.told_just(&ground, node, 3).await?;

    // What no fact holds changes nothing; the change after it shows that it was seen.
    ground
        .patch_pod("second", json!({"metadata": {"annotations": {"note": "n"}}}))
        .await?;
    assert_eq!(
        Evictions::new(client, Fence::always()).evict(&second).await,
        EvictionKind::Accepted
    );
    let ending = |pods: &[SeenPod]| pods.iter().any(|pod| pod.ends_at.is_some());
    let seen = watching.until(&ground, node, "the end of its grace", ending).await?;
    let end = seen.iter().find_map(|pod| pod.ends_at).context("an end")?;
    // Not the time of the request: that plus its grace of an hour.
    let left = end.as_second() - clock::now().as_second();
    ensure!((3500..=3600).contains(&left), "{left} s are left");
    watching.told_just(&ground, node, 4).await?;

    ground.end("second").await?;
    watching
        .until(&ground, node, "it to go", |pods| names(pods) == ["first"])
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_shared_and_ends_with_the_last_who_needs_it() -> Result<()> {
    let ground = Ground::new("pods-shared").await?;
    let watching = Watching::new(ground.client().await?);
    let (node, sentinel) = ("pods-shared-1", "pods-shared-2");
    watching.follow("one", &[node, sentinel]);
    watching.follow("other", &[node]);
    watching.until(&ground, node, "the first list", <[_]>::is_empty).await?;
    watching
        .until(&ground, sentinel, "the first list", <[_]>::is_empty)
        .await?;
    // One watch, whoever asks.
    watching.told_just(&ground, node, 1).await?;
    watching.follow("one", &[sentinel]);
    assert!(watching.watches.on(node).found().is_some(), "somebody still needs it");
    watching.follow("other", &[]);
    watching.unknown(node)?;
    assert_eq!(watching.watches.nodes(), BTreeSet::from([sentinel.to_owned()]));
    // Nobody looks there any more.
    ground.pending("unseen", node, "web").await?;
    ground.pending("seen", sentinel, "web").await?;
    watching
        .until(&ground, sentinel, "the pod", |pods| names(pods) == ["seen"])
        .await?;
    assert_eq!(watching.told(node), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_unknown_until_they_were_listed() -> Result<()> {
    let ground = Ground::new("pods-unknown").await?;
    ground.client().await?;
    let (mut relay, kubeconfig) = Relay::start(&ground.kubeconfig).await?;
    relay.cut();
    let client = sluice::cluster::call::client(credentials::config_from(&kubeconfig).await?)?;
    let watching = Watching::new(client);
    let node = "pods-unknown-1";
    ground.running("web", node, "web").await?;
    watching.follow("group", &[node]);
    ground
        .testbed
        .until(SOON, "the failure", async || {
            let failure = watching.unknown(node)?;
            ensure!(failure.message.contains("refused"), "{failure}");
            Ok(Some(()))
        })
        .await?;
    assert_eq!(watching.told(node), 0, "nothing was learned");
    relay.mend().await?;
    watching
        .until(&ground, node, "the list", |pods| names(pods) == ["web"])
        .await?;
    // A short cut does not take back what was seen, and what changed meanwhile is caught up on.
    relay.cut();
    ground.running("next", node, "web").await?;
    assert!(watching.watches.on(node).found().is_some());
    relay.mend().await?;
    watching
        .until(&ground, node, "what came meanwhile", |pods| {
            names(pods) == ["next", "web"]
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pods_fact_has_the_budgets_as_they_were_counted() -> Result<()> {
    let ground = Ground::new("pods-budgets").await?;
    let watching = Watching::new(ground.client().await?);
    let node = "pods-budgets-1";
    for (name, app) in [("web-0", "web"), ("web-1", "web"), ("db", "db"), ("free", "free")] {
        ground.running(name, node, app).await?;
    }
    ground.budget("web", "web", 1, 2).await?;
    ground.budget("db", "db", 1, 1).await?;
    let index = BudgetIndex::default();
    index.replace(&ground.budgets.list(&ListParams::default()).await?.items);
    watching.follow("group", &[node]);
    watching
        .until(&ground, node, "the list", |pods| pods.len() == 4)
        .await?;
    let Fact::Found(facts) = watching.watches.facts(node, &index) else {
        anyhow::bail!("unknown");
    };
    let budget = |name: &str, disruptions_allowed, never| Budget {
        name: name.to_owned(),
        disruptions_allowed,
        never,
    };
    for (pod, budgets) in [
        ("web-0", vec![budget("web", 1, false)]),
        ("web-1", vec![budget("web", 1, false)]),
        ("db", vec![budget("db", 0, true)]),
        ("free", vec![]),
    ] {
        let fact = facts.iter().find(|fact| fact.id.name == pod).context(pod)?;
        assert_eq!(fact.budgets, budgets, "{pod}");
        assert_eq!(fact.answer, None);
    }
    Ok(())
}
