//! Whether the API server vouches for the names of who decides on upgrade requests.
//!
//! Owns the look at the two admission policies behind that, the one that writes the name and the one that demands it, with
//! their bindings. Must not write them, nor say what follows. Anything but a clear yes is a no.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::call::read;

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_secs(30);

/// An answer that is older says nothing any more.
const STALE: Duration = Duration::from_secs(90);

/// An API server acts on a policy only a moment after it was made.
const TAKES_EFFECT: SignedDuration = SignedDuration::from_secs(5);

/// Names of the policies; each binding has the name of its policy.
#[derive(Clone, Debug)]
pub struct PolicyNames {
    /// The `ValidatingAdmissionPolicy` of upgrade requests.
    pub request: String,
    /// The `MutatingAdmissionPolicy` that writes who decided.
    pub stamping: String,
}

/// What the last look answered, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Look {
    at: Instant,
    since: Option<Timestamp>,
}

/// The looks at the policies. Clones share them.
#[derive(Clone)]
pub struct Vouching {
    client: Client,
    /// Without names nobody vouches.
    names: Option<Arc<PolicyNames>>,
    last: Arc<watch::Sender<Option<Look>>>,
}

/// Both policies with their bindings.
struct Installed {
    request: DynamicObject,
    request_binding: DynamicObject,
    stamping: DynamicObject,
    stamping_binding: DynamicObject,
}

impl Vouching {
    /// Nothing is looked at before [`Self::run`].
    #[must_use]
    pub fn new(client: Client, names: Option<PolicyNames>) -> Self {
        Self {
            client,
            names: names.map(Arc::new),
            last: Arc::new(watch::channel(None).0),
        }
    }

    /// Since when every decision has passed both policies, as far as is known now.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        let look = (*self.last.borrow())?;
        look.since.filter(|_| look.at.elapsed() < STALE)
    }

    /// Waits for the first look: who decides on something before it would count as unknown. Every call has a deadline, so
    /// this ends.
    pub async fn looked(&self) {
        if self.names.is_some() {
            // The sender lives as long as this.
            let _ = self.last.subscribe().wait_for(Option::is_some).await;
        }
    }

    /// Looks again and again until it is asked to stop.
    pub async fn run(&self, stop: CancellationToken) {
        let Some(names) = &self.names else {
            return stop.cancelled().await;
        };
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
            let answer = match self.installed(names).await {
                Ok(installed) => installed.vouch(),
                Err(problem) => Err(problem),
            };
            self.took(&answer);
        }
    }

    fn took(&self, answer: &Result<Timestamp, String>) {
        let since = answer.as_ref().ok().copied();
        let before = self.last.send_replace(Some(Look {
            at: Instant::now(),
            since,
        }));
        if before.map(|look| look.since) == Some(since) {
            return;
        }
        match answer {
            Ok(since) => info!(%since, "the API server vouches for the names of who decides"),
            Err(problem) => warn!(problem, "decisions count as not verified"),
        }
    }

    async fn installed(&self, names: &PolicyNames) -> Result<Installed, String> {
        let (request, request_binding, stamping, stamping_binding) = futures::try_join!(
            self.get("ValidatingAdmissionPolicy", &names.request),
            self.get("ValidatingAdmissionPolicyBinding", &names.request),
            self.get("MutatingAdmissionPolicy", &names.stamping),
            self.get("MutatingAdmissionPolicyBinding", &names.stamping),
        )?;
        Ok(Installed {
            request,
            request_binding,
            stamping,
            stamping_binding,
        })
    }

    async fn get(&self, kind: &str, name: &str) -> Result<DynamicObject, String> {
        // Untyped: our version of the types is older than the mutating kind.
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let answer = read(&format!("kubernetes:get {}", resource.plural), api.get(name)).await;
        answer.map_err(|failure| format!("{kind} {name}: {failure}"))
    }
}

