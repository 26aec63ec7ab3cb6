//! How the auto-approver is put together: its context, what wakes it, when it runs.
//!
//! Owns the wiring only. Must not decide anything about requests.

use std::sync::Arc;

use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::tasks::{Tasks, endless};
use crate::api::InstanceGroup;
use crate::clock;
use crate::cluster::approvals::ApprovalWriter;
use crate::cluster::events::Publisher;
use crate::cluster::stores::WatchState;
use crate::controllers::auto_approver::context::{Context, RequestWakes};
use crate::controllers::auto_approver::soak::{Proof, Soaking};
use crate::controllers::auto_approver::{self, NAME};
use crate::controllers::backoff::Backoff;
use crate::controllers::instance_group::context::{Context as Groups, GuardedRequest};
use crate::metrics::ReconcileMetrics;
use crate::plan::approval::proves;
use crate::plan::evidence::Soaked;

/// What has to be known before anything is decided (case D17).
pub struct Inputs {
    /// How each watch is doing.
    pub watches: Vec<watch::Receiver<WatchState>>,
    /// Whether it is known what was seen of images before.
    pub known: watch::Receiver<bool>,
}

/// The auto-approver before it runs.
pub struct Approver {
    /// What its looks share.
    pub context: Arc<Context>,
    wakes: UnboundedReceiver<ObjectRef<GuardedRequest>>,
}

impl Approver {
    /// Over the same stores as the controller of groups.
    pub fn new(
        groups: &Groups,
        client: &Client,
        instance: &str,
        approved_by: Option<String>,
        metrics: ReconcileMetrics,
    ) -> Self {
        let (sender, wakes) = mpsc::unbounded();
        let fence = groups.fence.clone();
        let context = Context {
            groups: groups.groups.clone(),
            requests: groups.requests.clone(),
            namespaces: groups.namespaces.clone(),
            settings: groups.settings.clone(),
            soaking: Soaking::default(),
            proofs: Arc::default(),
            catalogue: groups.catalogue.clone(),
            server_clock: groups.server_clock.clone(),
            writer: ApprovalWriter::new(client.clone(), fence.clone(), approved_by),
            publisher: Publisher::new(
                client.clone(),
                fence.clone(),
                "sluice/auto-approver",
                instance.to_owned(),
            ),
            wakes: RequestWakes::new(sender),
            backoff: Backoff::default(),
            stop: groups.stop.clone(),
            fence,
            metrics,
            upgrades: groups.upgrades.clone(),
        };
        Self {
            context: Arc::new(context),
            wakes,
        }
    }

    /// Starts it: it works once this process leads and every input was seen once.
    pub fn spawn(self, tasks: &mut Tasks, inputs: Inputs, workers: u16, stop: CancellationToken) {
        tasks.spawn(
            "settings for the auto-approver",
            endless(follow_settings(Arc::clone(&self.context))),
        );
        tasks.spawn(NAME, run(self, inputs, workers, stop));
    }
}

async fn run(approver: Approver, inputs: Inputs, workers: u16, stop: CancellationToken) -> anyhow::Result<()> {
    let Approver { context, mut wakes } = approver;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = context.fence.opened() => break,
            // They would only pile up: who takes over looks at everything.
            _ = wakes.next() => {}
        }
    }
    let Inputs { watches, mut known } = inputs;
    tokio::select! {
        loaded = known.wait_for(|loaded| *loaded) => drop(loaded?),
        () = stop.cancelled() => return Ok(()),
    }
    for mut state in watches {
        tokio::select! {
            followed = state.wait_for(|state| *state == WatchState::Following) => drop(followed?),
            () = stop.cancelled() => return Ok(()),
        }
    }
    look_at_proofs(&context);
    info!("the auto-approver works");
    auto_approver::wake_all(&context);
    auto_approver::run(context, wakes, workers, stop.cancelled_owned()).await;
    Ok(())
}

/// Settings that are different may concern every request.
async fn follow_settings(context: Arc<Context>) {
    let mut settings = context.settings.follow();
    while settings.changed().await.is_ok() {
        look_at_proofs(&context);
        auto_approver::wake_all(&context);
    }
}

fn look_at_proofs(context: &Context) {
    for guarded in context.groups.state() {
        if let Ok(group) = &guarded.0 {
            look_at_proof(context, group, false);
        }
    }
}

/// What a group proves now may be what requests wait for.
fn look_at_proof(context: &Context, group: &InstanceGroup, gone: bool) {
    let name = (group.namespace().unwrap_or_default(), group.name_any());
    let proof = proves(group).filter(|_| !gone).and_then(|(image, since)| {
        let in_force = context.settings.now();
        let schedule = auto_approver::observe::schedule_of(context, &in_force, group)?;
        Some(Proof {
            schedule: schedule.name.clone(),
            image,
            since,
        })
    });
    let changed = context.soaking.saw(&name, proof.as_ref());
    if let Some(ended) = changed.ended {
        let span = Soaked {
            group: format!("{}/{}", name.0, name.1),
            since: ended.since,
            until: clock::now(),
        };
        context.proofs.ended(&ended.schedule, &ended.image, span);
    }
    for (namespace, name) in changed.waiting {
        context.wakes.wake(&namespace, &name);
    }
}

/// A group came, changed or went.
pub fn group_touched(context: &Context, group: &InstanceGroup, gone: bool) {
    look_at_proof(context, group, gone);
    auto_approver::wake_requests_of(context, &group.namespace().unwrap_or_default(), Some(&group.name_any()));
}

/// A request came or changed.
pub fn request_touched(context: &Context, request: &GuardedRequest) {
    context
        .wakes
        .wake(&request.namespace().unwrap_or_default(), &request.name_any());
}

/// A namespace came, changed or went.
pub fn namespace_touched(context: &Context, namespace: &PartialObjectMeta<Namespace>) {
    auto_approver::wake_requests_of(context, &namespace.name_any(), None);
}

/// A watch showed its whole list: objects may have gone in it unseen.
pub fn relisted(context: Option<&Context>) {
    if let Some(context) = context {
        look_at_proofs(context);
        auto_approver::wake_all(context);
    }
}
