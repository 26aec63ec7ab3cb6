//! Evictions: asking the API server to delete a pod as far as its budgets allow.
//!
//! Owns the request and the meaning of its answers (Kubernetes, "API-initiated eviction", and the API server's
//! `pkg/registry/core/pod/storage/eviction.go`). Must not retry: a refusal is an answer, and whoever asks decides when to ask
//! again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use kube::api::{ObjectMeta, PostParams};
use kube::core::Status;
use kube::{Api, Client};

use super::call::{failure, late};
use crate::fence::Fence;
use crate::plan::facts::workload::{EvictionKind, PodId};

/// How the call is named in a failure.
const ACTION: &str = "kubernetes:create pods/eviction";

/// How long one eviction may take. While somebody else writes the pod or its budget, the API server tries 20 times, half a
/// second apart, before it answers with the conflict; the usual deadline would end just before that answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// Evicts pods.
#[derive(Clone)]
pub struct Evictions {
    client: Client,
    fence: Fence,
}

impl Evictions {
    /// Evictions over a client that does not retry ([`super::call::client`]): kube's default one asks a budget that says no
    /// again and again for minutes, and answers nothing meanwhile.
    #[must_use]
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    /// Asks once for the eviction of this very pod; one that has its name meanwhile is not touched.
    pub async fn evict(&self, pod: &PodId) -> EvictionKind {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let eviction = eviction(pod);
        // Not `Api::evict`: kube 5.0 writes `delete_options`, which the API server passes over, and the uid with it.
        let parameters = PostParams::default();
        let request = api.create_subresource::<_, Status>("eviction", &pod.name, &parameters, &eviction);
        let answer = self.fence.write(ACTION, tokio::time::timeout(DEADLINE, request)).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return EvictionKind::Failed(failure),
        };
        match answer {
            Ok(Ok(status)) if !status.is_failure() => EvictionKind::Accepted,
            Ok(Ok(status)) => refusal(&kube::Error::Api(status.boxed())),
            Ok(Err(error)) => refusal(&error),
            Err(_) => EvictionKind::Failed(late(ACTION, DEADLINE)),
        }
    }
}

fn eviction(pod: &PodId) -> Eviction {
    Eviction {
        metadata: ObjectMeta {
            name: Some(pod.name.clone()),
            namespace: Some(pod.namespace.clone()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            preconditions: Some(Preconditions {
                uid: Some(pod.uid.clone()),
                ..Preconditions::default()
            }),
            ..DeleteOptions::default()
        }),
    }
}