impl Installed {
    /// Since when every decision has passed both policies, or why not every one does.
    fn vouch(&self) -> Result<Timestamp, String> {
        for (policy, binding) in [
            (&self.request, &self.request_binding),
            (&self.stamping, &self.stamping_binding),
        ] {
            let name = policy.name_any();
            let (rules, bound) = (&policy.data["spec"], &binding.data["spec"]);
            if rules["failurePolicy"] == "Ignore" {
                return Err(format!("policy {name} lets pass what it cannot judge"));
            }
            if bound["policyName"] != *name {
                return Err(format!("the binding {name} binds another policy"));
            }
            let is_narrow = |field: &str| bound.get(field).is_some_and(|value| !is_empty(value));
            if is_narrow("matchResources") || is_narrow("paramRef") {
                return Err(format!("the binding {name} does not hold everywhere"));
            }
        }
        let actions = self.request_binding.data["spec"]["validationActions"].as_array();
        if !actions.is_some_and(|actions| actions.iter().any(|action| action == "Deny")) {
            return Err(format!("the binding {} does not deny", self.request_binding.name_any()));
        }
        let all = [
            &self.request,
            &self.request_binding,
            &self.stamping,
            &self.stamping_binding,
        ];
        let mut since = Timestamp::MIN;
        for object in all {
            if object.metadata.deletion_timestamp.is_some() {
                return Err(format!("{} is being deleted", object.name_any()));
            }
            let made = object.creation_timestamp().ok_or("an object without a time")?.0;
            since = since.max(made);
        }
        since.checked_add(TAKES_EFFECT).map_err(|error| error.to_string())
    }
}

/// Whether a field says nothing; the API server fills some in with defaults.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields
            .iter()
            .all(|(name, value)| name == "matchPolicy" || is_empty(value)),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, second: u8, spec: &Value) -> DynamicObject {
        let at = format!("2026-11-01T00:00:{second:02}Z");
        serde_json::from_value(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "AnyPolicy",
            "metadata": {"name": name, "creationTimestamp": at}, "spec": spec,
        }))
        .unwrap()
    }

    fn installed() -> Installed {
        let defaults = json!({"namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent"});
        Installed {
            request: object("requests", 1, &json!({"failurePolicy": "Fail"})),
            request_binding: object(
                "requests",
                7,
                &json!({"policyName": "requests", "validationActions": ["Audit", "Deny"]}),
            ),
            stamping: object("stamp", 3, &json!({"failurePolicy": "Fail"})),
            stamping_binding: object("stamp", 4, &json!({"policyName": "stamp", "matchResources": defaults})),
        }
    }

    #[test]
    fn all_four_vouch_from_a_moment_after_the_last_was_made() {
        assert_eq!(
            installed().vouch(),
            Ok("2026-11-01T00:00:12Z".parse::<Timestamp>().unwrap())
        );
    }

    #[test]
    fn a_policy_that_does_not_hold_for_every_decision_vouches_for_none() {
        type Edit = fn(&mut Installed);
        let edits: [(Edit, &str); 8] = [
            (
                |all| all.request.data["spec"]["failurePolicy"] = json!("Ignore"),
                "cannot judge",
            ),
            (
                |all| all.stamping.data["spec"]["failurePolicy"] = json!("Ignore"),
                "cannot judge",
            ),
            (
                |all| all.request_binding.data["spec"]["policyName"] = json!("other"),
                "another policy",
            ),
            (
                |all| all.stamping_binding.data["spec"]["policyName"] = json!("other"),
                "another policy",
            ),
            (
                |all| {
                    all.stamping_binding.data["spec"]["matchResources"]["namespaceSelector"] =
                        json!({"matchLabels": {"a": "b"}});
                },
                "everywhere",
            ),
            (
                |all| all.request_binding.data["spec"]["paramRef"] = json!({"name": "x"}),
                "everywhere",
            ),
            (
                |all| all.request_binding.data["spec"]["validationActions"] = json!(["Warn", "Audit"]),
                "not deny",
            ),
            (
                |all| all.stamping.metadata.deletion_timestamp = all.stamping.metadata.creation_timestamp.clone(),
                "deleted",
            ),
        ];
        for (edit, why) in edits {
            let mut all = installed();
            edit(&mut all);
            let problem = all.vouch().unwrap_err();
            assert!(problem.contains(why), "{why}: {problem}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_a_while_and_no_longer() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let names = PolicyNames {
            request: "requests".to_owned(),
            stamping: "stamp".to_owned(),
        };
        let vouching = Vouching::new(client, Some(names));
        assert_eq!(vouching.since(), None);
        let since: Timestamp = "2026-11-01T00:00:12Z".parse().unwrap();
        vouching.took(&Ok(since));
        vouching.looked().await;
        assert_eq!(vouching.since(), Some(since));
        tokio::time::advance(STALE).await;
        assert_eq!(vouching.since(), None);
        vouching.took(&Ok(since));
        vouching.took(&Err("gone".to_owned()));
        assert_eq!(vouching.since(), None);
    }
}
