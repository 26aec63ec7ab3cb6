//! Objects that the API server holds and that cannot be read as what they should be.
//!
//! Owns telling so, in the log and as one Warning Event for each object and reason, however often it is seen. Must not
//! repeat a manifest's text: an error may quote user data.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use k8s_openapi::api::core::v1::ObjectReference;
use tracing::error;

use crate::clock;
use crate::cluster::events::Publisher;
use crate::plan::step::Notice;

/// Longest value that is quoted; a script or a password is longer or has spaces.
const QUOTED: usize = 16;

/// What was told already, and the way to tell more.
pub struct Unreadable {
    told: Mutex<HashMap<String, String>>,
    sender: UnboundedSender<(ObjectReference, String)>,
}

/// What is still to be told.
pub struct Untold(UnboundedReceiver<(ObjectReference, String)>);

impl Unreadable {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> (Self, Untold) {
        let (sender, receiver) = unbounded();
        let told = Mutex::default();
        (Self { told, sender }, Untold(receiver))
    }

    /// An object was seen that cannot be read. Told once for each reason.
    pub fn saw(&self, object: ObjectReference, reason: &str) {
        let uid = object.uid.clone().unwrap_or_default();
        let before = self.lock().insert(uid, reason.to_owned());
        if before.as_deref() != Some(reason) {
            // The receiver only goes away when the process ends.
            let _ = self.sender.unbounded_send((object, without_text(reason)));
        }
    }

    /// An object is gone, or can be read now.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Untold {
    /// Tells as long as the process lives.
    pub async fn tell(mut self, publisher: Publisher) {
        while let Some((object, reason)) = self.0.next().await {
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

    fn object(uid: &str) -> ObjectReference {
        ObjectReference {
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        }
    }

    #[test]
    fn each_object_and_reason_is_told_once() {
        let (unreadable, mut untold) = Unreadable::new();
        for (uid, reason) in [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "y")] {
            unreadable.saw(object(uid), reason);
        }
        unreadable.forget("a");
        unreadable.saw(object("a"), "y");
        drop(unreadable);
        let mut told = Vec::new();
        while let Ok((object, reason)) = untold.0.try_recv() {
            told.push(format!("{}{reason}", object.uid.unwrap()));
        }
        assert_eq!(told, ["ax", "bx", "ay", "ay"]);
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
