//! Events about groups and requests.
//!
//! Owns publishing. One Event for each transition, made directly: the stock recorder merges Events of one reason and keeps
//! the first text, which would hide which node or which image it was. A failure to publish is logged and never fails a
//! reconcile. Must not hold secrets or user data.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tracing::warn;

use super::call::write;
use crate::fence::Fence;
use crate::plan::step::Notice;

/// Longest note of an Event, in bytes (API validation of events.k8s.io/v1).
const NOTE_LIMIT: usize = 1024;

/// Publishes Events.
#[derive(Clone)]
pub struct Publisher {
    client: Client,
    fence: Fence,
    controller: &'static str,
    instance: String,
}

impl Publisher {
    /// A publisher for a controller behind this fence; `instance` tells replicas apart.
    #[must_use]
    pub fn new(client: Client, fence: Fence, controller: &'static str, instance: String) -> Self {
        Self {
            client,
            fence,
            controller,
            instance,
        }
    }

    /// Publishes one Event.
    pub async fn publish(&self, about: &ObjectReference, notice: &Notice, now: Timestamp) {
        let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some(name_stem(about.name.as_deref().unwrap_or("sluice"))),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            action: Some("Reconcile".to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(&notice.message)),
            reason: Some(notice.reason.to_owned()),
            regarding: Some(about.clone()),
            reporting_controller: Some(self.controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if notice.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let parameters = PostParams::default();
        let create = api.create(&parameters, &event);
        if let Err(failure) = write(&self.fence, "kubernetes:create events", create).await {
            warn!(reason = notice.reason, %failure, "an Event could not be published");
        }
    }
}

/// What the server completes to a name of at most 253 characters.
fn name_stem(name: &str) -> String {
    let stem: String = name.chars().take(240).collect();
    format!("{}-", stem.trim_end_matches(['-', '.']))
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(NOTE_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ü".repeat(600)).len(), 1024);
        assert_eq!(cut(&format!("a{}", "ü".repeat(600))).len(), 1023);
    }
}
