//! Owns the one testbed that most tests share, since starting one costs seconds.
//!
//! It must not be changed by a test in a way that others see: own names for everything, faults with a match, and
//! an own testbed for whatever stops, pauses or resets a part.

use std::sync::mpsc;

use anyhow::{Context, Result, anyhow};
use tokio::sync::OnceCell;

use super::Testbed;

/// The shared testbed; the first caller starts it. It ends with this process, by its watchdog.
pub async fn shared() -> Result<&'static Testbed> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    let started = SHARED.get_or_init(|| async {
        let start = tokio::task::spawn_blocking(start_on_own_runtime).await;
        start
            .map_err(anyhow::Error::from)
            .flatten()
            .map_err(|problem| format!("{problem:#}"))
    });
    // A second try would fail like the first and cost as long.
    started
        .await
        .as_ref()
        .map_err(|problem| anyhow!("the shared testbed did not start: {problem}"))
}

/// Its runtime outlives that of the test that happens to come first.
fn start_on_own_runtime() -> Result<Testbed> {
    let (answer, answered) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => {
                let _ = answer.send(runtime.block_on(Testbed::start("shared")));
                runtime.block_on(std::future::pending::<()>());
            }
            Err(problem) => drop(answer.send(Err(problem.into()))),
        }
    });
    answered.recv().context("the thread of the shared testbed has ended")?
}
