//! Owns what makes pods live: kube-scheduler binds them, kwok plays the containers on simulated nodes.
//!
//! It must not decide about nodes: kwok has no right to write them or their leases. What pods are asked for is in
//! [`super::deployment`].

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::credentials::{Credentials, KWOK, SCHEDULER};
use super::node_objects::SIMULATED_LABEL;
use super::process::Process;
use super::tools::{self, Tools};
use super::watchdog::Watchdog;

/// How long a pod runs before it is Ready, such as `3s`; at once without it.
pub const READY_AFTER: &str = "sluice.test/ready-after";
/// How long a deleted pod stays, such as `3s`; its whole grace without it.
pub const GONE_AFTER: &str = "sluice.test/gone-after";
/// With any value the pod stays Terminating until somebody deletes it with grace 0.
pub const NEVER_ENDS: &str = "sluice.test/never-ends";
/// How long a Ready pod takes to succeed, such as `1s`; it runs forever without it.
pub const FINISHES_AFTER: &str = "sluice.test/finishes-after";

const PATIENCE: Duration = Duration::from_secs(5);

pub struct Workloads {
    scheduler: Arc<Process>,
    kwok: Arc<Process>,
}

impl Workloads {
    pub async fn start(
        folder: &Path,
        tools: &Tools,
        credentials: &Credentials,
        plane: &ControlPlane,
        watchdog: &Arc<Watchdog>,
    ) -> Result<Self> {
        grant_kwok_its_rights(plane.admin()).await?;
        let mut scheduler = Command::new(&tools.kube_scheduler);
        scheduler
            .arg(format!("--kubeconfig={}", credentials.kubeconfig(SCHEDULER).display()))
            .arg("--leader-elect=false")
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            .arg("--secure-port=0");
        let stages = tools::source_folder().join("workloads/stages.yaml");
        let mut kwok = Command::new(&tools.kwok);
        kwok.arg(format!("--kubeconfig={}", credentials.kubeconfig(KWOK).display()))
            .arg(format!("--config={}", stages.display()))
            .arg(format!("--manage-nodes-with-label-selector={SIMULATED_LABEL}"))
            // None: the node simulator renews the leases of nodes that live.
            .arg("--node-lease-duration-seconds=0")
            // It reads a configuration of the user's, too.
            .env("HOME", folder.join("home"));
        let start = |name: &str, command: &mut Command| {
            Process::spawn(name, command, &folder.join(format!("{name}.log")), watchdog)
        };
        Ok(Self {
            scheduler: start("kube-scheduler", &mut scheduler)?,
            kwok: start("kwok", &mut kwok)?,
        })
    }

    pub fn scheduler(&self) -> &Arc<Process> {
        &self.scheduler
    }

    /// STOP it to have pods neither start nor go.
    pub fn kwok(&self) -> &Arc<Process> {
        &self.kwok
    }

    pub fn health(&self) -> Result<()> {
        self.scheduler.not_crashed()?;
        self.kwok.not_crashed()
    }

    pub async fn stop(&self) -> Result<()> {
        self.kwok.end(PATIENCE).await?;
        self.scheduler.end(PATIENCE).await
    }
}

/// Pods and their status; nodes only to look at.
async fn grant_kwok_its_rights(client: Client) -> Result<()> {
    let may = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "testbed-kwok"},
        "rules": [
            may(&["nodes"], &["get", "list", "watch"]),
            may(&["pods"], &["get", "list", "watch", "patch", "update", "delete"]),
            may(&["pods/status"], &["patch", "update"]),
            may(&["events"], &["create", "patch", "update"]),
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "testbed-kwok"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "testbed-kwok"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KWOK}],
    });
    let parameters = PatchParams::apply("testbed").force();
    let apply = |object: Value| Patch::Apply(object);
    Api::<ClusterRole>::all(client.clone())
        .patch("testbed-kwok", &parameters, &apply(role))
        .await
        .context("making kwok's role")?;
    Api::<ClusterRoleBinding>::all(client)
        .patch("testbed-kwok", &parameters, &apply(binding))
        .await
        .context("binding kwok's role")?;
    Ok(())
}
