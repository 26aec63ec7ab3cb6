//! What the API server takes and refuses by the definitions alone, with no operator and no admission policy.
//!
//! Owns sending objects and reading refusals. It must not know what a rule is for; the tables say that.

mod applied_again;
mod approvers;
mod group_configuration;
mod group_table;
mod instance_group;
mod request_seen;
mod request_table;
mod stored;
mod stored_request;
mod upgrade_request;
mod whole;

use anyhow::{Context, Result, bail, ensure};
use axum::http::Request;
use kube::Client;
use kube::core::Status;
use serde_json::{Map, Value, json};

use crate::definitions;
use crate::testbed::{Testbed, shared};

const GROUPS: &str = "instancegroups";
const REQUESTS: &str = "instancegroupupgraderequests";
const API_VERSION: &str = "instancemgr.keikoproj.io/v1alpha1";

/// A rule as a definition has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    /// Path of the field that carries it, such as `spec.volumes[]`; empty at the root.
    field: String,
    /// What a refusal says.
    message: String,
}

/// What the API server complained of.
#[derive(Clone, Debug)]
struct Refusal {
    code: u16,
    text: String,
    /// Field, with `[]` for any index, and message, one entry a complaint.
    causes: Vec<(String, String)>,
}

impl Refusal {
    /// Whether the one and only complaint is this message on this field.
    fn is_only(&self, field: &str, message: &str) -> bool {
        matches!(self.causes.as_slice(), [(at, text)] if at == field && text.ends_with(&format!(": {message}")))
    }

    /// Whether this message is among the complaints.
    fn says(&self, message: &str) -> bool {
        self.text.contains(message)
    }
}

/// An answer, good or bad; anything else that goes wrong is an error of the test.
type Answer = Result<Value, Refusal>;

/// Asks with strict field validation: a misspelt field in a test must not pass as a value that is accepted.
async fn ask(client: &Client, method: &str, path: &str, content_type: &str, body: &Value) -> Result<Answer> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(serde_json::to_vec(body)?)?;
    match client.request::<Value>(request).await {
        Ok(value) => Ok(Ok(value)),
        Err(kube::Error::Api(status)) => Ok(Err(refusal(&status))),
        Err(problem) => Err(problem).with_context(|| format!("{method} {path}")),
    }
}

fn refusal(status: &Status) -> Refusal {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    Refusal {
        code: status.code,
        text: status.message.clone(),
        causes: causes
            .map(|cause| (any_index(&cause.field), cause.message.clone()))
            .collect(),
    }
}

/// `spec.volumes[3].type` as `spec.volumes[].type`; the root, which the API server calls `<nil>`, as nothing.
fn any_index(field: &str) -> String {
    let mut pieces = field.split('[');
    let mut path = pieces.next().unwrap_or_default().replace("<nil>", "");
    for piece in pieces {
        let rest = piece.split_once(']').map_or("", |(_, rest)| rest);
        path.push_str("[]");
        path.push_str(rest);
    }
    path
}

fn path(plural: &str, namespace: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/{plural}")
}

/// Creates an object, for real.
async fn create(client: &Client, plural: &str, object: &Value) -> Result<Answer> {
    let namespace = object["metadata"]["namespace"].as_str().context("a namespace")?;
    let path = format!("{}?fieldValidation=Strict", path(plural, namespace));
    ask(client, "POST", &path, "application/json", object).await
}

/// Asks whether an object would be created.
async fn try_create(client: &Client, plural: &str, object: &Value) -> Result<Answer> {
    let namespace = object["metadata"]["namespace"].as_str().context("a namespace")?;
    let path = format!("{}?fieldValidation=Strict&dryRun=All", path(plural, namespace));
    ask(client, "POST", &path, "application/json", object).await
}

/// Merge-patches an object of the namespace: `name`, or `name/status`.
async fn patch(client: &Client, plural: &str, namespace: &str, name: &str, body: &Value) -> Result<Answer> {
    let path = format!("{}/{name}?fieldValidation=Strict", path(plural, namespace));
    ask(client, "PATCH", &path, "application/merge-patch+json", body).await
}

/// A value that had to be accepted.
fn accepted(answer: Answer, what: &str) -> Result<Value> {
    match answer {
        Ok(value) => Ok(value),
        Err(refusal) => bail!("{what}: refused ({}): {}", refusal.code, refusal.text),
    }
}

/// A value that had to be refused as invalid, for this reason.
fn refused(answer: Answer, message: &str, what: &str) -> Result<()> {
    match answer {
        Ok(value) => bail!("{what}: accepted: {}", value["spec"]),
        Err(refusal) => {
            ensure!(
                refusal.code == 422 && refusal.says(message),
                "{what}: refused ({}) with `{}` instead of `{message}`",
                refusal.code,
                refusal.text
            );
            Ok(())
        }
    }
}

/// Merges as a merge patch does: null takes a field away.
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// `base` with a merge patch on it.
fn merged(mut base: Value, patch: &Value) -> Value {
    merge(&mut base, patch);
    base
}

/// The schema of the definition with this plural.
fn schema_of(plural: &str) -> Result<Value> {
    let definitions = definitions::manifests()?;
    let mut found = definitions
        .iter()
        .filter(|definition| definition["spec"]["names"]["plural"] == plural)
        .flat_map(|definition| definition["spec"]["versions"].as_array().into_iter().flatten());
    let (Some(version), None) = (found.next(), found.next()) else {
        bail!("{plural} does not have one version")
    };
    Ok(version["schema"]["openAPIV3Schema"].clone())
}

/// Every rule of the definition with this plural.
fn rules_of(plural: &str) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    collect_rules(&schema_of(plural)?, "", &mut rules);
    ensure!(!rules.is_empty(), "{plural} has no rule at all");
    rules.sort();
    Ok(rules)
}

fn collect_rules(node: &Value, field: &str, rules: &mut Vec<Rule>) {
    let here = node["x-kubernetes-validations"].as_array();
    rules.extend(here.into_iter().flatten().map(|rule| Rule {
        field: field.to_owned(),
        message: rule["message"].as_str().unwrap_or_default().to_owned(),
    }));
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        let separator = if field.is_empty() { "" } else { "." };
        collect_rules(child, &format!("{field}{separator}{name}"), rules);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get(key) {
            collect_rules(child, &format!("{field}[]"), rules);
        }
    }
}

/// A namespace of the shared testbed, with both kinds served.
async fn prepared(namespace: &str) -> Result<&'static Testbed> {
    let testbed = shared().await?;
    definitions::installed(testbed).await?;
    make_namespace(testbed, namespace).await?;
    Ok(testbed)
}

async fn make_namespace(testbed: &Testbed, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match ask(
        &testbed.admin(),
        "POST",
        "/api/v1/namespaces",
        "application/json",
        &namespace,
    )
    .await?
    {
        Err(refusal) if refusal.code != 409 => bail!("namespace {name}: {}", refusal.text),
        _ => Ok(()),
    }
}
