//! What a drain does to the cluster and reads from it, on the real API server: the library's own functions, with no operator
//! around them, under exactly the rights that the chart gives.
//!
//! Owns nodes and pods that nobody runs. When and what is drained is tested on the plan.

mod evictions;
mod node_writes;
mod pods;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use sluice::plan::facts::workload::PodId;

use crate::testbed::{Testbed, credentials, shared};

const SOON: Duration = Duration::from_secs(30);

/// A namespace of its own on the shared testbed, and an account with the operator's rights.
struct Ground {
    testbed: &'static Testbed,
    name: &'static str,
    /// How the account reaches the API server.
    kubeconfig: PathBuf,
    pods: Api<Pod>,
    nodes: Api<Node>,
    budgets: Api<PodDisruptionBudget>,
}

impl Ground {
    async fn new(name: &'static str) -> Result<Self> {
        let testbed = shared().await?;
        testbed.kubectl(&["create", "namespace", name]).await?.success()?;
        let chart = format!("{}/charts/sluice", env!("CARGO_MANIFEST_DIR"));
        // Objects of its own for each test, those of the whole cluster too.
        let full_name = format!("fullnameOverride={name}");
        let mut arguments = vec!["template", name, &chart, "--namespace", name, "--set", &full_name];
        arguments.extend(["--kube-version", "1.33"]);
        for file in ["templates/serviceaccount.yaml", "templates/operator-rbac.yaml"] {
            arguments.extend(["--show-only", file]);
        }
        let rights = testbed.helm(&arguments).await?.success()?;
        testbed.kubectl_stdin(&["apply", "-f", "-"], &rights).await?.success()?;
        let admin = testbed.admin();
        Ok(Self {
            testbed,
            name,
            kubeconfig: testbed.kubeconfig_for_service_account(name, name).await?,
            pods: Api::namespaced(admin.clone(), name),
            nodes: Api::all(admin.clone()),
            budgets: Api::namespaced(admin, name),
        })
    }

    /// The client that the operator has, once its rights count: the authorizer learns of a binding a moment later.
    async fn client(&self) -> Result<Client> {
        let client = sluice::cluster::call::client(credentials::config_from(&self.kubeconfig).await?)?;
        let nodes: Api<Node> = Api::all(client.clone());
        self.testbed
            .until(SOON, "the rights to count", async || {
                Ok(Some(nodes.get_opt("no-such-node").await?))
            })
            .await?;
        Ok(client)
    }

    async fn node(&self, name: &str, instance_id: &str) -> Result<Node> {
        let node = json!({
            "metadata": {"name": name},
            "spec": {"providerID": format!("aws:///us-west-2a/{instance_id}")},
        });
        Ok(self
            .nodes
            .create(&PostParams::default(), &serde_json::from_value(node)?)
            .await?)
    }

    /// A pod that is bound to a node and is Pending, as nobody runs it; `app` is its label.
    async fn pending(&self, name: &str, node: &str, app: &str) -> Result<PodId> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": {
                "nodeName": node,
                "automountServiceAccountToken": false,
                // Long enough that nothing goes by itself while a test looks.
                "terminationGracePeriodSeconds": 3600,
                "containers": [{"name": "main", "image": "nothing"}],
            },
        }))?;
        // Its account is made by a controller.
        let made = self
            .testbed
            .until(SOON, &format!("pod {name}"), async || {
                Ok(Some(self.pods.create(&PostParams::default(), &pod).await?))
            })
            .await?;
        Ok(PodId {
            namespace: self.name.to_owned(),
            name: name.to_owned(),
            uid: made.uid().unwrap_or_default(),
        })
    }

    /// The same, running and Ready.
    async fn running(&self, name: &str, node: &str, app: &str) -> Result<PodId> {
        let pod = self.pending(name, node, app).await?;
        let status = json!({"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        }});
        self.pods
            .patch_status(name, &PatchParams::default(), &Patch::Strategic(status))
            .await?;
        Ok(pod)
    }

    /// A budget over pods of this label, once the disruption controller has counted `pods` of them.
    async fn budget(&self, name: &str, app: &str, min_available: i32, pods: i32) -> Result<()> {
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
        });
        self.budgets
            .create(&PostParams::default(), &serde_json::from_value(budget)?)
            .await?;
        self.testbed
            .until(SOON, &format!("budget {name} to count {pods}"), async || {
                let status = self.budgets.get(name).await?.status.unwrap_or_default();
                let counted = status.observed_generation == Some(1) && status.current_healthy == pods;
                Ok(counted.then_some(()))
            })
            .await
    }

    async fn patch_pod(&self, name: &str, patch: Value) -> Result<()> {
        self.pods
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// The end of a pod, as its kubelet reports it.
    async fn end(&self, name: &str) -> Result<()> {
        let now = DeleteParams {
            grace_period_seconds: Some(0),
            ..DeleteParams::default()
        };
        self.pods.delete(name, &now).await?;
        Ok(())
    }

    /// What the account did to objects of this resource, as (verb, answer's code).
    fn did(&self, resource: &str, subresource: Option<&str>, name: &str) -> Result<Vec<(String, u64)>> {
        let account = format!("system:serviceaccount:{0}:{0}", self.name);
        let of_ours = |event: &Value| {
            let object = &event["objectRef"];
            event["user"]["username"] == account.as_str()
                && object["resource"] == resource
                && object["subresource"].as_str() == subresource
                && object["name"] == name
        };
        let did = self.testbed.audit()?.into_iter().filter(of_ours).map(|event| {
            let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
            (event["verb"].as_str().unwrap_or_default().to_owned(), code)
        });
        Ok(did.collect())
    }
}
