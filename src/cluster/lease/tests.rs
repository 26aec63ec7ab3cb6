//! Candidates against a stand-in of the API server that does conditional writes and is slow, silent or forgetful.
//!
//! Time stands still but for what sleeps, so hours pass in moments. Nothing here looks at what a candidate says of itself
//! only: two fences must never be open at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use jiff::SignedDuration;
use proptest::prelude::*;
use tokio::task::JoinHandle;

use super::*;
use crate::fence::{Fence, fence};

const SECOND: Duration = Duration::from_secs(1);

/// What the API server does next; the last one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// Answers after so many milliseconds, half of them before the effect.
    Slow(u64),
    /// The effect happens, the answer is lost.
    Forgetful,
    /// Nothing arrives.
    Silent,
}

#[derive(Default)]
struct Server {
    lease: Mutex<Option<Lease>>,
    version: AtomicU64,
}

impl Server {
    fn lease(&self) -> std::sync::MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holder(&self) -> String {
        self.lease().as_ref().map(record::holder).unwrap_or_default().to_owned()
    }

    /// As the API server does it: by the version that the writer read, or on what does not exist.
    fn put(&self, mut lease: Lease) -> Result<Lease, Failure> {
        let mut stored = self.lease();
        let conflict = |class| Failure {
            class,
            action: "put".to_owned(),
            code: None,
            message: String::new(),
        };
        match (&*stored, &lease.metadata.resource_version) {
            (Some(_), None) => return Err(conflict(FailureClass::AlreadyExists)),
            (None, Some(_)) => return Err(conflict(FailureClass::NotFound)),
            (Some(now), read) if now.metadata.resource_version != *read => return Err(conflict(FailureClass::Busy)),
            (None, None) | (Some(_), Some(_)) => {}
        }
        // A write that changes nothing leaves the version as it is.
        if stored.as_ref().is_none_or(|now| now.spec != lease.spec) {
            let version = self.version.fetch_add(1, Ordering::Relaxed);
            lease.metadata.resource_version = Some(version.to_string());
        }
        *stored = Some(lease.clone());
        Ok(lease)
    }
}

/// One candidate's way to the server.
struct Way {
    server: Arc<Server>,
    moods: Arc<Mutex<Vec<Mood>>>,
}

impl Way {
    async fn go<T: Send>(&self, effect: impl FnOnce(&Server) -> T + Send) -> T {
        let mood = {
            let mut moods = self.moods.lock().unwrap_or_else(PoisonError::into_inner);
            if moods.len() > 1 { moods.remove(0) } else { moods[0] }
        };
        match mood {
            Mood::Slow(milliseconds) => {
                let half = Duration::from_millis(milliseconds) / 2;
                sleep(half).await;
                let answer = effect(&self.server);
                sleep(half).await;
                answer
            }
            Mood::Forgetful => {
                effect(&self.server);
                std::future::pending().await
            }
            Mood::Silent => std::future::pending().await,
        }
    }
}

impl LeaseStore for Way {
    async fn get(&self) -> Result<Option<Lease>, Failure> {
        self.go(|server| Ok(server.lease().clone())).await
    }

    async fn put(&self, lease: Lease) -> Result<Lease, Failure> {
        self.go(|server| server.put(lease)).await
    }
}

struct Nobody;

impl ElectionObserver for Nobody {
    fn leads(&self, _: bool) {}
    fn changed(&self) {}
}

/// A process: its fence, and how it may be ended.
struct Process {
    fence: Fence,
    moods: Arc<Mutex<Vec<Mood>>>,
    stop: CancellationToken,
    release: CancellationToken,
    task: JoinHandle<Result<(), Lost>>,
}

fn timing() -> Timing {
    Timing::new(SECOND * 15, SECOND * 10, SECOND * 2).unwrap()
}

fn epoch() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn hours_ahead() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(70)
}

