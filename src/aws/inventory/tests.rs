//! Tests of the inventory over a stand-in for AWS, with paused time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use pretty_assertions::assert_eq;
use tokio::task::JoinHandle;

use super::*;
use crate::aws::ledger::Touched;
use crate::plan::facts::{Instance, LaunchSource, TemplateVersion};

const INTERVAL: Duration = Duration::from_mins(1);
const LATENCY: Duration = Duration::from_millis(50);

#[derive(Default)]
struct World {
    groups: BTreeMap<String, AutoScalingGroup>,
    /// Groups that exist but that a list cannot show.
    untagged: BTreeSet<String>,
    templates: BTreeMap<String, LaunchTemplate>,
    failing: Option<Failure>,
    calls: Vec<String>,
}

/// An AWS that answers after a while with the state at the call's start.
#[derive(Clone, Default)]
struct FakeAws(Arc<Mutex<World>>);

impl FakeAws {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn answer<T: Send + 'static>(
        &self,
        call: String,
        read: impl FnOnce(&World) -> T,
    ) -> BoxFuture<'static, Result<T, Failure>> {
        let mut world = self.world();
        world.calls.push(call);
        let answer = world.failing.clone().map_or_else(|| Ok(read(&world)), Err);
        async move {
            tokio::time::sleep(LATENCY).await;
            answer
        }
        .boxed()
    }

    fn put(&self, group: AutoScalingGroup) {
        self.world().groups.insert(group.name.clone(), group);
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.world().calls)
    }
}

impl Reads for FakeAws {
    fn list_groups(&self, clusters: Vec<String>) -> BoxFuture<'static, Result<Vec<AutoScalingGroup>, Failure>> {
        self.answer(format!("list {}", clusters.join(",")), |world| {
            let listed = world
                .groups
                .values()
                .filter(|group| !world.untagged.contains(&group.name));
            listed.cloned().collect()
        })
    }

    fn groups_named(&self, names: Vec<String>) -> BoxFuture<'static, Result<Vec<AutoScalingGroup>, Failure>> {
        self.answer(format!("named {}", names.join(",")), |world| {
            names
                .iter()
                .filter_map(|name| world.groups.get(name).cloned())
                .collect()
        })
    }

    fn default_versions(&self) -> BoxFuture<'static, Result<Vec<LaunchTemplate>, Failure>> {
        self.answer("defaults".into(), |world| {
            let default_only = |template: &LaunchTemplate| {
                let mut template = template.clone();
                template.complete = false;
                template
                    .versions
                    .retain(|number, _| *number == template.default_version);
                template
            };
            world.templates.values().map(default_only).collect()
        })
    }

    fn template_named(&self, name: String) -> BoxFuture<'static, Fact<LaunchTemplate>> {
        let answer = self.answer(format!("template {name}"), |world| world.templates.get(&name).cloned());
        answer
            .map(|answer| match answer {
                Ok(found) => found.map_or(Fact::NotFound, Fact::Found),
                Err(failure) => Fact::Unknown(failure),
            })
            .boxed()
    }
}

fn group(name: &str, desired: i32) -> AutoScalingGroup {
    AutoScalingGroup {
        name: name.into(),
        min_size: 0,
        max_size: 9,
        desired_capacity: desired,
        subnets: BTreeSet::new(),
        launch_source: LaunchSource::Other,
        tags: BTreeMap::new(),
        suspended_processes: BTreeSet::new(),
        enabled_metrics: BTreeSet::new(),
        instances: Vec::new(),
        deleting: false,
    }
}

fn with_instance(mut group: AutoScalingGroup, id: &str, state: &str) -> AutoScalingGroup {
    group.instances = vec![Instance {
        id: id.into(),
        zone: "a".into(),
        lifecycle_state: state.into(),
        healthy: true,
        template_id: None,
        template_version: None,
    }];
    group
}

fn template(name: &str, default_version: i64, latest: i64) -> LaunchTemplate {
    let version = |number| TemplateVersion {
        number,
        description: format!("v{number}"),
        image_id: "ami-1".into(),
        created_at: Timestamp::UNIX_EPOCH,
        inputs: None,
    };
    LaunchTemplate {
        id: format!("lt-{name}"),
        name: name.into(),
        default_version,
        versions: (1..=latest).map(|number| (number, version(number))).collect(),
        complete: true,
    }
}

fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        action: "autoscaling:DescribeAutoScalingGroups".into(),
        code: None,
        message: "words".into(),
    }
}

struct Fixture {
    aws: FakeAws,
    ledger: Arc<WriteLedger>,
    inventory: Inventory,
}

impl Fixture {
    fn new() -> Self {
        let (aws, ledger) = (FakeAws::default(), Arc::new(WriteLedger::default()));
        let inventory = Inventory::with(Arc::new(aws.clone()), Arc::clone(&ledger));
        Self { aws, ledger, inventory }
    }

    /// Starts both pollers and waits for their first answers.
    async fn polled(&self) -> Vec<JoinHandle<()>> {
        self.inventory.set_cluster_names(["c".to_owned()].into());
        let (groups, templates) = (self.inventory.clone(), self.inventory.clone());
        let tasks = vec![
            tokio::spawn(async move { groups.run_groups(INTERVAL, CancellationToken::new()).await }),
            tokio::spawn(async move { templates.run_templates(INTERVAL, CancellationToken::new()).await }),
        ];
        self.inventory.first_sync().await;
        self.aws.calls();
        tasks
    }

    async fn group(&self, name: &str) -> Fact<AutoScalingGroup> {
        self.inventory.group(name, Freshness::Snapshot).await
    }

    fn class<T: std::fmt::Debug>(fact: &Fact<T>) -> FailureClass {
        match fact {
            Fact::Unknown(failure) => failure.class,
            fact => panic!("{fact:?} is known"),
        }
    }
}

/// Long enough for one more poll to be answered.
async fn an_interval() {
    tokio::time::sleep(INTERVAL + LATENCY * 2).await;
}

#[tokio::test(start_paused = true)]
async fn steady_state_reads_nothing_but_the_polls() {
    let fixture = Fixture::new();
    fixture.aws.put(group("a", 1));
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 1));
    fixture.polled().await;
    for _ in 0..5 {
        assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)));
        let fact = fixture.inventory.template("t", Freshness::Snapshot, false).await;
        assert_eq!(fact.found().unwrap().default_version, 1);
        let fact = fixture.inventory.template("none", Freshness::Snapshot, false).await;
        assert_eq!(fact, Fact::NotFound);
    }
    assert_eq!(fixture.aws.calls(), Vec::<String>::new());
    an_interval().await;
    let mut calls = fixture.aws.calls();
    calls.sort();
    assert_eq!(calls, ["defaults", "list c"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_fresh_reads_share_calls() {
    let fixture = Fixture::new();
    let names: Vec<String> = (0..150).map(|number| format!("g{number:03}")).collect();
    for name in &names {
        fixture.aws.put(group(name, 1));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for name in names {
        let inventory = fixture.inventory.clone();
        tasks.spawn(async move { inventory.group(&name, Freshness::Fresh).await });
        tokio::task::yield_now().await;
    }
    let facts = tasks.join_all().await;
    assert!(facts.iter().all(|fact| fact.found().is_some()));
    let sizes: Vec<usize> = fixture.aws.calls().iter().map(|call| call.split(',').count()).collect();
    assert_eq!(sizes, [1, 100, 49]);
}

#[tokio::test(start_paused = true)]
async fn a_write_makes_the_next_read_fresh() {
    let fixture = Fixture::new();
    fixture.aws.put(group("a", 1));
    fixture.polled().await;
    let write = fixture.ledger.begin(vec![Touched::Group("a".into())]);
    fixture.aws.put(group("a", 2));
    write.end(None);
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 2)));
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 2)));
    assert_eq!(fixture.aws.calls(), ["named a"]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_began_before_a_write_does_not_hide_it() {
    let fixture = Fixture::new();
    fixture.aws.put(group("a", 1));
    fixture.polled().await;
    // The next poll reads the old state; the write and the fresh read after it overtake its answer.
    tokio::time::sleep(INTERVAL + LATENCY / 2).await;
    assert_eq!(fixture.aws.calls().iter().filter(|call| *call == "list c").count(), 1);
    let write = fixture.ledger.begin(vec![Touched::Group("a".into())]);
    fixture.aws.put(group("a", 2));
    write.end(None);
    tokio::time::sleep(LATENCY).await;
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 2)));
}

