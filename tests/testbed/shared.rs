//! Owns the testbeds that most tests share, since starting one costs seconds.
//!
//! It must not be changed by a test in a way that others see: own names for everything, faults with a match, and
//! an own testbed for whatever stops, pauses or resets a part.

use anyhow::{Result, anyhow};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::{Testbed, TestbedOptions};

/// The shared testbed; the first caller starts it. It ends with this process, by its watchdog.
///
/// Each test has its own runtime, and this outlives that of the test that happens to come first: nothing that a
/// testbed keeps may belong to a runtime. Its children are waited for by threads, its clients made for each caller.
pub async fn shared() -> Result<&'static Testbed> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    started_once(&SHARED, "shared", TestbedOptions::default()).await
}

/// One for an operator and its chart: the chart's admission policies bind everybody on a cluster, and tests of the bare
/// definitions want none.
pub async fn shared_with_chart() -> Result<&'static Testbed> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    started_once(&SHARED, "chart", TestbedOptions::default()).await
}

/// The same with a scheduler and pods that live, a testbed of its own: tests of the other one have no live leases.
pub async fn shared_with_workloads() -> Result<&'static Testbed> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    started_once(&SHARED, "workloads", TestbedOptions::default().workloads()).await
}

/// Another one with pods, for tests that bring something there can be only one of: each has it to itself until it drops
/// its turn. They leave no Auto Scaling groups behind.
pub async fn shared_in_turns() -> Result<(&'static Testbed, MutexGuard<'static, ()>)> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    let testbed = started_once(&SHARED, "turns", TestbedOptions::default().workloads()).await?;
    Ok((testbed, turn))
}

/// Starts a testbed unless it was started.
pub async fn started_once(
    cell: &'static OnceCell<Result<Testbed, String>>,
    name: &str,
    options: TestbedOptions,
) -> Result<&'static Testbed> {
    let started = cell.get_or_init(|| async {
        let started = Testbed::start_with(name, options).await;
        started.map_err(|problem| format!("{problem:#}"))
    });
    // A second try would fail like the first and cost as long.
    let started = started.await.as_ref();
    started.map_err(|problem| anyhow!("the shared testbed {name} did not start: {problem}"))
}
