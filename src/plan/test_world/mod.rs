//! A toy world for tests of the plan: a group, its requests, and an AWS that does what it is told at once.
//!
//! Owns the loop observe, plan, apply over plain values, and the transcript of it. Must stay simpler than what it tests:
//! it knows no rule of the gate.

mod effects;
mod facts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::evidence::ParameterHistory;
use super::facts::workload::Pod;
use super::facts::{
    AutoScalingGroup, Fact, FailedActivity, Failure, FailureClass, Image, LaunchTemplate, Node, Parameter,
};
use super::observed::{LookUps, Observed, Slots};
use super::rollout::Hold;
use super::settings::{Freeze, InForce, read};
use super::step::{Plan, Wake};
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, Phase};
use crate::api::{InstanceGroup, annotation};

pub use facts::{PARAMETER, empty_group, image, inputs, look_ups};

/// The toy world.
pub struct World {
    /// The time.
    pub now: Timestamp,
    /// The group.
    pub group: InstanceGroup,
    /// Its requests.
    pub requests: Vec<InstanceGroupUpgradeRequest>,
    /// The Auto Scaling group, if there is one.
    pub scaling_group: Option<AutoScalingGroup>,
    /// The launch template, if there is one.
    pub template: Option<LaunchTemplate>,
    /// What rendering needs.
    pub look_ups: LookUps,
    /// Values of parameters over time.
    pub histories: BTreeMap<String, ParameterHistory>,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Fact<Parameter>>,
    /// Images by id.
    pub images: BTreeMap<String, Fact<Image>>,
    /// Nodes by instance id.
    pub nodes: BTreeMap<String, Node>,
    /// The namespace's lock annotation.
    pub namespace_lock: Option<String>,
    /// The fleet's settings.
    pub settings: InForce,
    /// Labels of the namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// How far AWS's clock is ahead.
    pub clock_skew: Option<SignedDuration>,
    /// While set, AWS answers every look-up of groups with it.
    pub groups_outage: Option<Failure>,
    /// While set, AWS answers every look-up of templates with it.
    pub templates_outage: Option<Failure>,
    /// Calls that fail although their last answer is known.
    pub troubles: Vec<Failure>,
    /// Why no rollout may go on.
    pub hold: Option<Hold>,
    /// Since when names of who decides are vouched for.
    pub vouched_since: Option<Timestamp>,
    /// The fleet's slots.
    pub slots: Slots,
    /// What Auto Scaling says about a failed launch.
    pub failed_activity: Option<FailedActivity>,
    /// Images whose nodes never become Ready.
    pub bad_images: BTreeSet<String>,
    /// Pods by instance id; an instance that is not named has none.
    pub pods: BTreeMap<String, Vec<Pod>>,
    /// What happened, as text.
    pub transcript: String,
    /// AWS actions so far, as text.
    pub aws_actions: Vec<String>,
    counter: u32,
}

