//! Tests of the caches over an AWS whose answers are set by the test, with paused time.

use std::sync::atomic::{AtomicUsize, Ordering};

use pretty_assertions::assert_eq;

use super::*;
use crate::plan::facts::{Failure, FailureClass};

/// A cache over an AWS whose answers are set by the test.
struct Fixture {
    answers: Answers<String, Fact<u32>>,
    askers: Askers,
    calls: AtomicUsize,
    now: Mutex<Fact<u32>>,
}

impl Fixture {
    fn new(fact: Fact<u32>) -> Self {
        Self {
            answers: answers(),
            askers: Askers::default(),
            calls: AtomicUsize::new(0),
            now: Mutex::new(fact),
        }
    }

    async fn ask(&self, group: &str, generation: i64) -> Fact<u32> {
        let ask = async {
            self.calls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.now.lock().unwrap().clone()
        };
        let not_before = self.askers.not_before(Asker { group, generation });
        look_up(&self.answers, "key".to_owned(), not_before, ask, good_for).await
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn failed() -> Fact<u32> {
    let class = FailureClass::Throttled;
    Fact::Unknown(Failure {
        class,
        action: "a:B".into(),
        code: None,
        message: String::new(),
    })
}

#[tokio::test(start_paused = true)]
async fn many_groups_share_one_answer_for_hours() {
    let aws = Fixture::new(Fact::Found(1));
    tokio::join!(aws.ask("a", 1), aws.ask("b", 1), aws.ask("c", 1));
    tokio::time::advance(Duration::from_hours(9)).await;
    assert_eq!(aws.ask("a", 1).await, Fact::Found(1));
    assert_eq!(aws.calls(), 1);
    tokio::time::advance(Duration::from_hours(1)).await;
    aws.ask("a", 1).await;
    assert_eq!(aws.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_edited_group_looks_again() {
    let aws = Fixture::new(Fact::Found(1));
    aws.ask("a", 1).await;
    tokio::time::advance(Duration::from_mins(1)).await;
    *aws.now.lock().unwrap() = Fact::Found(2);
    assert_eq!(aws.ask("a", 1).await, Fact::Found(1));
    assert_eq!(aws.ask("a", 2).await, Fact::Found(2));
    assert_eq!(aws.ask("a", 2).await, Fact::Found(2));
    assert_eq!(aws.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn absence_is_brief_and_failure_is_not_kept() {
    let aws = Fixture::new(Fact::NotFound);
    aws.ask("a", 1).await;
    aws.ask("a", 1).await;
    assert_eq!(aws.calls(), 1);
    tokio::time::advance(BRIEF).await;
    *aws.now.lock().unwrap() = failed();
    assert_eq!(aws.ask("a", 1).await, failed());
    *aws.now.lock().unwrap() = Fact::Found(3);
    assert_eq!(aws.ask("a", 1).await, Fact::Found(3));
    assert_eq!(aws.calls(), 3);
}
