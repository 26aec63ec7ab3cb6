//! Owns the one testbed that most tests share, since starting one costs seconds.
//!
//! It must not be changed by a test in a way that others see: own names for everything, faults with a match, and
//! an own testbed for whatever stops, pauses or resets a part.

use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

use super::Testbed;

/// The shared testbed; the first caller starts it. It ends with this process, by its watchdog.
///
/// Each test has its own runtime, and this outlives that of the test that happens to come first: nothing that a
/// testbed keeps may belong to a runtime. Its children are waited for by threads, its clients made for each caller.
pub async fn shared() -> Result<&'static Testbed> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    let started =
        SHARED.get_or_init(|| async { Testbed::start("shared").await.map_err(|problem| format!("{problem:#}")) });
    // A second try would fail like the first and cost as long.
    started
        .await
        .as_ref()
        .map_err(|problem| anyhow!("the shared testbed did not start: {problem}"))
}
