//! Somebody who speaks to the API server: a person, a service account, the operator.
//!
//! Owns sending writes and reading refusals, and the rights that a test gives. It must not know what may be refused.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::testbed::credentials::config_from;
use crate::testbed::installation::HOME;
use crate::testbed::{Testbed, wait};

pub const GROUPS: &str = "instancegroups";
pub const REQUESTS: &str = "instancegroupupgraderequests";
pub const OURS: &str = "instancemgr.keikoproj.io";
pub const OPERATOR: &str = "system:serviceaccount:sluice-system:sluice";

const SOON: Duration = Duration::from_secs(30);

/// An answer, good or bad; anything else that goes wrong is an error of the test.
pub type Answer = Result<Value, Refusal>;

/// What the API server complained of.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: u16,
    pub text: String,
}

/// Somebody who speaks to the API server.
#[derive(Clone)]
pub struct Person {
    pub name: String,
    client: Client,
}

/// A rule of a role: verbs, API group, resources.
pub type Rule<'a> = (&'a [&'a str], &'a str, &'a [&'a str]);

impl Person {
    /// The administrator, who may do everything that RBAC can say.
    pub fn admin(testbed: &Testbed) -> Self {
        Self {
            name: "admin".to_owned(),
            client: testbed.admin(),
        }
    }

    /// A user of this name, by impersonation: the API server asks for the rights of that user and no others.
    pub async fn named(testbed: &Testbed, name: &str) -> Result<Self> {
        let mut config = config_from(testbed.kubeconfig()).await?;
        config.auth_info.impersonate = Some(name.to_owned());
        // A refusal is an answer.
        config.default_retry = false;
        Ok(Self {
            name: name.to_owned(),
            client: Client::try_from(config)?,
        })
    }