#[tokio::test(start_paused = true)]
async fn absence_after_our_own_create_is_lag() {
    let fixture = Fixture::new();
    fixture.polled().await;
    fixture.ledger.begin_create(vec![Touched::Group("a".into())]).end(None);
    fixture
        .ledger
        .begin_create(vec![Touched::Template("t".into())])
        .end(None);
    assert_eq!(Fixture::class(&fixture.group("a").await), FailureClass::Lagging);
    let fact = fixture.inventory.template("t", Freshness::Snapshot, false).await;
    assert_eq!(Fixture::class(&fact), FailureClass::Lagging);
    fixture.aws.put(group("a", 1));
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)));
    tokio::time::sleep(Duration::from_secs(61)).await;
    let fact = fixture.inventory.template("t", Freshness::Snapshot, false).await;
    assert_eq!(fact, Fact::NotFound);
}

#[tokio::test(start_paused = true)]
async fn absence_needs_a_read_by_name() {
    let fixture = Fixture::new();
    fixture.aws.put(group("a", 1));
    fixture.aws.world().untagged.insert("a".into());
    fixture.polled().await;
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)));
    assert_eq!(fixture.group("b").await, Fact::NotFound);
    an_interval().await;
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)));
    assert_eq!(fixture.group("b").await, Fact::NotFound);
    let named: Vec<String> = fixture
        .aws
        .calls()
        .into_iter()
        .filter(|call| call.starts_with("named"))
        .collect();
    assert_eq!(named, ["named a", "named b"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_poll_keeps_facts_until_they_are_too_old() {
    let fixture = Fixture::new();
    fixture.aws.put(group("a", 1));
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 1));
    fixture.polled().await;
    fixture.aws.world().failing = Some(failure(FailureClass::Throttled));
    an_interval().await;
    an_interval().await;
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)));
    let health = fixture.inventory.groups_health();
    assert_eq!(
        health.failure.map(|failure| failure.class),
        Some(FailureClass::Throttled)
    );
    assert!(health.synced && health.age > Some(INTERVAL));
    an_interval().await;
    let fact = fixture.group("a").await;
    assert_eq!(Fixture::class(&fact), FailureClass::Throttled);
    assert!(matches!(fact, Fact::Unknown(failure) if failure.message.starts_with("last seen 18")));
    let fact = fixture.inventory.template("t", Freshness::Snapshot, false).await;
    assert_eq!(Fixture::class(&fact), FailureClass::Throttled);
    let fact = fixture.inventory.template("none", Freshness::Snapshot, false).await;
    assert_eq!(Fixture::class(&fact), FailureClass::Throttled);
    fixture.aws.world().failing = None;
    an_interval().await;
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)));
}

#[tokio::test(start_paused = true)]
async fn changes_are_published_once() {
    let fixture = Fixture::new();
    fixture.aws.put(with_instance(group("a", 1), "i-1", "Pending"));
    fixture.aws.put(group("b", 1));
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 2));
    let mut changes = fixture.inventory.watch_changes();
    fixture.polled().await;
    assert_eq!(changes.next().now_or_never(), None, "the first poll is no change");
    fixture.aws.put(with_instance(group("a", 1), "i-1", "InService"));
    fixture.aws.world().groups.remove("b");
    fixture.aws.world().templates.insert("t".into(), template("t", 2, 2));
    an_interval().await;
    an_interval().await;
    let mut seen = Vec::new();
    while let Some(Some(change)) = changes.next().now_or_never() {
        seen.push(change);
    }
    let expected = [
        ChangedName::Group("a".into()),
        ChangedName::Group("b".into()),
        ChangedName::Template("t".into()),
    ];
    assert_eq!(seen, expected);
    an_interval().await;
    assert_eq!(changes.next().now_or_never(), None);
    assert_eq!(fixture.group("b").await, Fact::NotFound);
}

