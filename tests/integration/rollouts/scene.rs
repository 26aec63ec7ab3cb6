//! One group with pods on its nodes, in a namespace of its own.
//!
//! Owns set-up, the usual steps of a person, and looking. Must not judge.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sluice::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};
use sluice::api::{NodeRecord, annotation, label};

use crate::gate::ground::Ground;
use crate::running::shared_operator_with_workloads;
use crate::testbed::{AuditPosition, Call, SimulatedInstance, Testbed, Workload};

/// The group of each scene.
pub const GROUP: &str = "workers";
/// The operator, as the audit log names it.
pub const OPERATOR: &str = "system:serviceaccount:sluice-system:sluice";
/// How long a rollout with its drains may take, with all the others at the same time.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// Where one test plays.
pub struct Scene<'a> {
    pub ground: Ground<'a>,
    /// The image that the group runs at first.
    pub old: String,
}

impl<'a> Deref for Scene<'a> {
    type Target = Ground<'a>;

    fn deref(&self) -> &Ground<'a> {
        &self.ground
    }
}

impl Scene<'static> {
    /// A locked group at rest on the shared testbed, of this size and with these fields of `rollingUpdate`.
    pub async fn locked(name: &str, size: usize, rolling_update: Value) -> Result<Self> {
        let testbed = shared_operator_with_workloads().await?;
        Scene::start(testbed, name, size, true, rolling_update).await
    }

    /// The same, unlocked.
    pub async fn unlocked(name: &str, size: usize, rolling_update: Value) -> Result<Self> {
        let testbed = shared_operator_with_workloads().await?;
        Scene::start(testbed, name, size, false, rolling_update).await
    }
}

impl<'a> Scene<'a> {
    /// The same on a testbed with an operator of its own.
    pub async fn on(testbed: &'a Testbed, name: &str, size: usize, rolling_update: Value) -> Result<Self> {
        Self::start(testbed, name, size, true, rolling_update).await
    }

    async fn start(testbed: &'a Testbed, name: &str, size: usize, locked: bool, rolling_update: Value) -> Result<Self> {
        let ground = Ground::new(testbed, name).await?;
        let old = ground.publish("a").await?;
        let mut manifest = ground.manifest(GROUP, locked);
        manifest["spec"]["eks"]["minSize"] = json!(size);
        manifest["spec"]["eks"]["maxSize"] = json!(size + 2);
        manifest["spec"]["strategy"] = json!({ "type": "rollingUpdate", "rollingUpdate": rolling_update });
        ground.create(manifest).await?;
        ground.until_state(GROUP, "Ready").await?;
        let scene = Self { ground, old };
        // The lifecycle controller takes its taints off a moment after a node is Ready.
        let open = scene
            .testbed
            .until(PATIENCE, "nodes that take pods", async || {
                let nodes = scene.node_objects().await?;
                let open = nodes.iter().filter(|node| taints(node).is_empty()).count();
                ensure!(open == size, "{open} of {}", nodes.len());
                Ok(Some(()))
            })
            .await;
        open?;
        Ok(scene)
    }

    /// Name of the Auto Scaling group.
    pub fn scaling_group(&self) -> String {
        format!("demo-{}-{GROUP}", self.ground.name)
    }

    /// A Deployment that runs on the nodes of this group only, in the namespace of this test.
    pub fn workload(&self, name: &str) -> Workload {
        Workload::new(&self.ground.name, name).on_group(&self.scaling_group())
    }

    pub fn client(&self) -> Client {
        self.testbed.admin()
    }

    /// The Node objects of the group.
    pub async fn node_objects(&self) -> Result<Vec<Node>> {
        let of_group = ListParams::default().labels(&format!("sluice.test/group={}", self.scaling_group()));
        Ok(Api::all(self.client()).list(&of_group).await?.items)
    }

    /// The nodes' names by the instances' ids: the order in which a rollout takes them.
    pub async fn in_order(&self) -> Result<Vec<String>> {
        let mut instances = self.members().await?;
        instances.sort_by(|one, other| one.instance_id.cmp(&other.instance_id));
        Ok(instances
            .into_iter()
            .map(|instance| instance.private_dns_name)
            .collect())
    }

    /// The group's instances.
    pub async fn members(&self) -> Result<Vec<SimulatedInstance>> {
        self.instances(GROUP).await
    }

    /// The instance behind a node.
    pub async fn instance_of(&self, node: &str) -> Result<String> {
        let mut members = self.members().await?.into_iter();
        let found = members.find(|member| member.private_dns_name == node);
        Ok(found.with_context(|| format!("no instance of {node}"))?.instance_id)
    }