/// What an answer other than "accepted" means.
fn refusal(error: &kube::Error) -> EvictionKind {
    let kube::Error::Api(status) = error else {
        return EvictionKind::Failed(failure(ACTION, error));
    };
    let cause = |reason: &str| {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().find(|cause| cause.reason == reason)
    };
    match status.code {
        // By its reason: a 404 that a proxy made says nothing about the pod. What is not found may also be the namespace.
        404 if status.reason == "NotFound" => EvictionKind::Gone,
        // Two places of the API server check the uid, in words of their own.
        409 if ["UID in the precondition", "UID in precondition"]
            .iter()
            .any(|words| status.message.contains(words)) =>
        {
            EvictionKind::Gone
        }
        429 => match cause("DisruptionBudget") {
            Some(cause) if cause.message.is_empty() => EvictionKind::Budget(status.message.clone()),
            Some(cause) => EvictionKind::Budget(cause.message.clone()),
            None => EvictionKind::Throttled,
        },
        500 if status.message.contains("more than one PodDisruptionBudget") => {
            EvictionKind::SeveralBudgets(status.message.clone())
        }
        403 if cause("NamespaceTerminating").is_some() => EvictionKind::NamespaceTerminating,
        _ => EvictionKind::Failed(failure(ACTION, error)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::facts::FailureClass;

    fn answer(status: Value) -> EvictionKind {
        refusal(&kube::Error::Api(Box::new(serde_json::from_value(status).unwrap())))
    }

    #[test]
    fn the_uid_goes_with_the_request() {
        let pod = PodId {
            namespace: "team".to_owned(),
            name: "web-0".to_owned(),
            uid: "u1".to_owned(),
        };
        assert_eq!(
            serde_json::to_value(eviction(&pod)).unwrap(),
            json!({
                "apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": { "name": "web-0", "namespace": "team" },
                "deleteOptions": { "preconditions": { "uid": "u1" } },
            })
        );
    }

    /// Each as the API server words it.
    #[test]
    fn answers_have_their_meaning() {
        let budget = "The disruption budget web needs 2 healthy pods and has 2 currently";
        let several =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        for (status, kind) in [
            (
                json!({ "status": "Failure", "code": 404, "reason": "NotFound", "message": "pods \"web-0\" not found",
                        "details": { "name": "web-0", "kind": "pods" } }),
                EvictionKind::Gone,
            ),
            (
                json!({ "status": "Failure", "code": 409, "reason": "Conflict",
                        "message": "Operation cannot be fulfilled on Pod \"web-0\": the UID in the precondition (u1) does not \
                                    match the UID in record (u2). The object might have been deleted and then recreated" }),
                EvictionKind::Gone,
            ),
            (
                json!({ "status": "Failure", "code": 409, "reason": "Conflict",
                        "message": "Operation cannot be fulfilled on pods \"web-0\": Precondition failed: UID in precondition: \
                                    u1, UID in object meta: u2" }),
                EvictionKind::Gone,
            ),
            (
                json!({ "status": "Failure", "code": 429, "reason": "TooManyRequests",
                        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                        "details": { "causes": [{ "reason": "DisruptionBudget", "message": budget }] } }),
                EvictionKind::Budget(budget.to_owned()),
            ),
            (
                json!({ "status": "Failure", "code": 429, "reason": "TooManyRequests",
                        "message": "the server has received too many requests and has asked us to try again later",
                        "details": { "retryAfterSeconds": 1 } }),
                EvictionKind::Throttled,
            ),
            (
                json!({ "code": 429, "message": "", "reason": "" }),
                EvictionKind::Throttled,
            ),
            (
                json!({ "status": "Failure", "code": 500, "message": several }),
                EvictionKind::SeveralBudgets(several.to_owned()),
            ),
            (
                json!({ "status": "Failure", "code": 403, "reason": "Forbidden",
                        "message": "pods \"web-0\" is forbidden: unable to create new content in namespace team because it is \
                                    being terminated",
                        "details": { "name": "web-0", "kind": "pods", "causes": [{ "reason": "NamespaceTerminating",
                                     "message": "namespace team is being terminated", "field": "metadata.namespace" }] } }),
                EvictionKind::NamespaceTerminating,
            ),
        ] {
            assert_eq!(answer(status.clone()), kind, "{status}");
        }
    }

    #[test]
    fn whatever_else_comes_is_a_failure_with_its_class() {
        for (status, class) in [
            (
                json!({ "code": 403, "reason": "Forbidden", "message": "no right" }),
                FailureClass::Denied,
            ),
            (
                json!({ "code": 409, "reason": "Conflict", "message": "the object has been modified" }),
                FailureClass::Busy,
            ),
            (
                json!({ "code": 500, "reason": "InternalError", "message": "etcd" }),
                FailureClass::Unavailable,
            ),
            (
                json!({ "code": 504, "reason": "Timeout", "message": "conflicts" }),
                FailureClass::Unavailable,
            ),
            (
                json!({ "code": 404, "reason": "Failed to parse error data", "message": "<html>" }),
                FailureClass::NotFound,
            ),
        ] {
            let EvictionKind::Failed(failure) = answer(status.clone()) else {
                panic!("{status}");
            };
            assert_eq!((failure.class, failure.action.as_str()), (class, ACTION), "{status}");
        }
        let broken = kube::Error::Service(Box::new(std::io::Error::other("connection reset")));
        assert!(
            matches!(refusal(&broken), EvictionKind::Failed(failure) if failure.class == FailureClass::Unavailable)
        );
    }
}