fn process(name: &str, server: &Arc<Server>, moods: Vec<Mood>, clock: fn() -> Timestamp) -> Process {
    let (keeper, fence) = fence();
    let moods = Arc::new(Mutex::new(moods));
    let election = Election {
        store: Way {
            server: Arc::clone(server),
            moods: Arc::clone(&moods),
        },
        candidate: Candidate {
            identity: name.to_owned(),
            patience: timing().lease_duration(),
        },
        timing: timing(),
        keeper,
        observer: Arc::new(Nobody),
        state: watch::channel(WatchState::Starting).0,
        clock,
    };
    let (stop, release) = (CancellationToken::new(), CancellationToken::new());
    let task = tokio::spawn(election.run(stop.clone(), release.clone()));
    Process {
        fence,
        moods,
        stop,
        release,
        task,
    }
}

impl Process {
    fn becomes(&self, mood: Mood) {
        *self.moods.lock().unwrap() = vec![mood];
    }

    /// How long until it may write.
    async fn opens_after(&self) -> Duration {
        let asked = Instant::now();
        timeout(SECOND * 300, self.fence.opened()).await.unwrap();
        asked.elapsed()
    }

    /// How it ended.
    async fn ended(&mut self) -> Result<(), Lost> {
        timeout(SECOND * 300, &mut self.task).await.unwrap().unwrap()
    }
}

const WELL: Mood = Mood::Slow(20);

