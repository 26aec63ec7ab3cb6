//! A namespace and groups of its own for each test, on the one cluster of the testbed.
//!
//! Owns set-up and looking. Must not judge.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sluice::api::upgrade_request::Phase;
use sluice::api::{InstanceGroup, InstanceGroupUpgradeRequest};

use crate::testbed::installation::HOME;
use crate::testbed::{Seed, SimulatedInstance, Testbed};

/// The EKS cluster of all tests.
const CLUSTER: &str = "demo";

/// How long a step may take.
pub const SOON: Duration = Duration::from_secs(40);

/// Where one test plays.
pub struct Ground<'a> {
    pub testbed: &'a Testbed,
    pub name: String,
    pub seed: Seed,
    pub groups: Api<InstanceGroup>,
    pub requests: Api<InstanceGroupUpgradeRequest>,
}

impl<'a> Ground<'a> {
    /// A namespace of this name. The cluster is everybody's: nodes of two clusters could share a name.
    pub async fn new(testbed: &'a Testbed, name: &str) -> Result<Self> {
        let seed = testbed.aws().seed(CLUSTER, "1.33").await?;
        testbed.kubectl(&["create", "namespace", name]).await?.success()?;
        let client = testbed.admin();
        Ok(Self {
            testbed,
            name: name.to_owned(),
            seed,
            groups: Api::namespaced(client.clone(), name),
            requests: Api::namespaced(client, name),
        })
    }

    /// The parameter that the groups of this test follow.
    pub fn parameter(&self) -> String {
        format!("/images/{}", self.name)
    }

    /// Publishes an image as the recommended one.
    pub async fn publish(&self, image: &str) -> Result<String> {
        let aws = self.testbed.aws();
        let id = aws
            .publish_image(&format!("{}-{image}", self.name), "x86_64", "2026-11-01T00:00:00Z")
            .await?;
        aws.set_parameter(&self.parameter(), &id, "2026-11-01T00:00:00Z")
            .await?;
        Ok(id)
    }

    /// A manifest; `locked` by annotation.
    pub fn manifest(&self, name: &str, locked: bool) -> Value {
        json!({
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1",
            "kind": "InstanceGroup",
            "metadata": {
                "name": name,
                "annotations": {
                    "instancemgr.keikoproj.io/os-family": "amazonlinux2023",
                    "instancemgr.keikoproj.io/lock-upgrades": locked.to_string(),
                },
            },
            "spec": {
                "provisioner": "eks",
                "eks": {
                    "minSize": 2, "maxSize": 4,
                    "configuration": {
                        "clusterName": CLUSTER,
                        "image": format!("ssm://{}", self.parameter()),
                        "instanceType": "m5.large",
                        "roleName": self.seed.role_name,
                        "instanceProfileName": self.seed.instance_profile_name,
                        "subnets": self.seed.subnet_ids,
                        "securityGroups": [format!("{CLUSTER}-nodes")],
                    },
                },
            },
        })
    }

    /// Creates a group from a manifest.
    pub async fn create(&self, manifest: Value) -> Result<InstanceGroup> {
        Ok(self
            .groups
            .create(&PostParams::default(), &serde_json::from_value(manifest)?)
            .await?)
    }

    /// Creates a group and waits until it rests.
    pub async fn at_rest(&self, name: &str, locked: bool) -> Result<String> {
        let image = self.publish("a").await?;
        self.create(self.manifest(name, locked)).await?;
        self.until_state(name, "Ready").await?;
        Ok(image)
    }

    /// Changes a group.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        self.groups
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Requests in the operator's own hands: nobody else may make one.
    pub async fn requests_of_the_operator(&self) -> Result<Api<InstanceGroupUpgradeRequest>> {
        let operator = self.testbed.client_for_service_account(HOME, "sluice").await?;
        Ok(Api::namespaced(operator, &self.name))
    }

