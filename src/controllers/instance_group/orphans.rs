//! Requests whose group is gone: somebody took the group's finalizer off by hand, so nobody looks at them any more.
//!
//! Owns letting go of them, so that neither they nor their namespace hang in deletion. Must not touch a request whose group
//! is there, and nothing before the groups were listed once.

use std::sync::Arc;

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use kube::ResourceExt;
use tracing::{info, warn};

use super::context::Context;
use crate::api::UPGRADE_REQUEST_FINALIZER;
use crate::api::upgrade_request::InstanceGroupUpgradeRequest;
use crate::cluster::stores::find;
use crate::plan::step::RequestRef;

/// Where orphans are handed in.
pub struct Orphans {
    sender: UnboundedSender<(String, RequestRef)>,
}

/// Where they come out.
pub struct Found {
    receiver: UnboundedReceiver<(String, RequestRef)>,
}

impl Orphans {
    /// Both ends.
    #[must_use]
    pub fn new() -> (Self, Found) {
        let (sender, receiver) = unbounded();
        (Self { sender }, Found { receiver })
    }
}

/// Hands a request in if it is being deleted, still has our finalizer, and its group is gone. One that does not lead hands
/// nothing in: whoever takes over looks at all.
pub fn look(context: &Context, request: &InstanceGroupUpgradeRequest) {
    if !context.fence.is_open() {
        return;
    }
    let ours = request
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == UPGRADE_REQUEST_FINALIZER);
    if request.metadata.deletion_timestamp.is_none() || !ours {
        return;
    }
    let namespace = request.namespace().unwrap_or_default();
    let of = &request.spec.instance_group_ref;
    let group = find(&context.groups, Some(&namespace), &of.name);
    if group.is_none_or(|group| group.uid().as_deref() != Some(of.uid.as_str())) {
        // The receiver only goes away when the process ends.
        let _ = context
            .orphans
            .sender
            .unbounded_send((namespace, RequestRef::of(request)));
    }
}

/// Looks at all requests: after a list or a take-over, when groups may have gone unseen.
pub fn look_at_all(context: &Context) {
    for guarded in context.requests.state() {
        if let Ok(request) = &guarded.0 {
            look(context, request);
        }
    }
}

impl Found {
    /// Lets go of what is handed in, until the process ends.
    pub async fn release(mut self, context: Arc<Context>) {
        while let Some((namespace, request)) = self.receiver.next().await {
            match context.request_writer.release(&namespace, &request).await {
                Ok(_) => info!(
                    namespace,
                    request = request.name,
                    "let go of a request whose group is gone"
                ),
                Err(failure) => {
                    warn!(namespace, request = request.name, %failure, "a request whose group is gone stays");
                }
            }
        }
    }
}
