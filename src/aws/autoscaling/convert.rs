//! Auto Scaling's types as the product's.
//!
//! Owns the reading of a group's answer. Must not call and must not judge. Instances are sorted by id: the
//! service lists them in changing order, and a change of order is no change.

use aws_sdk_autoscaling::types;

use crate::plan::facts::{AutoScalingGroup, GroupTag, Instance, LaunchSource, VersionSelector};

pub(super) fn group(group: &types::AutoScalingGroup) -> AutoScalingGroup {
    let mut instances: Vec<Instance> = group.instances().iter().map(instance).collect();
    instances.sort_by(|left, right| left.id.cmp(&right.id));
    AutoScalingGroup {
        name: text(group.auto_scaling_group_name()),
        min_size: group.min_size().unwrap_or_default(),
        max_size: group.max_size().unwrap_or_default(),
        desired_capacity: group.desired_capacity().unwrap_or_default(),
        subnets: group
            .vpc_zone_identifier()
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect(),
        launch_source: launch_source(group),
        tags: group.tags().iter().map(tag).collect(),
        suspended_processes: group
            .suspended_processes()
            .iter()
            .filter_map(|process| process.process_name().map(str::to_owned))
            .collect(),
        enabled_metrics: group
            .enabled_metrics()
            .iter()
            .filter_map(|metric| metric.metric().map(str::to_owned))
            .collect(),
        instances,
        // The only value AWS documents is "Delete in progress"; the field is absent otherwise.
        deleting: group.status().is_some_and(|status| !status.is_empty()),
    }
}

fn launch_source(group: &types::AutoScalingGroup) -> LaunchSource {
    match group.launch_template() {
        Some(template) if group.mixed_instances_policy().is_none() => LaunchSource::Template {
            id: text(template.launch_template_id()),
            name: text(template.launch_template_name()),
            version: version(template.version()),
        },
        _ => LaunchSource::Other,
    }
}

/// Nothing means `$Default` to Auto Scaling.
fn version(version: Option<&str>) -> VersionSelector {
    match version {
        None | Some("") => VersionSelector::Moving("$Default".into()),
        Some(version) => version
            .parse()
            .map_or_else(|_| VersionSelector::Moving(version.to_owned()), VersionSelector::Number),
    }
}

fn tag(tag: &types::TagDescription) -> (String, GroupTag) {
    let value = GroupTag {
        value: text(tag.value()),
        propagate: tag.propagate_at_launch().unwrap_or_default(),
    };
    (text(tag.key()), value)
}

fn instance(instance: &types::Instance) -> Instance {
    let template = instance.launch_template();
    Instance {
        id: text(instance.instance_id()),
        zone: text(instance.availability_zone()),
        lifecycle_state: instance
            .lifecycle_state()
            .map(|state| state.as_str().to_owned())
            .unwrap_or_default(),
        healthy: instance
            .health_status()
            .is_some_and(|health| health.eq_ignore_ascii_case("healthy")),
        template_id: template.and_then(|template| template.launch_template_id().map(str::to_owned)),
        // An instance carries the number that it was launched with, whatever the group says.
        template_version: template.and_then(|template| template.version()?.parse().ok()),
    }
}

fn text(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn template(version: &str) -> types::LaunchTemplateSpecification {
        types::LaunchTemplateSpecification::builder()
            .launch_template_id("lt-1")
            .launch_template_name("one")
            .version(version)
            .build()
    }

    fn member(id: &str) -> types::Instance {
        types::Instance::builder()
            .instance_id(id)
            .availability_zone("us-west-2a")
            .lifecycle_state(types::LifecycleState::from("Pending:Wait"))
            .health_status("Healthy")
            .launch_template(template("4"))
            .build()
    }

    #[test]
    fn a_group_is_read_whole() {
        let answer = types::AutoScalingGroup::builder()
            .auto_scaling_group_name("a")
            .min_size(1)
            .max_size(3)
            .desired_capacity(2)
            .vpc_zone_identifier("subnet-2, subnet-1,")
            .launch_template(template("7"))
            .tags(
                types::TagDescription::builder()
                    .key("k")
                    .value("v")
                    .propagate_at_launch(true)
                    .build(),
            )
            .suspended_processes(types::SuspendedProcess::builder().process_name("AZRebalance").build())
            .enabled_metrics(types::EnabledMetric::builder().metric("GroupMinSize").build())
            .instances(member("i-2"))
            .instances(member("i-1"))
            .status("Delete in progress")
            .build();
        let read = group(&answer);
        assert_eq!((read.min_size, read.max_size, read.desired_capacity), (1, 3, 2));
        assert_eq!(read.subnets, ["subnet-1".to_owned(), "subnet-2".to_owned()].into());
        let source = LaunchSource::Template {
            id: "lt-1".into(),
            name: "one".into(),
            version: VersionSelector::Number(7),
        };
        assert_eq!(read.launch_source, source);
        assert_eq!(
            read.tags["k"],
            GroupTag {
                value: "v".into(),
                propagate: true
            }
        );
        assert_eq!(
            read.instances.iter().map(|i| i.id.as_str()).collect::<Vec<_>>(),
            ["i-1", "i-2"]
        );
        assert_eq!(read.instances[0].lifecycle_state, "Pending:Wait");
        assert_eq!(read.instances[0].template_version, Some(4));
        assert!(read.deleting && read.instances[0].healthy);
    }

    #[test]
    fn a_moving_version_is_told_from_a_number() {
        assert_eq!(version(Some("12")), VersionSelector::Number(12));
        assert_eq!(version(Some("$Latest")), VersionSelector::Moving("$Latest".into()));
        assert_eq!(version(None), VersionSelector::Moving("$Default".into()));
    }

    #[test]
    fn anything_but_a_plain_template_is_other() {
        let plain = types::AutoScalingGroup::builder()
            .launch_configuration_name("lc")
            .build();
        assert_eq!(group(&plain).launch_source, LaunchSource::Other);
        let mixed = types::AutoScalingGroup::builder()
            .launch_template(template("1"))
            .mixed_instances_policy(types::MixedInstancesPolicy::builder().build())
            .build();
        assert_eq!(group(&mixed).launch_source, LaunchSource::Other);
        assert!(!group(&mixed).deleting);
    }
}
