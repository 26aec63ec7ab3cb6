//! Keeps what was seen of images: read once this process leads, written when it changed.
//!
//! Owns when that happens, and who may go on only after it. Must not judge what was seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tracing::{info, warn};

use super::tasks::{Tasks, endless};
use crate::aws::catalogue::Catalogue;
use crate::cluster::evidence::{EvidenceKeeper, Kept};
use crate::controllers::auto_approver::context::Proofs;
use crate::controllers::backoff::Backoff;
use crate::controllers::instance_group::context::Context;
use crate::fence::Fence;

/// How often it is looked whether something changed; only our own memory is read.
const LOOK: Duration = Duration::from_secs(1);
/// Name for the pauses after failures.
const PAUSES: &str = "evidence";

/// Starts the task; what it answers turns true once it is known what was seen of images before.
pub fn spawn(
    tasks: &mut Tasks,
    context: &Context,
    client: &Client,
    namespace: &str,
    proofs: Option<Arc<Proofs>>,
) -> watch::Receiver<bool> {
    let (loaded, known) = watch::channel(false);
    let fence = context.fence.clone();
    let keeper = EvidenceKeeper::new(client.clone(), namespace, fence.clone());
    let keep = keep(
        keeper,
        context.catalogue.clone(),
        proofs.unwrap_or_default(),
        fence,
        loaded,
    );
    tasks.spawn("what was seen of images", endless(keep));
    known
}

/// Reads what an earlier leader kept, then writes what changes, until the process ends.
async fn keep(
    keeper: EvidenceKeeper,
    catalogue: Catalogue,
    proofs: Arc<Proofs>,
    fence: Fence,
    loaded: watch::Sender<bool>,
) {
    // Not before: the one who led until a moment ago wrote until then.
    fence.opened().await;
    let backoff = Backoff::default();
    let mut kept = loop {
        match keeper.load().await {
            Ok(kept) => break kept,
            Err(failure) => {
                let pause = backoff.failed(PAUSES, failure.class);
                warn!(%failure, ?pause, "what was seen of images cannot be read: nothing is approved automatically until it can");
                tokio::time::sleep(pause).await;
            }
        }
    };
    catalogue.restore(kept.parameters.clone());
    proofs.restore(kept.soak.clone());
    info!(
        parameters = kept.parameters.len(),
        "knows what was seen of images before"
    );
    loaded.send_replace(true);
    backoff.rested(PAUSES);
    let mut pause = LOOK;
    loop {
        tokio::time::sleep(pause).await;
        let now = Kept {
            parameters: known(&catalogue),
            soak: proofs.record(),
        };
        pause = match keeper.save(&kept, &now).await {
            Ok(()) => {
                kept = now;
                backoff.rested(PAUSES);
                LOOK
            }
            Err(failure) => {
                let pause = backoff.failed(PAUSES, failure.class);
                warn!(%failure, ?pause, "what was seen of images cannot be kept; tried again");
                pause.max(LOOK)
            }
        };
    }
}

/// Values over time, of parameters that had one.
fn known(catalogue: &Catalogue) -> BTreeMap<String, crate::plan::evidence::ParameterHistory> {
    let mut all = catalogue.all_histories();
    all.retain(|_, history| history.current.is_some());
    all
}
