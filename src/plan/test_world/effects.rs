//! What the toy AWS and the toy API server do when told to.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::World;
use super::facts::empty_group;
use crate::plan::facts::{Instance, LaunchSource, LaunchTemplate, TemplateVersion, VersionSelector};
use crate::plan::group::in_motion;
use crate::plan::launch::LaunchInputs;
use crate::plan::naming::VersionMark;
use crate::plan::rollout::tests::toy::edit_node;
use crate::plan::step::{Action, GroupChange, Plan};

impl World {
    /// Carries out a plan.
    pub fn apply(&mut self, plan: &Plan) {
        for action in &plan.actions {
            if action.is_aws() {
                self.aws_actions.push(action.to_string());
            }
            self.on_cluster(action);
            self.on_templates(action);
            self.on_groups(action);
        }
        self.group.status = Some(plan.status.clone());
        // As the controller does: a group that does not roll out needs no slot.
        let claims = plan.actions.contains(&Action::TakeSlot);
        if self.slots.held && !claims && !in_motion(&self.group, &self.requests) {
            self.slots.held = false;
            self.slots.taken -= 1;
        }
    }

    /// A write gives an object a new resourceVersion.
    pub fn touch(&mut self, name: &str) {
        let version = self.next("");
        if let Some(request) = self
            .requests
            .iter_mut()
            .find(|request| request.metadata.name.as_deref() == Some(name))
        {
            request.metadata.resource_version = Some(version);
        }
    }

    fn on_cluster(&mut self, action: &Action) {
        match action {
            Action::AddFinalizer => {
                self.group.metadata.finalizers = Some(vec![crate::api::INSTANCE_GROUP_FINALIZER.to_owned()]);
            }
            Action::RemoveFinalizer => self.group.metadata.finalizers = Some(Vec::new()),
            Action::RemoveAnnotation { key, .. } => {
                self.group.metadata.annotations.as_mut().unwrap().remove(*key);
            }
            Action::OpenRequest(request) => {
                let mut request = request.as_ref().clone();
                assert!(
                    !self
                        .requests
                        .iter()
                        .any(|other| other.metadata.name == request.metadata.name),
                    "AlreadyExists"
                );
                request.metadata.uid = Some(self.next("request"));
                request.metadata.creation_timestamp = Some(Time(self.now));
                let name = request.metadata.name.clone().unwrap();
                self.requests.push(request);
                self.touch(&name);
            }
            Action::MoveRequest(step) => {
                let request = self
                    .requests
                    .iter_mut()
                    .find(|request| request.metadata.uid.as_deref() == Some(step.request.uid.as_str()))
                    .unwrap();
                assert_eq!(
                    request.metadata.resource_version.as_deref(),
                    Some(step.request.resource_version.as_str()),
                    "Conflict"
                );
                request.status = Some(step.status.clone());
                self.touch(&step.request.name);
            }
            Action::ReleaseRequest(reference) | Action::RemoveRequest(reference) => {
                self.requests
                    .retain(|request| request.metadata.uid.as_deref() != Some(reference.uid.as_str()));
            }
            Action::EditNode { instance_id, edit, .. } => {
                if let Some(node) = self.nodes.get_mut(instance_id) {
                    edit_node(node, edit);
                }
            }
            Action::Evict { pod, .. } => {
                for pods in self.pods.values_mut() {
                    pods.retain(|other| other.id != *pod);
                }
            }
            Action::TakeSlot => {
                self.slots.held = true;
                self.slots.taken += 1;
            }
            _ => {}
        }
    }

    fn on_templates(&mut self, action: &Action) {
        match action {
            Action::CreateTemplate { name, mark, inputs, .. } => {
                assert!(self.template.is_none(), "AlreadyExists");
                let version = self.version(1, mark, inputs);
                let id = self.next("lt");
                self.template = Some(LaunchTemplate {
                    id,
                    name: name.clone(),
                    default_version: 1,
                    versions: BTreeMap::from([(1, version)]),
                    complete: true,
                });
            }
            Action::CreateVersion { mark, inputs, .. } => {
                let number = self.template.as_ref().unwrap().versions.keys().max().unwrap() + 1;
                let version = self.version(number, mark, inputs);
                self.template.as_mut().unwrap().versions.insert(number, version);
            }
            Action::SetDefaultVersion { number, .. } => {
                let template = self.template.as_mut().unwrap();
                assert!(template.versions.contains_key(number));
                template.default_version = *number;
            }
            Action::DeleteVersions { numbers, .. } => {
                let template = self.template.as_mut().unwrap();
                assert!(
                    !numbers.contains(&template.default_version),
                    "EC2 refuses to delete a default version"
                );
                template.versions.retain(|number, _| !numbers.contains(number));
            }
            Action::DeleteTemplate { .. } => self.template = None,
            _ => {}
        }
    }

    fn version(&self, number: i64, mark: &VersionMark, inputs: &LaunchInputs) -> TemplateVersion {
        TemplateVersion {
            number,
            description: mark.describe(),
            image_id: inputs.image_id.clone(),
            created_at: self.now,
            inputs: Some(Box::new(inputs.clone())),
        }
    }