    /// Publishes a new image and approves the request that follows.
    pub async fn approve_new(&self, image: &str) -> Result<String> {
        let new = self.publish(image).await?;
        self.approve().await?;
        Ok(new)
    }

    /// Approves the request that waits.
    pub async fn approve(&self) -> Result<()> {
        let request = self.until_phase(Phase::Pending).await?;
        let approval = json!({ "spec": { "approved": true, "approvedBy": "admin" } });
        self.patch_request(&request.name_any(), approval).await?;
        Ok(())
    }

    /// Waits until the one request is in a phase, as long as a rollout may take.
    pub async fn until_phase(&self, phase: Phase) -> Result<InstanceGroupUpgradeRequest> {
        self.testbed
            .until(
                PATIENCE,
                &format!("{}: a request {phase}", self.ground.name),
                async || {
                    let requests = self.requests.list(&ListParams::default()).await?.items;
                    let found = requests.iter().find(|request| request.phase() == phase);
                    if found.is_none() {
                        let seen: Vec<_> = requests
                            .iter()
                            .map(|request| {
                                let message = request.status.as_ref().and_then(|status| status.message.clone());
                                format!("{}: {}", request.phase(), message.unwrap_or_default())
                            })
                            .collect();
                        anyhow::bail!("{seen:?}");
                    }
                    Ok(found.cloned())
                },
            )
            .await
    }

    /// Waits until `Blocked` holds for a reason; answers its message.
    pub async fn until_blocked(&self, reason: &str) -> Result<String> {
        let start = format!("{reason}: ");
        let group = self
            .until_group(GROUP, &format!("Blocked for {reason}"), |group| {
                crate::gate::ground::condition(group, "Blocked").is_some_and(|words| words.starts_with(&start))
            })
            .await?;
        crate::gate::ground::condition(&group, "Blocked").context("the condition")
    }

    /// Waits until this many Ready nodes run an image.
    pub async fn until_updated(&self, image: &str, count: usize) -> Result<()> {
        self.testbed
            .until(PATIENCE, &format!("{count} Ready nodes on {image}"), async || {
                let nodes = self.node_objects().await?;
                let updated = nodes.iter().filter(|node| is_ready(node) && image_of(node) == image);
                let updated = updated.count();
                ensure!(updated == count, "{updated}");
                Ok(Some(()))
            })
            .await
    }

    /// Waits until the group is at rest, all nodes Ready on an image, and nothing of a rollout is left anywhere.
    pub async fn until_clean(&self, image: &str, count: usize) -> Result<()> {
        self.until_images(GROUP, image, count).await?;
        self.until_updated(image, count).await?;
        self.until_nothing_left(&[]).await
    }

    /// Waits until nothing of ours is left on nodes and the Auto Scaling group. `cordoned` by a person is as it was.
    pub async fn until_nothing_left(&self, cordoned: &[&str]) -> Result<()> {
        self.testbed
            .until(PATIENCE, "no leftovers", async || {
                for node in self.node_objects().await? {
                    let name = node.name_any();
                    let ours = leftovers(&node);
                    ensure!(ours.is_empty(), "{name} has {ours:?}");
                    let cordoned = cordoned.contains(&name.as_str());
                    ensure!(is_cordoned(&node) == cordoned, "{name} cordoned: {}", !cordoned);
                }
                let suspended = self.scaling_group_seen().await?.suspended;
                ensure!(suspended.is_empty(), "{suspended:?}");
                Ok(Some(()))
            })
            .await
    }

    /// The Auto Scaling group as AWS shows it.
    pub async fn scaling_group_seen(&self) -> Result<SeenGroup> {
        let client = aws_sdk_autoscaling::Client::new(&self.testbed.aws().sdk_config());
        let answer = client
            .describe_auto_scaling_groups()
            .auto_scaling_group_names(self.scaling_group())
            .send()
            .await?;
        let group = answer.auto_scaling_groups().first().context("no such group")?;
        let pin = group.launch_template().and_then(|source| source.version());
        let suspended = group.suspended_processes().iter();
        Ok(SeenGroup {
            pin: pin.context("no pin")?.to_owned(),
            suspended: suspended
                .filter_map(|it| it.process_name().map(str::to_owned))
                .collect(),
        })
    }

    /// The changes at AWS after a call that concern this group or these instances, in their order.
    pub async fn changes(&self, after: u64, instances: &BTreeSet<String>) -> Result<Vec<Call>> {
        let mark = format!("{}-", self.ground.name);
        let calls = self.testbed.aws().calls(after).await?;
        let concerns = |value: &String| value.contains(&mark) || instances.contains(value);
        // A group that is gone has no template either.
        let template = self.groups.get_opt(GROUP).await?.and_then(|group| group.status);
        let template = template
            .and_then(|status| status.launch_template?.id)
            .unwrap_or_default();
        Ok(calls
            .into_iter()
            .filter(|call| {
                call.mutating
                    && call
                        .parameters
                        .values()
                        .any(|value| concerns(value) || *value == template)
            })
            .collect())
    }