impl World {
    /// A group of three that follows the recommended image, before anything is made for it.
    pub fn new(locked: bool) -> Self {
        let mut annotations = json!({ annotation::OS_FAMILY: "amazonlinux2023" });
        if locked {
            annotations[annotation::LOCK_UPGRADES] = json!("true");
        }
        let group = json!({
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1",
            "kind": "InstanceGroup",
            "metadata": {
                "namespace": "team", "name": "workers", "uid": "uid-1", "generation": 1, "resourceVersion": "1",
                "creationTimestamp": "2026-11-01T00:00:00Z", "annotations": annotations,
            },
            "spec": {
                "provisioner": "eks",
                "eks": {
                    "minSize": 3, "maxSize": 6,
                    "configuration": {
                        "clusterName": "demo", "image": "latest", "instanceType": "m5.large",
                        "roleName": "demo-node", "instanceProfileName": "demo-node",
                        "subnets": ["subnet-a", "subnet-b", "subnet-c"], "securityGroups": ["nodes"],
                        "tags": [{ "key": "team", "value": "blue" }],
                    },
                },
            },
        });
        let mut world = Self {
            now: "2026-11-02T00:00:00Z".parse().unwrap(),
            group: serde_json::from_value(group).unwrap(),
            requests: Vec::new(),
            scaling_group: None,
            template: None,
            look_ups: look_ups(),
            histories: BTreeMap::new(),
            parameters: BTreeMap::new(),
            images: BTreeMap::new(),
            nodes: BTreeMap::new(),
            namespace_lock: None,
            settings: InForce::default(),
            namespace_labels: BTreeMap::new(),
            clock_skew: None,
            groups_outage: None,
            templates_outage: None,
            troubles: Vec::new(),
            hold: None,
            vouched_since: None,
            slots: Slots {
                held: false,
                taken: 0,
                all: 10,
                of_schedule: None,
            },
            failed_activity: None,
            bad_images: BTreeSet::new(),
            pods: BTreeMap::new(),
            transcript: String::new(),
            aws_actions: Vec::new(),
            counter: 0,
        };
        world.publish("ami-0a");
        world
    }

    /// A group of three at rest on `ami-0a`, with an empty transcript.
    pub fn at_rest(locked: bool) -> Self {
        let mut world = Self::new(locked);
        world.run();
        assert_eq!(world.state(), "Ready", "{}", world.transcript);
        world.transcript.clear();
        world.aws_actions.clear();
        world
    }

    /// What a look sees.
    pub fn observe(&self) -> Observed {
        let mut observed = self.observe_all();
        // Looked up is what the manifest names, then what else has to be known.
        let known = std::mem::take(&mut observed.look_ups.subnets);
        let named = self
            .group
            .spec
            .eks
            .iter()
            .flat_map(|eks| eks.configuration.subnets.clone());
        for ids in [named.collect(), observed.other_subnets()] {
            let answers = ids.into_iter().filter_map(|id| known.get_key_value(&id));
            let answers: Vec<_> = answers.map(|(id, fact)| (id.clone(), fact.clone())).collect();
            observed.look_ups.subnets.extend(answers);
        }
        observed
    }

    fn observe_all(&self) -> Observed {
        Observed {
            now: self.now,
            group: self.group.clone(),
            namespace_lock: self.namespace_lock.clone(),
            kept_versions: 2,
            settings: Arc::new(self.settings()),
            namespace_labels: self.namespace_labels.clone(),
            clock_skew: self.clock_skew,
            requests: self
                .requests
                .iter()
                .filter(|request| request.is_about(&self.group))
                .cloned()
                .collect(),
            scaling_group: match (&self.groups_outage, &self.scaling_group) {
                (Some(failure), _) => fact_of(failure),
                (None, Some(group)) => Fact::Found(group.clone()),
                (None, None) => Fact::NotFound,
            },
            template: match (&self.templates_outage, &self.template) {
                (Some(failure), _) => fact_of(failure),
                (None, Some(template)) => Fact::Found(template.clone()),
                (None, None) => Fact::NotFound,
            },
            look_ups: self.look_ups.clone(),
            histories: self.histories.clone(),
            parameters: self.parameters.clone(),
            images: self.images.clone(),
            nodes: self.nodes.clone(),
            troubles: self.troubles.clone(),
            pods: self.pods(),
            own_node: None,
            refuge: true,
            vouched_since: self.vouched_since,
            slots: self.slots,
            failed_activity: self.failed_activity.clone(),
        }
    }