    /// `alice`, `bob` or `carol`, by the own token.
    pub async fn with_token(testbed: &Testbed, name: &str) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            client: testbed.client_for_user(name).await?,
        })
    }

    /// A service account, by a token of its own; it is made first.
    pub async fn service_account(testbed: &Testbed, namespace: &str, name: &str) -> Result<Self> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        let admin = Self::admin(testbed);
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        taken(admin.ask("POST", &path, &account).await?, "a service account")?;
        Ok(Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            client: testbed.client_for_service_account(namespace, name).await?,
        })
    }

    /// The operator, under the chart's rights.
    pub async fn operator(testbed: &Testbed) -> Result<Self> {
        Ok(Self {
            name: OPERATOR.to_owned(),
            client: testbed.client_for_service_account(HOME, "sluice").await?,
        })
    }

    /// Binds a `ClusterRole` in a namespace, or everywhere, and waits until it counts.
    pub async fn given(self, testbed: &Testbed, namespace: Option<&str>, role: &str) -> Result<Self> {
        let kind = if namespace.is_some() {
            "RoleBinding"
        } else {
            "ClusterRoleBinding"
        };
        let subject = self.subject();
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"generateName": format!("{role}-")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        });
        let admin = Self::admin(testbed);
        let path = rbac(namespace, &format!("{}s", kind.to_lowercase()));
        taken(admin.ask("POST", &path, &binding).await?, role)?;
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}");
        let rules = taken(admin.get(&path).await?, role)?["rules"].clone();
        for rule in rules.as_array().into_iter().flatten() {
            let texts = |field: &str| -> Vec<String> {
                let texts = rule[field].as_array().into_iter().flatten();
                texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
            };
            for resource in texts("resources") {
                for verb in texts("verbs") {
                    self.until_may(namespace, &verb, &texts("apiGroups")[0], &resource)
                        .await?;
                }
            }
        }
        Ok(self)
    }

    /// Makes and binds a role with these rules, in a namespace or everywhere, and waits until it counts.
    pub async fn may(self, testbed: &Testbed, namespace: Option<&str>, rules: &[Rule<'_>]) -> Result<Self> {
        let rules: Vec<Value> = rules
            .iter()
            .map(|(verbs, group, resources)| json!({"verbs": verbs, "apiGroups": [group], "resources": resources}))
            .collect();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"generateName": "test-"}, "rules": rules,
        });
        let path = rbac(None, "clusterroles");
        let role = taken(Self::admin(testbed).ask("POST", &path, &role).await?, "a role")?;
        let name = role["metadata"]["name"].as_str().context("a name")?.to_owned();
        self.given(testbed, namespace, &name).await
    }

    /// All that RBAC can say on groups and requests of a namespace, but neither approve nor unlock nor a status.
    pub async fn writer(testbed: &Testbed, namespace: &str, name: &str) -> Result<Self> {
        let person = Self::named(testbed, &format!("{name}@{namespace}")).await?;
        let verbs = ["get", "list", "create", "update", "patch", "delete", "deletecollection"];
        let rule: Rule<'_> = (&verbs, OURS, &[GROUPS, REQUESTS]);
        person.may(testbed, Some(namespace), &[rule]).await
    }

    /// The subject of a binding.
    pub fn subject(&self) -> Value {
        match self.name.split(':').collect::<Vec<_>>()[..] {
            ["system", "serviceaccount", namespace, name] => {
                json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
            }
            _ => json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": self.name}),
        }
    }

    /// Whether the API server says that this is allowed; a name may follow the resource after a slash.
    pub async fn can(&self, namespace: Option<&str>, verb: &str, group: &str, resource: &str) -> Result<bool> {
        // `namespaces/status` is a subresource, a name comes after a colon.
        let (resource, name) = resource.split_once(':').unwrap_or((resource, ""));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": group, "resource": resource,
                "subresource": subresource, "name": name,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let review = taken(self.ask("POST", path, &review).await?, "a review")?;
        review["status"]["allowed"].as_bool().context("an answer")
    }

    /// The authorizer learns of a binding from a watch.
    async fn until_may(&self, namespace: Option<&str>, verb: &str, group: &str, resource: &str) -> Result<()> {
        let what = format!("{} to be allowed to {verb} {resource}", self.name);
        wait::until(SOON, &what, async || {
            Ok(self.can(namespace, verb, group, resource).await?.then_some(()))
        })
        .await
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.ask("GET", path, &Value::Null).await
    }

    /// JSON for POST and PUT, a merge patch for PATCH.
    pub async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        let content_type = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        self.send(method, path, content_type, body).await
    }

    pub async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Result<Answer> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(body)?
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type).body(body)?;
        match self.client.request::<Value>(request).await {
            Ok(value) => Ok(Ok(value)),
            Err(kube::Error::Api(status)) => Ok(Err(Refusal {
                code: status.code,
                text: status.message.clone(),
            })),
            Err(problem) => Err(problem).with_context(|| format!("{method} {path}")),
        }
    }
}

fn rbac(namespace: Option<&str>, plural: &str) -> String {
    match namespace {
        Some(namespace) => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"),
        None => format!("/apis/rbac.authorization.k8s.io/v1/{plural}"),
    }
}

/// Where objects of ours are.
pub fn path(plural: &str, namespace: &str) -> String {
    format!("/apis/{OURS}/v1alpha1/namespaces/{namespace}/{plural}")
}

/// A value that had to be taken.
pub fn taken(answer: Answer, what: &str) -> Result<Value> {
    answer.or_else(|refusal| bail!("{what}: refused ({}): {}", refusal.code, refusal.text))
}

/// Had to be refused as forbidden, in these words.
pub fn forbidden(answer: Answer, words: &[&str], what: &str) -> Result<()> {
    refused(answer, 403, words, what)
}

/// Had to be refused with this code, in these words.
pub fn refused(answer: Answer, code: u16, words: &[&str], what: &str) -> Result<()> {
    match answer {
        Ok(value) => bail!("{what}: taken: {value}"),
        Err(refusal) => {
            let missing: Vec<_> = words.iter().filter(|word| !refusal.text.contains(**word)).collect();
            ensure!(
                refusal.code == code && missing.is_empty(),
                "{what}: refused ({}) without {missing:?}: {}",
                refusal.code,
                refusal.text
            );
            Ok(())
        }
    }
}