#[tokio::test(start_paused = true)]
async fn instances_lead_to_their_group() {
    let fixture = Fixture::new();
    fixture.aws.put(with_instance(group("a", 1), "i-1", "InService"));
    fixture.polled().await;
    assert_eq!(fixture.inventory.group_of_instance("i-1").as_deref(), Some("a"));
    fixture.aws.put(with_instance(group("a", 1), "i-2", "Pending"));
    an_interval().await;
    assert_eq!(fixture.inventory.group_of_instance("i-1"), None);
    assert_eq!(fixture.inventory.group_of_instance("i-2").as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_complete_list_is_kept_while_polls_bear_it_out() {
    let fixture = Fixture::new();
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 2));
    fixture.polled().await;
    let complete = async || fixture.inventory.template("t", Freshness::Snapshot, true).await;
    let reads = || {
        fixture
            .aws
            .calls()
            .iter()
            .filter(|call| call.starts_with("template"))
            .count()
    };
    assert_eq!(complete().await, Fact::Found(template("t", 1, 2)));
    for _ in 0..5 {
        an_interval().await;
        assert_eq!(complete().await, Fact::Found(template("t", 1, 2)));
    }
    assert_eq!(reads(), 1);
    fixture.aws.world().templates.insert("t".into(), template("t", 2, 3));
    an_interval().await;
    assert_eq!(complete().await, Fact::Found(template("t", 2, 3)));
    assert_eq!(reads(), 1);
    // A write by id, as all but the first are; the poll after it must not pass the old list off as whole.
    fixture.ledger.begin(vec![Touched::Template("lt-t".into())]).end(None);
    fixture.aws.world().templates.insert("t".into(), template("t", 2, 4));
    an_interval().await;
    assert_eq!(complete().await, Fact::Found(template("t", 2, 4)));
    assert_eq!(reads(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_show_is_lag() {
    let fixture = Fixture::new();
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 1));
    fixture.polled().await;
    let write = fixture.ledger.begin(vec![Touched::Template("lt-t".into())]);
    fixture.ledger.version_made("lt-t", 2);
    write.end(None);
    let fact = fixture.inventory.template("t", Freshness::Snapshot, true).await;
    assert_eq!(Fixture::class(&fact), FailureClass::Lagging);
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 2));
    let fact = fixture.inventory.template("t", Freshness::Snapshot, true).await;
    assert_eq!(fact, Fact::Found(template("t", 1, 2)));
}

#[tokio::test(start_paused = true)]
async fn without_clusters_nothing_is_polled() {
    let fixture = Fixture::new();
    fixture.inventory.set_cluster_names(BTreeSet::new());
    let inventory = fixture.inventory.clone();
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let cancel = cancel.clone();
        async move {
            tokio::join!(
                inventory.run_groups(INTERVAL, cancel.clone()),
                inventory.run_templates(INTERVAL, cancel)
            )
        }
    });
    fixture.inventory.first_sync().await;
    an_interval().await;
    assert_eq!(fixture.aws.calls(), Vec::<String>::new());
    fixture.inventory.set_cluster_names(["c".to_owned()].into());
    tokio::time::sleep(LATENCY).await;
    let mut calls = fixture.aws.calls();
    calls.sort();
    assert_eq!(calls, ["defaults", "list c"]);
    cancel.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_read_while_another_process_wrote_is_not_believed() {
    let fixture = Fixture::new();
    fixture.aws.world().groups.insert("a".into(), group("a", 1));
    fixture.aws.world().templates.insert("t".into(), template("t", 1, 1));
    let tasks = fixture.polled().await;
    // The one who led until now.
    fixture.aws.world().groups.insert("a".into(), group("a", 2));
    fixture.aws.world().templates.insert("t".into(), template("t", 2, 2));
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 1)), "not polled since");
    fixture.inventory.renew(INTERVAL).await;
    let mut calls = fixture.aws.calls();
    calls.sort();
    assert_eq!(
        calls,
        ["defaults", "list c"],
        "a page each, whatever the number of groups"
    );
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 2)));
    let fact = fixture.inventory.template("t", Freshness::Snapshot, false).await;
    assert_eq!(fact.found().map(|template| template.default_version), Some(2));
    assert_eq!(fixture.aws.calls(), Vec::<String>::new());
    tasks.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn after_another_process_wrote_a_poll_that_fails_leaves_reads_by_name() {
    let fixture = Fixture::new();
    fixture.aws.world().groups.insert("a".into(), group("a", 1));
    let tasks = fixture.polled().await;
    fixture.aws.world().groups.insert("a".into(), group("a", 2));
    // The pollers hang.
    tasks.iter().for_each(JoinHandle::abort);
    let asked = tokio::time::Instant::now();
    fixture.inventory.renew(INTERVAL / 2).await;
    assert_eq!(asked.elapsed(), INTERVAL / 2);
    assert_eq!(fixture.group("a").await, Fact::Found(group("a", 2)));
    assert_eq!(fixture.aws.calls(), ["named a"]);
}
