//! Objects that the API server holds and that cannot be read as what they should be.
//!
//! Owns telling so, in the log and as one Warning Event for each object and reason, however often it is seen. Must not
//! repeat a manifest's text: an error may quote user data.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use k8s_openapi::api::core::v1::ObjectReference;
use tracing::error;

use crate::clock;
use crate::cluster::events::Publisher;
use crate::fence::Fence;
use crate::plan::step::Notice;

/// Longest value that is quoted; a script or a password is longer or has spaces.
const QUOTED: usize = 16;

/// What was told already, and the way to tell more.
pub struct Unreadable {
    told: Reasons,
    sender: UnboundedSender<(ObjectReference, String)>,
}

/// By uid: why an object cannot be read now.
type Reasons = Arc<Mutex<HashMap<String, String>>>;

/// What is still to be told.
pub struct Untold {
    receiver: UnboundedReceiver<(ObjectReference, String)>,
    told: Reasons,
}

impl Unreadable {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> (Self, Untold) {
        let (sender, receiver) = unbounded();
        let told = Reasons::default();
        let untold = Untold {
            receiver,
            told: Arc::clone(&told),
        };
        (Self { told, sender }, untold)
    }

    /// An object was seen that cannot be read. Told once for each reason.
    pub fn saw(&self, object: ObjectReference, reason: &str) {
        let uid = object.uid.clone().unwrap_or_default();
        let before = lock(&self.told).insert(uid, reason.to_owned());
        if before.as_deref() != Some(reason) {
            // The receiver only goes away when the process ends.
            let _ = self.sender.unbounded_send((object, reason.to_owned()));
        }
    }

    /// An object is gone, or can be read now.
    pub fn forget(&self, uid: &str) {
        lock(&self.told).remove(uid);
    }
}

fn lock(reasons: &Reasons) -> MutexGuard<'_, HashMap<String, String>> {
    reasons.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Untold {
    /// Tells as long as the process lives, once it leads.
    pub async fn tell(mut self, publisher: Publisher, fence: Fence) {
        fence.opened().await;
        while let Some((object, reason)) = self.next().await {
            let reason = without_text(&reason);
            let kind = object.kind.as_deref().unwrap_or("object");
            let (name, namespace) = (object.name.as_deref(), object.namespace.as_deref());
            error!(kind, namespace, object = name, reason, "cannot be read");
            let notice = Notice {
                warning: true,
                reason: "Unreadable",
                message: format!("cannot be read as {kind}, so nothing is done for it: {reason}"),
            };
            publisher.publish(&object, &notice, clock::now()).await;
        }
    }

    /// The next that still holds: a standby may have seen it long before it leads.
    async fn next(&mut self) -> Option<(ObjectReference, String)> {
        loop {
            let (object, reason) = self.receiver.next().await?;
            let now = lock(&self.told).get(object.uid.as_deref().unwrap_or_default()).cloned();
            if now.as_ref() == Some(&reason) {
                return Some((object, reason));
            }
        }
    }
}

/// The reason without the text that it quotes, unless that is one short word.
fn without_text(reason: &str) -> String {
    let (Some(start), Some(end)) = (reason.find('"'), reason.rfind('"')) else {
        return reason.to_owned();
    };
    let quoted = reason.get(start + 1..end).unwrap_or_default();
    if quoted.len() <= QUOTED && quoted.chars().all(char::is_alphanumeric) {
        return reason.to_owned();
    }
    format!("{}…{}", &reason[..=start], &reason[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn object(uid: &str) -> ObjectReference {
        ObjectReference {
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        }
    }

    /// All that is told at one time, each as uid and reason.
    fn told(untold: &mut Untold) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(Some((object, reason))) = untold.next().now_or_never() {
            told.push(format!("{}{reason}", object.uid.unwrap()));
        }
        told
    }

    #[test]
    fn each_object_and_reason_is_told_once() {
        let (unreadable, mut untold) = Unreadable::new();
        for (uid, reason) in [("a", "x"), ("a", "x"), ("b", "x")] {
            unreadable.saw(object(uid), reason);
        }
        assert_eq!(told(&mut untold), ["ax", "bx"]);
        for (uid, reason) in [("a", "y"), ("a", "y")] {
            unreadable.saw(object(uid), reason);
        }
        assert_eq!(told(&mut untold), ["ay"]);
        unreadable.forget("a");
        unreadable.saw(object("a"), "y");
        assert_eq!(told(&mut untold), ["ay"]);
    }

    #[test]
    fn what_was_mended_before_anybody_told_is_not_told() {
        let (unreadable, mut untold) = Unreadable::new();
        for (uid, reason) in [("a", "x"), ("b", "x"), ("c", "x"), ("c", "y")] {
            unreadable.saw(object(uid), reason);
        }
        unreadable.forget("a");
        assert_eq!(told(&mut untold), ["bx", "cy"]);
    }

    #[test]
    fn text_is_not_repeated() {
        for (reason, shown) in [
            (
                r#"Invalid type string "three". Expected i32"#,
                r#"Invalid type string "three". Expected i32"#,
            ),
            (
                "Invalid type string \"#!/bin/bash\nexport A=\"b\"\". Expected a sequence",
                r#"Invalid type string "…". Expected a sequence"#,
            ),
            ("missing field `spec`", "missing field `spec`"),
            ("half a \" quote", "half a \" quote"),
        ] {
            assert_eq!(without_text(reason), shown);
        }
    }
}