    /// The settings, with a freeze or a closed window where one is set by hand.
    fn settings(&self) -> InForce {
        let Some(hold) = &self.hold else {
            return self.settings.clone();
        };
        let mut settings = self.settings.binding().cloned().unwrap_or_default();
        match hold {
            Hold::Freeze { reason, until } => {
                settings.freeze = Freeze {
                    enabled: true,
                    reason: reason.clone(),
                    until: *until,
                }
            }
            Hold::Window { .. } => {
                let closed = "schedules: [{name: closed, match: {}, windows: [{kind: allow, from: 2020-01-01, to: 2020-01-01}]}]";
                settings.schedules = read(closed).unwrap().schedules;
            }
        }
        InForce::of(settings)
    }

    fn pods(&self) -> BTreeMap<String, Fact<Vec<Pod>>> {
        let instances = self.scaling_group.iter().flat_map(|group| &group.instances);
        let pods = |id: &String| self.pods.get(id).cloned().unwrap_or_default();
        instances
            .map(|instance| (instance.id.clone(), Fact::Found(pods(&instance.id))))
            .collect()
    }

    /// What would be done now.
    pub fn plan(&self) -> Plan {
        super::plan_group(&self.observe())
    }

    /// One look with all its effects.
    pub fn pass(&mut self) -> Plan {
        let plan = self.plan();
        let _ = write!(self.transcript, "{}", lines(&plan));
        self.apply(&plan);
        plan
    }

    /// Looks until nothing more is to be done at once.
    pub fn settle(&mut self) {
        for _ in 0..60 {
            let wake = self.pass().wake;
            if self.group.metadata.finalizers.as_ref().is_some_and(Vec::is_empty) {
                return;
            }
            match wake {
                Wake::Now => {}
                // A look that is due in a moment belongs to the same story.
                Wake::At(time) if time.duration_since(self.now) <= SignedDuration::from_secs(5) => self.now = time,
                Wake::At(_) | Wake::OnEvent => return,
            }
        }
        panic!("does not come to rest:\n{}", self.transcript);
    }

    /// Settles, boots what was launched, and so on until nothing changes.
    pub fn run(&mut self) {
        for _ in 0..200 {
            self.settle();
            if !self.boot() {
                return;
            }
        }
        panic!("does not end:\n{}", self.transcript);
    }

    /// Makes every instance's node Ready; returns whether one was not.
    pub fn boot(&mut self) -> bool {
        let mut booted = Vec::new();
        let template = self.template.as_ref();
        for instance in self.scaling_group.iter().flat_map(|group| &group.instances) {
            let version = instance
                .template_version
                .and_then(|version| template?.versions.get(&version));
            if version.is_some_and(|version| self.bad_images.contains(&version.image_id)) {
                continue;
            }
            if self.nodes.get(&instance.id).is_none_or(|node| !node.ready) {
                booted.push(instance.id.clone());
            }
        }
        for id in &booted {
            self.ready(id);
        }
        if !booted.is_empty() {
            self.say(&format!("nodes become Ready: {}", booted.join(", ")));
        }
        !booted.is_empty()
    }

    /// Makes an instance's node Ready, as if it had just registered.
    pub fn ready(&mut self, id: &str) {
        let node = Node {
            name: format!("node-{id}"),
            instance_id: id.to_owned(),
            ready: true,
            image_label: None,
            cordoned: false,
            avoided: false,
            record: None,
        };
        self.nodes.insert(id.to_owned(), node);
    }

    /// Lets time pass.
    pub fn wait(&mut self, duration: SignedDuration) {
        self.now += duration;
        self.say(&format!("{duration:#} pass"));
    }

    /// Adds a line to the transcript.
    pub fn say(&mut self, text: &str) {
        let _ = writeln!(self.transcript, "---   {text}");
    }

    /// Publishes a recommended image.
    pub fn publish(&mut self, id: &str) {
        self.republish(PARAMETER, id);
    }

