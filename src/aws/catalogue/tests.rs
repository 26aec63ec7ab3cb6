//! Tests of the catalogue over a stand-in for AWS, with paused time.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use pretty_assertions::assert_eq;

use super::*;
use crate::plan::evidence::SeenValue;

const INTERVAL: Duration = Duration::from_mins(5);

#[derive(Default)]
struct World {
    /// Values by parameter name; a name that is absent does not exist.
    values: BTreeMap<String, String>,
    forbidden: BTreeSet<String>,
    failing: Option<FailureClass>,
    parameter_calls: Vec<Vec<String>>,
    image_calls: Vec<Vec<String>>,
    now: i64,
}

#[derive(Clone, Default)]
struct FakeAws(Arc<Mutex<World>>);

impl FakeAws {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn set(&self, name: &str, value: &str) {
        self.world().values.insert(name.into(), value.into());
    }
}

fn failed(class: FailureClass) -> Failure {
    Failure {
        class,
        action: "ssm:GetParameters".into(),
        code: None,
        message: String::new(),
    }
}

fn image(id: &str) -> Image {
    Image {
        id: id.into(),
        name: String::new(),
        architecture: "x86_64".into(),
        state: "available".into(),
        created_at: None,
        deprecated_at: None,
    }
}

impl Reads for FakeAws {
    fn parameters(&self, names: Vec<String>) -> BoxFuture<'static, Vec<(String, Fact<Parameter>)>> {
        if names.is_empty() {
            return std::future::ready(Vec::new()).boxed();
        }
        let mut world = self.world();
        world.parameter_calls.push(names.clone());
        let fact = |name: &String| {
            if let Some(class) = world.failing {
                return Fact::Unknown(failed(class));
            }
            if world.forbidden.contains(name) {
                return Fact::Unknown(failed(FailureClass::Denied));
            }
            let found = |value: &String| Parameter {
                name: name.clone(),
                value: value.clone(),
                version: 1,
                last_modified: None,
            };
            world.values.get(name).map(found).map_or(Fact::NotFound, Fact::Found)
        };
        let facts: Vec<_> = names.iter().map(|name| (name.clone(), fact(name))).collect();
        drop(world);
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            facts
        }
        .boxed()
    }

    fn images(&self, ids: Vec<String>) -> BoxFuture<'static, Result<BTreeMap<String, Image>, Failure>> {
        self.world().image_calls.push(ids.clone());
        let found = ids
            .into_iter()
            .filter(|id| id != "ami-gone")
            .map(|id| (id.clone(), image(&id)))
            .collect();
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(found)
        }
        .boxed()
    }
}

/// Long enough for one more round to be answered.
async fn an_interval() {
    tokio::time::sleep(INTERVAL + Duration::from_secs(1)).await;
}

fn catalogue() -> (Catalogue, FakeAws) {
    let aws = FakeAws::default();
    let clock = aws.clone();
    let now: Now = Arc::new(move || Timestamp::from_second(clock.world().now).unwrap());
    let catalogue = Catalogue::with(Arc::new(aws.clone()), INTERVAL, now);
    let running = catalogue.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    (catalogue, aws)
}

fn parameters(names: &[&str]) -> Followed {
    Followed {
        parameters: names.iter().map(|name| (*name).to_owned()).collect(),
        images: BTreeSet::new(),
    }
}

fn value(fact: &Fact<Parameter>) -> &str {
    &fact.found().unwrap().value
}