    /// Changes a request.
    pub async fn patch_request(&self, name: &str, patch: Value) -> Result<InstanceGroupUpgradeRequest> {
        Ok(self
            .requests
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?)
    }

    /// Waits until a group is as wanted.
    pub async fn until_group(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&InstanceGroup) -> bool,
    ) -> Result<InstanceGroup> {
        self.testbed
            .until(SOON, &format!("{}/{name}: {what}", self.name), async || {
                let group = self.groups.get(name).await?;
                if holds(&group) {
                    return Ok(Some(group));
                }
                let status = group.status.unwrap_or_default();
                anyhow::bail!("{:?}: {:?}", status.current_state, status.message)
            })
            .await
    }

    /// Waits until a group is in a state.
    pub async fn until_state(&self, name: &str, state: &str) -> Result<InstanceGroup> {
        self.until_group(name, state, |group| {
            group.status.as_ref().is_some_and(|status| {
                status.current_state.as_deref() == Some(state)
                    && status.observed_generation == group.metadata.generation
            })
        })
        .await
    }

    /// Waits until a group has a condition.
    pub async fn until_condition(&self, name: &str, kind: &str) -> Result<String> {
        let group = self
            .until_group(name, kind, |group| condition(group, kind).is_some())
            .await?;
        condition(&group, kind).context("the condition")
    }

    /// Waits until exactly one request is in a phase.
    pub async fn until_request(&self, phase: Phase) -> Result<InstanceGroupUpgradeRequest> {
        self.testbed
            .until(SOON, &format!("{}: one request in {phase}", self.name), async || {
                let list = self.requests.list(&kube::api::ListParams::default()).await?.items;
                let open = list.iter().filter(|request| !request.is_terminal()).count();
                // An error here would only count as "not yet".
                if open > 1 {
                    return Ok(Some(Err(anyhow::anyhow!("{open} requests are open"))));
                }
                let found = list
                    .into_iter()
                    .find(|request| request.status.is_some() && request.phase() == phase);
                Ok(found.map(Ok))
            })
            .await?
    }

    /// The instances of a group.
    pub async fn instances(&self, name: &str) -> Result<Vec<SimulatedInstance>> {
        let wanted = format!("{CLUSTER}-{}-{name}", self.name);
        let all = self.testbed.aws().instances().await?;
        Ok(all
            .into_iter()
            .filter(|instance| instance.group_name == wanted)
            .collect())
    }

    /// Waits until a group has this many instances, all on an image.
    pub async fn until_images(&self, name: &str, image: &str, count: usize) -> Result<()> {
        self.testbed
            .until(SOON, &format!("{count} instances on {image}"), async || {
                let instances = self.instances(name).await?;
                Ok(
                    (instances.len() == count && instances.iter().all(|instance| instance.image_id == image))
                        .then_some(()),
                )
            })
            .await
    }

    /// Deletes a group and waits until it is gone.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.groups.delete(name, &DeleteParams::default()).await?;
        self.testbed
            .until(SOON, &format!("{name} to be gone"), async || {
                Ok(self.groups.get_opt(name).await?.is_none().then_some(()))
            })
            .await?;
        ensure!(self.instances(name).await?.is_empty(), "instances are left");
        Ok(())
    }

    /// The changes of this cluster's groups that AWS was told after a call.
    pub async fn writes(&self, after: u64) -> Result<Vec<String>> {
        let mark = format!("{CLUSTER}-{}-", self.name);
        let calls = self.testbed.aws().calls(after).await?;
        Ok(calls
            .into_iter()
            .filter(|call| call.mutating && call.parameters.values().any(|value| value.contains(&mark)))
            .map(|call| call.action)
            .collect())
    }
}

/// The message of a condition that holds.
pub fn condition(group: &InstanceGroup, kind: &str) -> Option<String> {
    let conditions = &group.status.as_ref()?.conditions;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == kind && condition.status == "True")?;
    Some(format!("{}: {}", found.reason, found.message))
}

/// Metadata with only a name, for objects that tests make.
pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}
