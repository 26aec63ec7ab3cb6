//! Testbeds with the chart on them, and the objects that tests of rights begin with.
//!
//! Owns making them. It must not judge an answer.

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::people::{GROUPS, OURS, Person, REQUESTS, path, taken};
use crate::testbed::shared::started_once;
use crate::testbed::{Installation, Testbed, TestbedOptions};

pub const LOCK: &str = "instancemgr.keikoproj.io/lock-upgrades";
pub const FINALIZER: &str = "instancemgr.keikoproj.io/upgrade-request";

/// A testbed with the chart's policies and nobody at work; each test has a namespace of its own.
pub async fn policed(namespace: &str) -> Result<&'static Testbed> {
    static SHARED: OnceCell<Result<Testbed, String>> = OnceCell::const_new();
    static INSTALLED: OnceCell<Result<(), String>> = OnceCell::const_new();
    let options = TestbedOptions::default().controller("validatingadmissionpolicy-status-controller");
    let testbed = started_once(&SHARED, "rights", options).await?;
    let installed = INSTALLED.get_or_init(|| async {
        let installation = Installation::of_chart(testbed, &["--set=replicas=0"]).await;
        installation.map(drop).map_err(|problem| format!("{problem:#}"))
    });
    installed
        .await
        .as_ref()
        .map_err(|problem| anyhow!("the chart was not installed: {problem}"))?;
    make_namespace(testbed, namespace).await?;
    Ok(testbed)
}

pub async fn make_namespace(testbed: &Testbed, name: &str) -> Result<Value> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    taken(
        Person::admin(testbed)
            .ask("POST", "/api/v1/namespaces", &namespace)
            .await?,
        name,
    )
}

/// A request as the operator opens it, of a group that nobody makes.
pub fn request(name: &str) -> Value {
    json!({
        "apiVersion": format!("{OURS}/v1alpha1"), "kind": "InstanceGroupUpgradeRequest",
        "metadata": {
            "name": name,
            "labels": {"instancemgr.keikoproj.io/instance-group": "workers", "instancemgr.keikoproj.io/tier": "prod"},
        },
        "spec": {
            "instanceGroupRef": {"name": "workers", "uid": "u-1"},
            "reason": "ImageDrift",
            "from": {"imageId": "ami-1"},
            "target": {"fingerprint": "sha256:b", "imageId": "ami-2"},
        },
    })
}

/// Opens a request as the operator, in this phase; `None` before a status was written.
pub async fn opened(testbed: &Testbed, namespace: &str, name: &str, phase: Option<&str>) -> Result<Value> {
    let operator = Person::operator(testbed).await?;
    let made = operator.ask("POST", &path(REQUESTS, namespace), &request(name)).await?;
    let made = taken(made, name)?;
    match phase {
        Some(phase) => enter(testbed, namespace, name, phase).await,
        None => Ok(made),
    }
}

/// Moves a request into a phase, as the operator would.
pub async fn enter(testbed: &Testbed, namespace: &str, name: &str, phase: &str) -> Result<Value> {
    let path = format!("{}/{name}/status", path(REQUESTS, namespace));
    let status = json!({"status": {"phase": phase}});
    taken(Person::admin(testbed).ask("PATCH", &path, &status).await?, phase)
}

/// A group without a lock that no operator would find wrong.
pub fn group(name: &str) -> Value {
    json!({
        "apiVersion": format!("{OURS}/v1alpha1"), "kind": "InstanceGroup",
        "metadata": {"name": name, "annotations": {}, "labels": {}},
        "spec": {"provisioner": "eks", "eks": {
            "minSize": 1, "maxSize": 2,
            "configuration": {
                "clusterName": "demo", "image": "latest", "instanceType": "m5.large", "roleName": "demo-node",
                "instanceProfileName": "demo-node", "subnets": ["subnet-a"], "securityGroups": ["nodes"],
            },
        }},
    })
}

/// Makes a group as the administrator, with this merged into its metadata.
pub async fn made(testbed: &Testbed, namespace: &str, name: &str, metadata: Value) -> Result<Value> {
    let mut object = group(name);
    for (field, value) in metadata.as_object().into_iter().flatten() {
        object["metadata"][field] = value.clone();
    }
    let answer = Person::admin(testbed)
        .ask("POST", &path(GROUPS, namespace), &object)
        .await?;
    taken(answer, name)
}
