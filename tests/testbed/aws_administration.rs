//! Owns the typed side of the simulated AWS's administration: content, faults, and the record of calls.
//!
//! It must not do through the administration what the operator does through AWS.

use std::collections::BTreeMap;
use std::fmt::Display;

use anyhow::Result;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::aws::Aws;
use super::aws_conduct::NodeFate;
use super::aws_fault::Fault;

/// What a cluster finds when it comes into being.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seed {
    pub cluster_name: String,
    pub vpc_id: String,
    /// One in each of three zones, in the order of the zones.
    pub subnet_ids: Vec<String>,
    pub security_group_id: String,
    pub role_name: String,
    pub role_arn: String,
    pub instance_profile_name: String,
    pub instance_profile_arn: String,
    pub region: String,
    pub account_id: String,
}

/// One call of AWS as the simulation met it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub sequence: u64,
    /// RFC 3339, by the simulation's clock.
    pub at: String,
    pub service: String,
    pub action: String,
    pub mutating: bool,
    /// The access key that signed it.
    pub caller: Option<String>,
    /// None while it is unanswered.
    pub status: Option<u16>,
    pub error_code: Option<String>,
    pub parameters: BTreeMap<String, String>,
}

/// A member of an Auto Scaling group.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedInstance {
    pub instance_id: String,
    pub zone: String,
    pub group_name: String,
    /// Of the group: `Pending`, `InService`, `Terminating:Wait` and so on.
    pub lifecycle_state: String,
    /// Of the machine: `pending`, `running`, `shutting-down`, `terminated`.
    pub instance_state: String,
    pub health_status: String,
    pub launch_template_id: Option<String>,
    pub launch_template_version: Option<String>,
    pub image_id: String,
    pub instance_type: String,
    pub private_dns_name: String,
    pub node_joins: NodeFate,
    /// The machine has run long enough for its Node to register.
    pub node_join_due: bool,
    pub instance_profile_arn: Option<String>,
    pub role_arn: Option<String>,
    pub launched_at: String,
}

impl Aws {
    /// Network, EKS cluster, node role and instance profile; the same again for a name that exists.
    pub async fn seed(&self, cluster: &str, version: &str) -> Result<Seed> {
        self.post("/seed", json!({"clusterName": cluster, "kubernetesVersion": version}))
            .await
    }

    /// An image of Amazon's; answers its id.
    pub async fn publish_image(&self, name: &str, architecture: &str, created: impl Display) -> Result<String> {
        let image = json!({"name": name, "architecture": architecture, "creationDate": created.to_string()});
        let answer: ImageAnswer = self.post("/images", image).await?;
        Ok(answer.image_id)
    }

    pub async fn deprecate(&self, image_id: &str, at: impl Display) -> Result<()> {
        self.post::<Value>(&format!("/images/{image_id}/deprecate"), json!({"at": at.to_string()}))
            .await?;
        Ok(())
    }

    pub async fn deregister(&self, image_id: &str) -> Result<()> {
        self.post::<Value>(&format!("/images/{image_id}/deregister"), json!({}))
            .await?;
        Ok(())
    }

    /// A new version of a public parameter.
    pub async fn set_parameter(&self, name: &str, value: &str, modified: impl Display) -> Result<()> {
        let parameter = json!({"name": name, "value": value, "lastModified": modified.to_string()});
        self.post::<Value>("/parameters", parameter).await?;
        Ok(())
    }

    pub async fn delete_parameter(&self, name: &str) -> Result<()> {
        self.ask::<Value>(Method::DELETE, &format!("/parameters?name={name}"), None)
            .await?;
        Ok(())
    }

    pub async fn set_cluster_version(&self, cluster: &str, version: &str) -> Result<()> {
        self.post::<Value>(&format!("/clusters/{cluster}"), json!({"version": version}))
            .await?;
        Ok(())
    }

    /// Let all groups try again what failed to launch.
    pub async fn retry_launches(&self) -> Result<()> {
        self.post::<Value>("/reconcile", json!({})).await?;
        Ok(())
    }

    /// Move the simulation's clock against the real one.
    pub async fn set_clock_offset(&self, seconds: i64) -> Result<()> {
        self.post::<Value>("/clock", json!({"offsetSeconds": seconds})).await?;
        Ok(())
    }

    /// Forget everything, for all who share this AWS.
    pub async fn reset(&self) -> Result<()> {
        self.post::<Value>("/reset", json!({})).await?;
        Ok(())
    }

    pub async fn calls(&self, after: u64) -> Result<Vec<Call>> {
        Ok(self.get::<CallsAnswer>(&format!("/calls?after={after}")).await?.calls)
    }

    /// The number of the newest call, to ask for those after it.
    pub async fn last_sequence(&self) -> Result<u64> {
        // Nothing comes after the largest number; the answer names the last one all the same.
        Ok(self
            .get::<CallsAnswer>(&format!("/calls?after={}", u32::MAX))
            .await?
            .last)
    }

    /// How often each action of each service was called.
    pub async fn counts(&self, after: u64) -> Result<BTreeMap<String, BTreeMap<String, u64>>> {
        self.get(&format!("/counts?after={after}")).await
    }

    /// Answers the fault's id.
    pub async fn inject_fault(&self, fault: Fault) -> Result<String> {
        let answer: FaultAnswer = self.post("/faults", serde_json::to_value(fault)?).await?;
        Ok(answer.id)
    }

    pub async fn remove_fault(&self, id: &str) -> Result<()> {
        self.ask::<Value>(Method::DELETE, &format!("/faults/{id}"), None)
            .await?;
        Ok(())
    }

    pub async fn clear_faults(&self) -> Result<()> {
        self.ask::<Value>(Method::DELETE, "/faults", None).await?;
        Ok(())
    }

    /// The members of all groups.
    pub async fn instances(&self) -> Result<Vec<SimulatedInstance>> {
        Ok(self.get::<InstancesAnswer>("/instances").await?.instances)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageAnswer {
    image_id: String,
}

#[derive(Deserialize)]
struct CallsAnswer {
    calls: Vec<Call>,
    last: u64,
}

#[derive(Deserialize)]
struct FaultAnswer {
    id: String,
}

#[derive(Deserialize)]
struct InstancesAnswer {
    instances: Vec<SimulatedInstance>,
}