#[tokio::test(start_paused = true)]
async fn one_leads_the_other_waits_and_takes_over_when_the_record_stood_still() {
    let server = Arc::default();
    let first = process("first", &server, vec![WELL], epoch);
    assert!(first.opens_after().await < SECOND);
    let second = process("second", &server, vec![WELL], epoch);
    sleep(SECOND * 600).await;
    assert!(first.fence.is_open() && !second.fence.is_open());
    // As if killed: nothing of it goes on, and nothing is given back.
    first.task.abort();
    let waited = second.opens_after().await;
    assert!(waited > SECOND * 12 && waited < SECOND * 20, "{waited:?}");
    assert_eq!(server.holder(), "second");
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_wrong_by_hours_change_nothing() {
    let clocks: [fn() -> Timestamp; 2] = [epoch, hours_ahead];
    for (ours, theirs) in [(clocks[0], clocks[1]), (clocks[1], clocks[0])] {
        let server = Arc::default();
        let first = process("first", &server, vec![WELL], theirs);
        first.opens_after().await;
        let second = process("second", &server, vec![WELL], ours);
        sleep(SECOND * 100).await;
        assert!(first.fence.is_open() && !second.fence.is_open());
        first.task.abort();
        let waited = second.opens_after().await;
        assert!(waited > SECOND * 12 && waited < SECOND * 20, "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_stops_at_the_deadline_though_the_server_is_merely_silent() {
    let server = Arc::default();
    let mut first = process("first", &server, vec![WELL], epoch);
    first.opens_after().await;
    let second = process("second", &server, vec![WELL], epoch);
    sleep(SECOND * 60).await;
    first.becomes(Mood::Silent);
    let asked = Instant::now();
    let ended = first.ended().await;
    assert!(matches!(ended, Err(Lost::Deadline(_))), "{ended:?}");
    assert!(asked.elapsed() <= SECOND * 10, "{:?}", asked.elapsed());
    assert!(!first.fence.is_open() && !second.fence.is_open());
    second.opens_after().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_taken_at_the_next_look() {
    let server = Arc::default();
    let mut first = process("first", &server, vec![WELL], epoch);
    first.opens_after().await;
    let second = process("second", &server, vec![WELL], epoch);
    sleep(SECOND * 5).await;
    first.stop.cancel();
    sleep(SECOND * 60).await;
    assert!(first.fence.is_open(), "it leads until its reconciles are drained");
    first.release.cancel();
    assert!(first.ended().await.is_ok());
    assert!(!first.fence.is_open() && server.holder().is_empty());
    let waited = second.opens_after().await;
    assert!(waited < SECOND * 3, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_only_when_nothing_is_written_any_more() {
    let server = Arc::default();
    let mut first = process("first", &server, vec![WELL], epoch);
    first.opens_after().await;
    let mut write = Box::pin(first.fence.write("a", sleep(SECOND * 3)));
    assert!((&mut write).now_or_never().is_none());
    first.stop.cancel();
    first.release.cancel();
    sleep(SECOND).await;
    assert_eq!(server.holder(), "first");
    assert!(write.await.is_ok());
    assert!(first.ended().await.is_ok());
    assert!(server.holder().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_asked_to_stop_ends_without_a_trace() {
    let server = Arc::default();
    let first = process("first", &server, vec![WELL], epoch);
    first.opens_after().await;
    let mut second = process("second", &server, vec![WELL], epoch);
    sleep(SECOND * 5).await;
    second.stop.cancel();
    assert!(second.ended().await.is_ok());
    assert_eq!(server.holder(), "first");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_by_looking_again() {
    let server = Arc::default();
    // The look, then the create whose answer is lost.
    let first = process("first", &server, vec![WELL, Mood::Forgetful, WELL], epoch);
    assert!(first.opens_after().await < SECOND * 6);
    *first.moods.lock().unwrap() = vec![Mood::Forgetful, WELL];
    sleep(SECOND * 60).await;
    assert!(first.fence.is_open());
    assert_eq!(server.holder(), "first");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deleted_is_made_again_by_its_holder_only() {
    let server: Arc<Server> = Arc::default();
    let first = process("first", &server, vec![WELL], epoch);
    first.opens_after().await;
    let second = process("second", &server, vec![WELL], epoch);
    for _ in 0..40 {
        sleep(SECOND * 4 + SECOND / 3).await;
        *server.lease() = None;
    }
    sleep(SECOND * 4).await;
    assert!(first.fence.is_open() && !second.fence.is_open());
    assert_eq!(server.holder(), "first");
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_another_name_in_it_ends() {
    let server: Arc<Server> = Arc::default();
    let mut first = process("first", &server, vec![WELL], epoch);
    first.opens_after().await;
    let taken = record::claimed(
        server.lease().clone(),
        &Candidate {
            identity: "by hand".to_owned(),
            patience: SECOND,
        },
        epoch(),
    );
    server.put(taken).unwrap();
    let ended = first.ended().await;
    assert!(matches!(&ended, Err(Lost::Taken(by)) if by == "by hand"), "{ended:?}");
    assert!(!first.fence.is_open());
}

fn moods() -> impl Strategy<Value = Vec<Mood>> {
    let mood = prop_oneof![
        8 => (0u64..3000).prop_map(Mood::Slow),
        1 => Just(Mood::Forgetful),
        2 => Just(Mood::Silent),
    ];
    prop::collection::vec(mood, 1..120).prop_map(|mut moods| {
        moods.push(WELL);
        moods
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Three processes, each with its own troubles and clock, restarted when they end: never two that may write.
    #[test]
    fn there_are_never_two_writers(all in prop::collection::vec(moods(), 3), starts in prop::collection::vec(0u64..9000, 3)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (two, one) = runtime.block_on(async {
            let server: Arc<Server> = Arc::default();
            let mut processes: Vec<Process> = Vec::new();
            for (index, (moods, start)) in all.into_iter().zip(starts).enumerate() {
                sleep(Duration::from_millis(start)).await;
                let clock = if index % 2 == 0 { epoch } else { hours_ahead };
                processes.push(process(&format!("p{index}"), &server, moods, clock));
            }
            let (mut two, mut one) = (0, 0);
            for round in 0..6000 {
                sleep(Duration::from_millis(50)).await;
                match processes.iter().filter(|process| process.fence.is_open()).count() {
                    0 => {}
                    1 => one += 1,
                    _ => two += 1,
                }
                for (index, ended) in processes.iter_mut().enumerate().filter(|(_, process)| process.task.is_finished()) {
                    *ended = process(&format!("p{index}-{round}"), &server, vec![Mood::Slow(30)], epoch);
                }
            }
            (two, one)
        });
        prop_assert_eq!(two, 0);
        // In five minutes somebody led: a fence that never opens would be safe, too.
        prop_assert!(one > 0);
    }
}
