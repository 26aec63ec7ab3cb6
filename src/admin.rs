//! The admin server: health, readiness, metrics.
//!
//! Owns the HTTP endpoints. `/healthz` says that the process lives, `/readyz` that every watch follows, and
//! else which one does not and why. Must not offer anything that changes something; a build for tests lets its clock be put.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cluster::stores::WatchState;
use crate::metrics::Metrics;

/// What readiness depends on.
pub struct Readiness {
    /// Watches by what they watch.
    pub watches: Vec<(&'static str, watch::Receiver<WatchState>)>,
}

impl Readiness {
    /// What is not ready yet, in words; empty = ready.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.watches
            .iter()
            .filter_map(|(kind, state)| match &*state.borrow() {
                WatchState::Following => None,
                WatchState::Starting => Some(format!("{kind}: first list under way")),
                WatchState::Failing(reason) => Some(format!("{kind}: {reason}")),
            })
            .collect()
    }
}

struct Shared {
    readiness: Readiness,
    metrics: Arc<Metrics>,
}

/// Serves until cancelled.
///
/// # Errors
/// When the server ends by itself.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let shared = Arc::new(Shared { readiness, metrics });
    axum::serve(listener, router(shared))
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await?;
    Ok(())
}

fn router(shared: Arc<Shared>) -> Router {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(scrape));
    #[cfg(feature = "testing")]
    let router = router.route("/testing/clock", get(clock).post(put_clock));
    router.with_state(shared)
}

/// How far the clock is ahead, in words such as `48h`.
#[cfg(feature = "testing")]
async fn clock() -> String {
    format!("{:#}\n", crate::clock::testing::ahead())
}

/// Puts the clock ahead of the machine's by the length in the body. Only a build for tests has this.
#[cfg(feature = "testing")]
async fn put_clock(body: String) -> (StatusCode, String) {
    let length = crate::api::duration::parse_duration(body.trim());
    let Some(ahead) = length.and_then(|length| jiff::SignedDuration::try_from(length).ok()) else {
        return (StatusCode::BAD_REQUEST, "write a length such as 48h\n".to_owned());
    };
    crate::clock::testing::put(ahead);
    (StatusCode::OK, format!("{ahead:#}\n"))
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    let missing = shared.readiness.missing();
    if missing.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (
        StatusCode::SERVICE_UNAVAILABLE,
        format!("not ready:\n{}\n", missing.join("\n")),
    )
}

async fn scrape(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    match shared.metrics.text() {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a build with the feature `testing` has a clock that can be put.
    #[tokio::test]
    async fn the_clock_can_be_put_in_builds_for_tests_only() {
        let shared = Arc::new(Shared {
            readiness: Readiness { watches: Vec::new() },
            metrics: Arc::new(Metrics::new()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router(shared)).await });
        let url = format!("http://{address}/testing/clock");
        let answer = reqwest::Client::new().post(url).body("0s").send().await.unwrap();
        let wanted = if cfg!(feature = "testing") { 200 } else { 404 };
        assert_eq!(answer.status().as_u16(), wanted);
    }
}
