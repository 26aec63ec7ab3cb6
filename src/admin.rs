//! The admin server: health, readiness, metrics.
//!
//! Owns the HTTP endpoints. `/healthz` says that the process lives, `/readyz` that every watch follows, and
//! else which one does not and why. Must not offer anything that changes something.

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
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(scrape))
        .with_state(shared);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await?;
    Ok(())
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
