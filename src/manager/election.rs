//! Leader election in this process: from the flags to a running election and the fence that follows from it.
//!
//! Owns the rule for the Lease's namespace and the order at the end: reconciles first, then the Lease. Must not decide who
//! leads.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::tasks::Tasks;
use crate::cli::ElectionArguments;
use crate::clock;
use crate::cluster::lease::{Election, KubeLease, identity};
use crate::cluster::stores::WatchState;
use crate::fence::{Fence, Keeper, fence};
use crate::metrics::Metrics;
use crate::plan::leadership::{Candidate, Timing};

/// Name of the task.
const NAME: &str = "leader election";
/// How long giving the Lease back may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where a pod finds the namespace of its `ServiceAccount`.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// This process's part in the election.
pub struct Leadership {
    /// What every write passes.
    pub fence: Fence,
    /// How the Lease fares, for readiness; `None` without an election.
    pub state: Option<watch::Receiver<WatchState>>,
    /// Namespace of the operator's own objects, where it is known.
    pub namespace: Option<String>,
    part: Option<Part>,
    release: CancellationToken,
}

/// What the running election takes over.
struct Part {
    timing: Timing,
    namespace: String,
    name: String,
    keeper: Keeper,
    reporter: watch::Sender<WatchState>,
}

impl Leadership {
    /// Reads the flags; nothing runs yet.
    ///
    /// # Errors
    /// Times that do not fit, or no namespace to keep the Lease in.
    pub fn prepare(arguments: &ElectionArguments) -> anyhow::Result<Self> {
        let release = CancellationToken::new();
        if !arguments.leader_elect {
            warn!("no leader election: no other process may run for these groups");
            let home = arguments.leader_elect_resource_namespace.as_deref();
            let pod = std::env::var("POD_NAMESPACE").ok();
            return Ok(Self {
                fence: Fence::always(),
                state: None,
                namespace: namespace(home, pod.as_deref(), Path::new(NAMESPACE_FILE)).ok(),
                part: None,
                release,
            });
        }
        let timing = Timing::new(
            arguments.leader_elect_lease_duration,
            arguments.leader_elect_renew_deadline,
            arguments.leader_elect_retry_period,
        )
        .map_err(anyhow::Error::msg)?;
        let namespace = namespace(
            arguments.leader_elect_resource_namespace.as_deref(),
            std::env::var("POD_NAMESPACE").ok().as_deref(),
            Path::new(NAMESPACE_FILE),
        )?;
        let home = namespace.clone();
        let (keeper, fence) = fence();
        let (reporter, state) = watch::channel(WatchState::Starting);
        let part = Part {
            timing,
            namespace,
            name: arguments.leader_elect_resource_name.clone(),
            keeper,
            reporter,
        };
        Ok(Self {
            fence,
            state: Some(state),
            namespace: Some(home),
            part: Some(part),
            release,
        })
    }

    /// Takes part from now on, as a task that ends the process when leadership is lost. The client should be nobody else's.
    pub fn spawn(
        &mut self,
        tasks: &mut Tasks,
        client: Client,
        metrics: &Metrics,
        host: &str,
        stop: &CancellationToken,
    ) {
        let observer = metrics.election_observer();
        let Some(part) = self.part.take() else {
            observer.leads(true);
            return;
        };
        let candidate = Candidate {
            identity: identity(host),
            patience: part.timing.lease_duration(),
        };
        info!(
            identity = candidate.identity,
            namespace = part.namespace,
            lease = part.name,
            "takes part in leader election"
        );
        let election = Election {
            store: KubeLease::new(client, &part.namespace, &part.name),
            candidate,
            timing: part.timing,
            keeper: part.keeper,
            observer,
            state: part.reporter,
            clock: clock::now,
        };
        let (stop, release) = (stop.clone(), self.release.clone());
        tasks.spawn(NAME, async move {
            election.run(stop.clone(), release).await?;
            // A standby ends with the others when it is asked to; on its own account it never does.
            stop.cancelled().await;
            Ok(())
        });
    }

    /// Gives the Lease back, if this process holds it; all reconciles have to be finished.
    ///
    /// # Errors
    /// The loss of leadership, if that came first.
    pub async fn give_back(self, tasks: &mut Tasks) -> anyhow::Result<()> {
        self.release.cancel();
        if self.state.is_none() {
            return Ok(());
        }
        if let Ok(ended) = tokio::time::timeout(PATIENCE, tasks.ended(NAME)).await {
            return ended;
        }
        warn!("the Lease could not be given back in time: it is left to expire");
        Ok(())
    }
}

/// Where the Lease lives. Guessing would be worse than refusing: two processes with different guesses would both lead.
fn namespace(flag: Option<&str>, pod: Option<&str>, file: &Path) -> anyhow::Result<String> {
    let given = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    given(flag)
        .or_else(|| given(pod))
        .or_else(|| given(std::fs::read_to_string(file).ok().as_deref()))
        .context(
            "leader election needs a namespace for its Lease, and this is no pod: set --leader-elect-resource-namespace or \
             POD_NAMESPACE to the namespace that the operator is installed in, or --leader-elect=false if no other process \
             runs",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_given_or_the_pods_own_and_never_guessed() {
        let here = Path::new("/no/such/file");
        assert_eq!(namespace(Some("a"), Some("b"), here).unwrap(), "a");
        assert_eq!(namespace(Some(""), Some("b"), here).unwrap(), "b");
        let told = namespace(None, Some(" "), here).unwrap_err().to_string();
        for way_out in [
            "--leader-elect-resource-namespace",
            "POD_NAMESPACE",
            "--leader-elect=false",
        ] {
            assert!(told.contains(way_out), "{told}");
        }
    }
}