    /// Waits until the operator has looked at AWS, at images and at this group some more times.
    pub async fn after_more_looks(&self) -> Result<()> {
        let after = self.testbed.aws().last_sequence().await?;
        self.patch(
            GROUP,
            json!({ "metadata": { "annotations": { "sluice.test/poke": after.to_string() } } }),
        )
        .await?;
        self.testbed
            .until(PATIENCE, "more polls of AWS", async || {
                let counts = self.testbed.aws().counts(after).await?;
                let count = |service: &str, action: &str| {
                    counts
                        .get(service)
                        .and_then(|actions| actions.get(action))
                        .copied()
                        .unwrap_or_default()
                };
                let (groups, images) = (
                    count("autoscaling", "DescribeAutoScalingGroups"),
                    count("ssm", "GetParameters"),
                );
                ensure!(groups >= 3 && images >= 3, "{counts:?}");
                Ok(Some(()))
            })
            .await
    }

    /// The operator's writes on Nodes of these names, in their order.
    pub fn node_writes(&self, after: AuditPosition, names: &BTreeSet<String>) -> Result<Vec<NodeWrite>> {
        let events = self.testbed.audit_after(after)?;
        Ok(events
            .iter()
            .filter_map(NodeWrite::of)
            .filter(|write| names.contains(&write.node))
            .collect())
    }

    /// Makes `names` of the group's nodes.
    pub async fn node_names(&self) -> Result<BTreeSet<String>> {
        Ok(self.node_objects().await?.iter().map(ResourceExt::name_any).collect())
    }

    /// An instance of the group is terminated by somebody else, and not missed.
    pub async fn terminate(&self, instance: &str) -> Result<()> {
        let client = aws_sdk_autoscaling::Client::new(&self.testbed.aws().sdk_config());
        client
            .terminate_instance_in_auto_scaling_group()
            .instance_id(instance)
            .should_decrement_desired_capacity(false)
            .send()
            .await?;
        Ok(())
    }
}

/// What a test reads of an Auto Scaling group.
pub struct SeenGroup {
    pub pin: String,
    pub suspended: Vec<String>,
}

/// A write of the operator's on a Node that went through.
#[derive(Clone, Debug)]
pub struct NodeWrite {
    pub at: jiff::Timestamp,
    pub node: String,
    /// The patch.
    pub patch: Value,
    /// The Node after it.
    pub after: Node,
}

impl NodeWrite {
    fn of(event: &Value) -> Option<Self> {
        let object = &event["objectRef"];
        let ours = object["resource"] == "nodes"
            && event["user"]["username"] == OPERATOR
            && event["stage"] == "ResponseComplete"
            && event["responseStatus"]["code"] == 200;
        ours.then_some(())?;
        Some(Self {
            at: event["requestReceivedTimestamp"].as_str()?.parse().ok()?,
            node: object["name"].as_str()?.to_owned(),
            patch: event["requestObject"].clone(),
            after: serde_json::from_value(event["responseObject"].clone()).ok()?,
        })
    }

    pub fn cordons(&self) -> bool {
        self.patch["spec"]["unschedulable"] == true
    }

    pub fn uncordons(&self) -> bool {
        self.patch["spec"].get("unschedulable").is_some_and(Value::is_null)
    }
}

pub fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

pub fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The image that a node says it was made from.
pub fn image_of(node: &Node) -> &str {
    node.labels().get(label::IMAGE).map(String::as_str).unwrap_or_default()
}

/// What the operator noted on a node.
pub fn record(node: &Node) -> Option<NodeRecord> {
    NodeRecord::parse(node.annotations().get(annotation::ROLLOUT)?)
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| taint.key.clone()).collect()
}

/// What of ours is on a node, but for the cordon.
pub fn leftovers(node: &Node) -> Vec<String> {
    let annotations = node.annotations().keys().filter(|key| {
        let key = key.as_str();
        key.starts_with("instancemgr.") || key == annotation::SCALE_DOWN_DISABLED
    });
    let labels = node.labels().keys();
    let labels = labels.filter(|key| key.as_str() == label::EXCLUDE_FROM_LOAD_BALANCERS);
    let taints = taints(node).into_iter().filter(|key| key == label::TAINT_UPGRADING);
    annotations.chain(labels).cloned().chain(taints).collect()
}
