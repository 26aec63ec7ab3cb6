//! The fence in time that stands still until it is moved.

use std::time::Duration;

use futures::FutureExt;
use tokio::sync::oneshot;
use tokio::time::{advance, sleep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn class<T: std::fmt::Debug>(result: Result<T, Failure>) -> FailureClass {
    result.unwrap_err().class
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_it_opens_and_after_it_closed() {
    let (keeper, fence) = fence();
    assert_eq!(class(fence.write("a", async {}).await), FailureClass::NotLeading);
    assert!(keeper.open_until(Instant::now() + SECOND));
    assert!(fence.write("a", async {}).await.is_ok());
    keeper.close();
    assert_eq!(class(fence.write("a", async {}).await), FailureClass::NotLeading);
    assert!(!keeper.open_until(Instant::now() + SECOND));
    assert!(!fence.is_open(), "what was lost does not come back");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_closes_it_though_nobody_noticed() {
    let (keeper, fence) = fence();
    assert!(keeper.open_until(Instant::now() + SECOND));
    assert!(fence.is_open());
    advance(SECOND).await;
    assert!(!fence.is_open());
    assert_eq!(class(fence.write("a", async {}).await), FailureClass::NotLeading);
    assert!(
        !keeper.open_until(Instant::now() + SECOND),
        "a renewal that comes too late is none"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_dropped_at_the_deadline_and_a_renewal_moves_that() {
    let (keeper, fence) = fence();
    assert!(keeper.open_until(Instant::now() + SECOND));
    let (mut dropped, alive) = oneshot::channel::<()>();
    let writer = tokio::spawn({
        let fence = fence.clone();
        async move {
            let write = async move {
                sleep(SECOND * 60).await;
                drop(alive);
            };
            class(fence.write("a", write).await)
        }
    });
    tokio::task::yield_now().await;
    advance(SECOND / 2).await;
    assert!(keeper.open_until(Instant::now() + SECOND));
    sleep(SECOND * 9 / 10).await;
    assert!(!dropped.is_closed() && !writer.is_finished());
    let at = Instant::now();
    dropped.closed().await;
    assert!(at.elapsed() < SECOND / 5, "{:?}", at.elapsed());
    assert_eq!(writer.await.unwrap(), FailureClass::NotLeading);
}

/// As after SIGCONT: the answer is there, the deadline has passed, and no timer had its turn.
#[tokio::test(start_paused = true)]
async fn a_write_does_not_take_its_next_step_after_the_deadline() {
    let (keeper, fence) = fence();
    assert!(keeper.open_until(Instant::now() + SECOND));
    let (answer, first) = oneshot::channel::<()>();
    let mut went_on = false;
    let mut write = Box::pin(fence.write("a", async {
        first.await.unwrap();
        went_on = true;
    }));
    assert!((&mut write).now_or_never().is_none());
    advance(SECOND * 2).await;
    answer.send(()).unwrap();
    assert_eq!(class(write.await), FailureClass::NotLeading);
    assert!(!went_on);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_under_way_may_finish_and_is_waited_for() {
    let (keeper, fence) = fence();
    assert!(keeper.open_until(Instant::now() + SECOND * 10));
    let (answer, answered) = oneshot::channel::<u8>();
    let mut write = Box::pin(fence.write("a", async { answered.await.unwrap() }));
    assert!((&mut write).now_or_never().is_none());
    keeper.end_at(Instant::now() + SECOND * 5);
    assert!(keeper.idle().now_or_never().is_none());
    assert_eq!(class(fence.write("b", async {}).await), FailureClass::NotLeading);
    answer.send(7).unwrap();
    assert_eq!(write.await.unwrap(), 7);
    assert!(keeper.idle().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_fence_without_its_keeper_is_closed_and_one_without_election_is_open() {
    let (keeper, fence) = fence();
    assert!(keeper.open_until(Instant::now() + SECOND));
    drop(keeper);
    assert!(!fence.is_open());
    assert!(fence.opened().now_or_never().is_none());
    let always = Fence::always();
    assert!(always.is_open());
    assert!(always.opened().now_or_never().is_some());
    assert_eq!(always.write("a", async { 1 }).await.unwrap(), 1);
}
