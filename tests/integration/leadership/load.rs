//! Work without end: groups that come and change, whoever leads.
//!
//! Owns making the work, and waiting until all of it is done. Must not know of leaders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sluice::api::InstanceGroup;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::testbed::Testbed;

/// Namespace of the groups.
const TEAM: &str = "team";
/// The parameter behind the image of the groups.
const PARAMETER: &str = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";
/// A new group, or a change of one, at this pace: about what the request rates let through.
const PACE: Duration = Duration::from_millis(400);

/// The work under way.
pub struct Load {
    made: Arc<AtomicUsize>,
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

impl Load {
    pub async fn start(testbed: &Testbed) -> Result<Self> {
        let at = "2026-11-01T12:00:00Z";
        let image = testbed.aws().publish_image("leadership", "x86_64", at).await?;
        testbed.aws().set_parameter(PARAMETER, &image, at).await?;
        testbed.kubectl(&["create", "namespace", TEAM]).await?.success()?;
        let path = format!("{}/examples/locked-group.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let mut manifest: Value = serde_saphyr::from_str(&text)?;
        manifest["metadata"]["namespace"] = TEAM.into();
        manifest["spec"]["eks"]["minSize"] = 0.into();
        let groups: Api<InstanceGroup> = Api::namespaced(testbed.admin(), TEAM);
        let (made, stop) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let task = tokio::spawn(work(groups, manifest, Arc::clone(&made), stop.clone()));
        Ok(Self { made, stop, task })
    }

    /// Ends the work, and waits until every group is as its manifest says.
    pub async fn stop_and_settle(self, testbed: &Testbed) -> Result<()> {
        self.stop.cancel();
        self.task.await??;
        let made = self.made.load(Ordering::Relaxed);
        let groups: Api<InstanceGroup> = Api::namespaced(testbed.admin(), TEAM);
        let settled = testbed.until(Duration::from_mins(2), "all groups to be done", async || {
            let all = groups.list(&kube::api::ListParams::default()).await?.items;
            ensure!(all.len() == made, "{} of {made} groups", all.len());
            let done = |group: &&InstanceGroup| {
                let status = group.status.as_ref();
                status.is_some_and(|status| {
                    status.current_state.as_deref() == Some("Ready")
                        && status.observed_generation == group.metadata.generation
                })
            };
            let count = all.iter().filter(done).count();
            ensure!(count == made, "{count} of {made} are done");
            Ok(Some(()))
        });
        settled.await?;
        eprintln!("leadership: {made} groups under load are done");
        Ok(())
    }
}

/// Makes groups, and changes the largest size of those before.
async fn work(
    groups: Api<InstanceGroup>,
    manifest: Value,
    made: Arc<AtomicUsize>,
    stop: CancellationToken,
) -> Result<()> {
    let mut pace = tokio::time::interval(PACE);
    for round in 0_usize.. {
        tokio::select! {
            _ = pace.tick() => {}
            () = stop.cancelled() => break,
        }
        if round % 3 == 2 {
            let name = format!("group{}", made.load(Ordering::Relaxed) / 2);
            let change = json!({ "spec": { "eks": { "maxSize": 5 + round % 7 } } });
            groups
                .patch(&name, &PatchParams::default(), &Patch::Merge(&change))
                .await?;
            continue;
        }
        let number = made.load(Ordering::Relaxed);
        let mut group = manifest.clone();
        group["metadata"]["name"] = format!("group{number}").into();
        groups
            .create(&PostParams::default(), &serde_json::from_value(group)?)
            .await?;
        made.store(number + 1, Ordering::Relaxed);
    }
    Ok(())
}