    fn on_groups(&mut self, action: &Action) {
        match action {
            Action::CreateGroup {
                name,
                template_id,
                version,
                min_size,
                max_size,
                subnets,
                tags,
            } => {
                let mut group = empty_group();
                group.name.clone_from(name);
                group.min_size = *min_size;
                group.max_size = *max_size;
                group.desired_capacity = *min_size;
                group.subnets.clone_from(subnets);
                group.tags.clone_from(tags);
                self.scaling_group = Some(group);
                self.pin(template_id, *version);
                self.fill();
            }
            Action::UpdateGroup { change, .. } => {
                let GroupChange { sizes, subnets, pin } = change;
                let group = self.scaling_group.as_mut().unwrap();
                if let Some((min, max)) = sizes {
                    (group.min_size, group.max_size) = (*min, *max);
                    group.desired_capacity = group.desired_capacity.clamp(*min, *max);
                }
                if let Some(subnets) = subnets {
                    group.subnets.clone_from(subnets);
                }
                if let Some((template, version)) = pin {
                    self.pin(template, *version);
                }
                self.fill();
            }
            Action::PutTags { tags, .. } => self.scaling_group.as_mut().unwrap().tags.extend(tags.clone()),
            Action::DeleteTags { keys, .. } => self
                .scaling_group
                .as_mut()
                .unwrap()
                .tags
                .retain(|key, _| !keys.contains(key)),
            Action::SuspendProcess { process, .. } => {
                let group = self.scaling_group.as_mut().unwrap();
                group.suspended_processes.insert(process.clone());
            }
            Action::ResumeProcess { process, .. } => {
                self.scaling_group.as_mut().unwrap().suspended_processes.remove(process);
                self.fill();
            }
            Action::Terminate {
                instance_id, shrink, ..
            } => {
                self.scaling_group.as_mut().unwrap().desired_capacity -= i32::from(*shrink);
                self.scaling_group
                    .as_mut()
                    .unwrap()
                    .instances
                    .retain(|instance| instance.id != *instance_id);
                self.nodes.remove(instance_id);
                self.fill();
            }
            Action::DeleteGroup { .. } => {
                self.scaling_group = None;
                self.nodes.clear();
            }
            _ => {}
        }
    }

    fn pin(&mut self, template_id: &str, version: i64) {
        let name = self
            .template
            .as_ref()
            .map(|template| template.name.clone())
            .unwrap_or_default();
        let source = LaunchSource::Template {
            id: template_id.to_owned(),
            name,
            version: VersionSelector::Number(version),
        };
        self.scaling_group.as_mut().unwrap().launch_source = source;
    }

    /// What Auto Scaling does unasked and without a drain: takes instances above the size, and those of a zone that the group
    /// has left, unless it may not move instances between zones.
    fn take_unasked(&mut self) {
        let group = self.scaling_group.as_ref().unwrap();
        let zones: Vec<String> = group.subnets.iter().map(|id| zone_of(id)).collect();
        let rebalances = !group.suspended_processes.contains("AZRebalance");
        let desired = usize::try_from(group.desired_capacity).unwrap();
        let stray = |instance: &&Instance| rebalances && !zones.contains(&instance.zone);
        let mut taken: Vec<String> = group.instances.iter().filter(stray).map(|one| one.id.clone()).collect();
        let rest = group.instances.iter().filter(|one| !taken.contains(&one.id));
        taken.extend(rest.skip(desired).map(|one| one.id.clone()).collect::<Vec<_>>());
        for id in taken {
            self.say(&format!("AWS takes {id} unasked"));
            let group = self.scaling_group.as_mut().unwrap();
            group.instances.retain(|instance| instance.id != id);
            self.nodes.remove(&id);
        }
    }

    /// Launches instances up to the desired capacity, on what the group is pinned to.
    pub fn fill(&mut self) {
        self.take_unasked();
        loop {
            let group = self.scaling_group.as_ref().unwrap();
            let have = i32::try_from(group.instances.len()).unwrap();
            if have >= group.desired_capacity {
                return;
            }
            let LaunchSource::Template {
                id: template,
                version: VersionSelector::Number(version),
                ..
            } = group.launch_source.clone()
            else {
                panic!("not pinned to a number");
            };
            let zone = self.emptiest_zone();
            let id = self.next("i");
            self.scaling_group.as_mut().unwrap().instances.push(Instance {
                id,
                zone,
                lifecycle_state: "InService".to_owned(),
                healthy: true,
                template_id: Some(template),
                template_version: Some(version),
            });
        }
    }

    /// The zone of the group's subnets with the fewest instances, as Auto Scaling balances.
    fn emptiest_zone(&self) -> String {
        let group = self.scaling_group.as_ref().unwrap();
        let zones = group.subnets.iter().map(|id| zone_of(id));
        let count = |zone: &String| group.instances.iter().filter(|instance| instance.zone == *zone).count();
        zones.min_by_key(|zone| (count(zone), zone.clone())).unwrap_or_default()
    }
}

/// The zone of a subnet of the toy: `zone-a` of `subnet-a`.
fn zone_of(subnet: &str) -> String {
    subnet.replace("subnet", "zone")
}