    /// Publishes an image under a parameter.
    pub fn republish(&mut self, name: &str, id: &str) {
        self.images.insert(id.to_owned(), Fact::Found(image(id)));
        let version = match self.parameters.get(name) {
            Some(Fact::Found(parameter)) => parameter.version + 1,
            _ => 1,
        };
        let parameter = Parameter {
            name: name.to_owned(),
            value: id.to_owned(),
            version,
            last_modified: Some(self.now),
        };
        self.histories
            .entry(name.to_owned())
            .or_default()
            .seen(&parameter, self.now);
        self.parameters.insert(name.to_owned(), Fact::Found(parameter));
        self.say(&format!("recommended image: {id}"));
    }

    /// Upgrades the cluster's control plane, for which an image is published.
    pub fn upgrade_cluster(&mut self, version: &str, image: &str) {
        let Fact::Found(cluster) = &mut self.look_ups.cluster else {
            panic!("no cluster")
        };
        cluster.kubernetes_version = version.to_owned();
        self.say(&format!("the cluster runs {version}"));
        self.republish(&PARAMETER.replace("1.33", version), image);
    }

    /// The request in a phase.
    pub fn request(&self, phase: Phase) -> &InstanceGroupUpgradeRequest {
        let found: Vec<_> = self
            .requests
            .iter()
            .filter(|request| request.phase() == phase)
            .collect();
        assert_eq!(
            found.len(),
            1,
            "requests in {phase}: {}\n{}",
            found.len(),
            self.transcript
        );
        found[0]
    }

    /// Phases of all requests.
    pub fn phases(&self) -> Vec<Phase> {
        self.requests.iter().map(InstanceGroupUpgradeRequest::phase).collect()
    }

    /// A person's edit of the decision block of the request in a phase.
    pub fn decide(&mut self, phase: Phase, edit: impl FnOnce(&mut InstanceGroupUpgradeRequest)) {
        let name = self.request(phase).metadata.name.clone();
        let request = self
            .requests
            .iter_mut()
            .find(|request| request.metadata.name == name)
            .unwrap();
        edit(request);
        self.touch(name.as_deref().unwrap());
    }

    /// Approves the pending request.
    pub fn approve(&mut self) {
        self.say("approved by alice");
        self.decide(Phase::Pending, |request| {
            request.spec.approved = true;
            request.spec.approved_by = "alice".to_owned();
        });
    }

    /// A person deletes the request in a phase.
    pub fn delete_request(&mut self, phase: Phase) {
        let now = self.now;
        self.say("somebody deletes the request");
        self.decide(phase, |request| {
            request.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        });
    }

    /// The state word.
    pub fn state(&self) -> String {
        self.group
            .status
            .as_ref()
            .and_then(|status| status.current_state.clone())
            .unwrap_or_default()
    }

    /// Status of a condition.
    pub fn condition(&self, kind: crate::api::ConditionType) -> Option<String> {
        let status = self.group.status.as_ref()?;
        status
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind.as_ref())
            .map(|condition| condition.status.clone())
    }

    /// Images of the running instances, in the group's order.
    pub fn running_images(&self) -> Vec<String> {
        let template = self.template.as_ref();
        self.scaling_group
            .iter()
            .flat_map(|group| &group.instances)
            .map(|instance| {
                instance
                    .template_version
                    .and_then(|version| template?.versions.get(&version))
                    .map_or_else(|| "?".to_owned(), |version| version.image_id.clone())
            })
            .collect()
    }

    fn next(&mut self, prefix: &str) -> String {
        self.counter += 1;
        format!("{prefix}-{}", self.counter)
    }
}

fn fact_of<T>(failure: &Failure) -> Fact<T> {
    Fact::Unknown(failure.clone())
}

/// A failed call of a class.
pub fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        action: "autoscaling:DescribeAutoScalingGroups".to_owned(),
        code: None,
        message: "no luck".to_owned(),
    }
}

/// The plan as text, without the parts that only repeat.
fn lines(plan: &Plan) -> String {
    let text = plan.to_string();
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("look again on") && !line.starts_with("look again now"))
        .collect();
    kept.iter().fold(String::new(), |all, line| all + line + "\n")
}
