//! Owns the typed side of how simulated groups are made to behave: times, shortages, holds, interruptions, bad images.
//!
//! It must not do through the administration what the operator does through AWS. Times are by the simulation's clock.

use std::time::Duration;

use anyhow::Result;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::aws::Aws;

/// How long the steps of instances take; what is not given stays as it was, at first at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// From the launch to `InService`.
    pub boot: Option<Duration>,
    /// From `Terminating` to gone.
    pub termination: Option<Duration>,
    /// From a failed launch to the next try by itself; zero for never.
    pub retry: Option<Duration>,
}

/// Launches that find no capacity: those that fit all that is said here.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shortage {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spot: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Where instances wait, as for a lifecycle hook.
#[derive(Clone, Copy, Debug)]
pub enum Transition {
    /// `Pending:Wait`.
    Launching,
    /// `Terminating:Wait`.
    Terminating,
}

/// What becomes of the Nodes of new and running instances.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeFate {
    #[default]
    Ready,
    /// The Node registers and is never Ready: a bad image.
    NotReady,
    /// No Node registers: a bad image that does not even get so far.
    Never,
}

impl Shortage {
    /// For every launch, until more is said.
    pub fn everywhere() -> Self {
        Self::default()
    }

    pub fn of_group(name: &str) -> Self {
        Self {
            group: Some(name.to_owned()),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn in_zone(mut self, zone: &str) -> Self {
        self.zone = Some(zone.to_owned());
        self
    }

    #[must_use]
    pub fn of_image(mut self, image_id: &str) -> Self {
        self.image_id = Some(image_id.to_owned());
        self
    }

    #[must_use]
    pub fn of_type(mut self, instance_type: &str) -> Self {
        self.instance_type = Some(instance_type.to_owned());
        self
    }

    /// Only spot instances, or only others.
    #[must_use]
    pub fn of_spot(mut self, spot: bool) -> Self {
        self.spot = Some(spot);
        self
    }

    /// Another reason than capacity, such as a quota; the activity adds that the launch failed.
    #[must_use]
    pub fn message(mut self, text: &str) -> Self {
        self.message = Some(text.to_owned());
        self
    }
}

impl Transition {
    fn name(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Terminating => "terminating",
        }
    }
}

impl Aws {
    /// For one group, which need not exist yet, or for all that have no times of their own.
    pub async fn set_timing(&self, group: Option<&str>, timing: Timing) -> Result<()> {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let body = json!({
            "group": group,
            "bootSeconds": seconds(timing.boot),
            "terminationSeconds": seconds(timing.termination),
            "retrySeconds": seconds(timing.retry),
        });
        self.post::<Value>("/timing", body).await?;
        Ok(())
    }

    /// Answers the shortage's id.
    pub async fn begin_shortage(&self, shortage: Shortage) -> Result<String> {
        let answer: ShortageAnswer = self.post("/shortages", serde_json::to_value(shortage)?).await?;
        Ok(answer.id)
    }

    /// What was missing for lack of capacity is launched.
    pub async fn end_shortage(&self, id: &str) -> Result<()> {
        self.ask::<Value>(Method::DELETE, &format!("/shortages/{id}"), None)
            .await?;
        Ok(())
    }

    /// All of them, for all who share this AWS.
    pub async fn end_shortages(&self) -> Result<()> {
        self.ask::<Value>(Method::DELETE, "/shortages", None).await?;
        Ok(())
    }

    /// From now on instances of the group wait at the transition.
    pub async fn hold(&self, group: &str, transition: Transition) -> Result<()> {
        let body = json!({"transition": transition.name()});
        self.post::<Value>(&format!("/groups/{group}/holds"), body).await?;
        Ok(())
    }

    /// Those that wait go on, and later ones do not wait.
    pub async fn release(&self, group: &str, transition: Transition) -> Result<()> {
        let path = format!("/groups/{group}/holds?transition={}", transition.name());
        self.ask::<Value>(Method::DELETE, &path, None).await?;
        Ok(())
    }

    /// One instance need not wait, or not any longer.
    pub async fn proceed(&self, instance_id: &str) -> Result<()> {
        self.post::<Value>(&format!("/instances/{instance_id}/proceed"), json!({}))
            .await?;
        Ok(())
    }

    /// EC2 takes the instance back once the notice is over; its group refills with what it is pinned to.
    pub async fn interrupt(&self, instance_id: &str, notice: Duration) -> Result<()> {
        let body = json!({"noticeSeconds": notice.as_secs_f64()});
        self.post::<Value>(&format!("/instances/{instance_id}/interrupt"), body)
            .await?;
        Ok(())
    }

    /// Even out the zones of a group now, unless `AZRebalance` is suspended; answers how many instances moved.
    pub async fn rebalance(&self, group: &str) -> Result<u32> {
        let answer: RebalanceAnswer = self.post(&format!("/groups/{group}/rebalance"), json!({})).await?;
        Ok(answer.moved)
    }

    /// How the nodes of this image fare. `join` is from a running machine to a registered Node.
    pub async fn set_image_nodes(&self, image_id: &str, fate: NodeFate, join: Duration) -> Result<()> {
        self.set_nodes(&format!("/images/{image_id}/nodes"), fate, join).await
    }

    /// The same for a group, whatever its image.
    pub async fn set_group_nodes(&self, group: &str, fate: NodeFate, join: Duration) -> Result<()> {
        self.set_nodes(&format!("/groups/{group}/nodes"), fate, join).await
    }

    async fn set_nodes(&self, path: &str, fate: NodeFate, join: Duration) -> Result<()> {
        let body = json!({"joins": fate, "joinSeconds": join.as_secs_f64()});
        self.post::<Value>(path, body).await?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct ShortageAnswer {
    id: String,
}

#[derive(Deserialize)]
struct RebalanceAnswer {
    moved: u32,
}