#[tokio::test(start_paused = true)]
async fn a_call_per_ten_names_whatever_the_number_of_groups() {
    let (catalogue, aws) = catalogue();
    let names: Vec<String> = (0..12).map(|number| format!("/p{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &names {
        aws.set(name, "ami-1");
    }
    for group in 0..200 {
        catalogue.follow(&group.to_string(), parameters(&names));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sizes = |aws: &FakeAws| -> Vec<usize> {
        std::mem::take(&mut aws.world().parameter_calls)
            .iter()
            .map(Vec::len)
            .collect()
    };
    assert_eq!(sizes(&aws), [10, 2]);
    for name in names {
        assert_eq!(value(&catalogue.parameter(name).await), "ami-1");
    }
    assert_eq!(sizes(&aws), Vec::<usize>::new());
    an_interval().await;
    assert_eq!(sizes(&aws), [10, 2]);
    assert_eq!(aws.world().image_calls, [["ami-1"], ["ami-1"]]);
}

#[tokio::test(start_paused = true)]
async fn groups_that_ask_at_once_share_a_call() {
    let (catalogue, aws) = catalogue();
    aws.set("/p", "ami-1");
    let mut tasks = tokio::task::JoinSet::new();
    for group in 0..50 {
        let catalogue = catalogue.clone();
        tasks.spawn(async move {
            catalogue.follow(&group.to_string(), parameters(&["/p"]));
            let fact = catalogue.parameter("/p").await;
            catalogue.image(value(&fact)).await
        });
    }
    let facts = tasks.join_all().await;
    assert!(facts.iter().all(|fact| *fact == Fact::Found(image("ami-1"))));
    assert_eq!(aws.world().parameter_calls.len(), 1);
    assert_eq!(aws.world().image_calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_published_with_the_time_it_was_seen() {
    let (catalogue, aws) = catalogue();
    aws.set("/p", "ami-1");
    let mut changes = catalogue.watch_changes();
    catalogue.follow("g", parameters(&["/p"]));
    assert_eq!(changes.next().await, Some(ChangedImage::Parameter("/p".into())));
    assert_eq!(changes.next().await, Some(ChangedImage::Image("ami-1".into())));
    aws.set("/p", "ami-2");
    aws.world().now = 500;
    assert_eq!(changes.next().await, Some(ChangedImage::Parameter("/p".into())));
    assert_eq!(value(&catalogue.parameter("/p").await), "ami-2");
    assert_eq!(changes.next().await, Some(ChangedImage::Image("ami-2".into())));
    let history = catalogue.history("/p").unwrap();
    let seen = |seen: &SeenValue| (seen.value.clone(), seen.first_seen.as_second());
    assert_eq!(history.current.as_ref().map(seen), Some(("ami-2".into(), 500)));
    assert_eq!(
        history.earlier.iter().map(seen).collect::<Vec<_>>(),
        [("ami-1".into(), 0)]
    );
    tokio::time::sleep(INTERVAL * 2).await;
    assert_eq!(changes.next().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_the_value() {
    let (catalogue, aws) = catalogue();
    aws.set("/p", "ami-1");
    catalogue.follow("g", parameters(&["/p"]));
    catalogue.parameter("/p").await;
    aws.world().failing = Some(FailureClass::Throttled);
    tokio::time::sleep(INTERVAL * 3).await;
    assert_eq!(value(&catalogue.parameter("/p").await), "ami-1");
    assert_eq!(catalogue.parameter_failure("/p"), Some(failed(FailureClass::Throttled)));
    aws.world().failing = None;
    an_interval().await;
    assert_eq!(catalogue.parameter_failure("/p"), None);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_name_goes_alone_from_then_on() {
    let (catalogue, aws) = catalogue();
    aws.set("/a", "ami-1");
    aws.world().forbidden.insert("/b".into());
    catalogue.follow("g", parameters(&["/a", "/b", "/gone"]));
    assert_eq!(value(&catalogue.parameter("/a").await), "ami-1");
    assert_eq!(catalogue.parameter("/gone").await, Fact::NotFound);
    for _ in 0..5 {
        assert_eq!(
            catalogue.parameter("/b").await,
            Fact::Unknown(failed(FailureClass::Denied))
        );
    }
    an_interval().await;
    let calls = std::mem::take(&mut aws.world().parameter_calls);
    assert_eq!(calls, [vec!["/a", "/b", "/gone"], vec!["/a", "/gone"], vec!["/b"]]);
    aws.world().forbidden.clear();
    aws.set("/b", "ami-2");
    an_interval().await;
    assert_eq!(value(&catalogue.parameter("/b").await), "ami-2");
}

#[tokio::test(start_paused = true)]
async fn images_are_followed_by_id_too() {
    let (catalogue, aws) = catalogue();
    let images = ["ami-1".to_owned(), "ami-gone".to_owned()].into();
    catalogue.follow(
        "g",
        Followed {
            parameters: BTreeSet::new(),
            images,
        },
    );
    assert_eq!(catalogue.image("ami-1").await, Fact::Found(image("ami-1")));
    assert_eq!(catalogue.image("ami-gone").await, Fact::NotFound);
    an_interval().await;
    catalogue.unfollow("g");
    tokio::time::sleep(INTERVAL * 3).await;
    let calls = aws.world().image_calls.len();
    assert!((2..=3).contains(&calls), "{calls}");
}
