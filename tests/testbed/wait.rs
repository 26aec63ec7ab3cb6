//! Owns waiting: polling with a deadline, and an error that says what was waited for.
//!
//! It must not be given a fixed time to sleep; whoever waits says what for.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout_at};

const INTERVAL: Duration = Duration::from_millis(50);

/// Ask `probe` until it answers `Some`, or fail once `deadline` has passed.
///
/// An error of the probe does not end the wait: it is kept as the last thing seen, so a probe may `bail!` with
/// how far things are.
pub async fn until<T>(deadline: Duration, what: &str, mut probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + deadline;
    let mut seen = None;
    let mut tries = 0_u32;
    loop {
        tries += 1;
        match timeout_at(end, probe()).await {
            Ok(Ok(Some(found))) => return Ok(found),
            Ok(Ok(None)) => seen = None,
            Ok(Err(problem)) => seen = Some(format!("{problem:#}")),
            Err(_) => {
                seen = Some(format!(
                    "try {tries} had no answer; before: {}",
                    seen.as_deref().unwrap_or("nothing")
                ));
            }
        }
        if Instant::now() + INTERVAL > end {
            let last = seen.as_deref().unwrap_or("nothing yet");
            bail!("waited {deadline:?} in vain for {what} ({tries} tries); last seen: {last}");
        }
        sleep(INTERVAL).await;
    }
}
