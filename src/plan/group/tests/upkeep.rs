//! What is put right at once, what is left alone, and what a lost record leads to.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;

use crate::api::ConditionType;
use crate::api::upgrade_request::Phase;
use crate::plan::facts::{Fact, FailureClass, GroupTag, LaunchSource, VersionSelector};
use crate::plan::group::{scaling_group_name, template_name};
use crate::plan::step::Wake;
use crate::plan::test_world::{World, failure, look_ups};

fn pin(world: &World) -> Option<i64> {
    match &world.scaling_group.as_ref()?.launch_source {
        LaunchSource::Template {
            version: VersionSelector::Number(number),
            ..
        } => Some(*number),
        _ => None,
    }
}

fn configuration(world: &mut World) -> &mut crate::api::instance_group::EksConfiguration {
    &mut world.group.spec.eks.as_mut().unwrap().configuration
}

#[test]
fn at_rest_nothing_is_done_and_nothing_is_written() {
    for locked in [true, false] {
        let mut world = World::at_rest(locked);
        let before = world.group.clone();
        for _ in 0..100 {
            let plan = world.pass();
            assert!(plan.actions.is_empty() && plan.notices.is_empty(), "{plan}");
            assert_eq!(plan.wake, Wake::OnEvent);
        }
        assert_eq!(world.group, before);
    }
}

#[test]
fn the_creation_is_recorded_before_anything_is_made() {
    let mut world = World::new(true);
    world.pass();
    assert!(world.group.metadata.finalizers.is_some());
    let plan = world.pass();
    assert!(plan.actions.is_empty(), "{plan}");
    let fingerprint = world.group.status.as_ref().unwrap().fingerprint.clone().unwrap();
    assert!(fingerprint.approved.is_some());
    assert_eq!(world.aws_actions, Vec::<String>::new());
    world.settle();
    assert!(world.requests.is_empty(), "creation needs no request, locked or not");
    assert_eq!(
        world.group.status.as_ref().unwrap().history[0].by.as_deref(),
        Some("creation")
    );
}

#[test]
fn the_group_is_always_pinned_to_a_number() {
    let mut world = World::at_rest(true);
    assert_eq!(pin(&world), Some(1));
    world.publish("ami-0b");
    world.run();
    assert_eq!(pin(&world), Some(1));
    for moved in ["$Latest", "$Default"] {
        let LaunchSource::Template { version, .. } = &mut world.scaling_group.as_mut().unwrap().launch_source else {
            panic!()
        };
        *version = VersionSelector::Moving(moved.to_owned());
        // The record is in the status; the group's own pin is put back.
        world.settle();
        assert_eq!(pin(&world), Some(1), "{moved}");
    }
    world.approve();
    world.run();
    assert_eq!(pin(&world), Some(2));
    assert_eq!(world.template.as_ref().unwrap().default_version, 2);
}

#[test]
fn a_pin_or_default_moved_by_hand_is_put_back() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.run();
    world.approve();
    world.run();
    let template = world.template.as_mut().unwrap();
    template.default_version = 1;
    world.settle();
    assert_eq!(world.template.as_ref().unwrap().default_version, 2);
    let LaunchSource::Template { version, .. } = &mut world.scaling_group.as_mut().unwrap().launch_source else {
        panic!()
    };
    *version = VersionSelector::Number(1);
    world.settle();
    assert_eq!(pin(&world), Some(2));
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
}

/// Puts AWS out of order: its answers on groups, on templates, or on both.
fn break_aws(world: &mut World, class: FailureClass, which: usize) {
    world.groups_outage = (which != 1).then(|| failure(class));
    world.templates_outage = (which != 0).then(|| failure(class));
}

#[test]
fn nothing_follows_from_an_unknown_answer() {
    let classes = [
        FailureClass::Throttled,
        FailureClass::Unavailable,
        FailureClass::Denied,
        FailureClass::Lagging,
        FailureClass::Unclassified,
    ];
    for (class, which) in classes
        .into_iter()
        .flat_map(|class| (0..3).map(move |which| (class, which)))
    {
        let what = format!("{class:?}, {which}");
        let mut new = World::new(false);
        break_aws(&mut new, class, which);
        new.run();
        assert_eq!(
            new.aws_actions,
            Vec::<String>::new(),
            "{what}: created on an unknown answer"
        );

        let mut world = World::at_rest(false);
        world.publish("ami-0b");
        break_aws(&mut world, class, which);
        world.run();
        assert_eq!(
            world.aws_actions,
            Vec::<String>::new(),
            "{what}: rotated on an unknown answer"
        );
        let shown = crate::plan::problem::failure_condition(class);
        assert!(world.condition(shown).is_some(), "{what}");
        let last_known = world.condition(ConditionType::NodesReady);
        assert_eq!(
            last_known.as_deref(),
            Some("True"),
            "{what}: the last known state stays"
        );

        // Half gone already, and the rest cannot be seen.
        if which == 0 {
            world.template = None;
        } else {
            world.scaling_group = None;
        }
        world.group.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
        world.run();
        assert_eq!(
            world.aws_actions,
            Vec::<String>::new(),
            "{what}: deleted on an unknown answer"
        );
        let finalizers = world.group.metadata.finalizers.as_ref().map(Vec::len);
        assert_eq!(finalizers, Some(1), "{what}: let go on an unknown answer");
    }
}

#[test]
fn an_unknown_part_of_the_ground_is_never_left_out() {
    type Break = fn(&mut crate::plan::LookUps);
    let unknown: [Break; 5] = [
        |look_ups| look_ups.cluster = Fact::Unknown(failure(FailureClass::Throttled)),
        |look_ups| look_ups.profile = Fact::Unknown(failure(FailureClass::Throttled)),
        |look_ups| look_ups.instance_type = Fact::Unknown(failure(FailureClass::Throttled)),
        |look_ups| {
            drop(
                look_ups
                    .subnets
                    .insert("subnet-b".to_owned(), Fact::Unknown(failure(FailureClass::Throttled))),
            );
        },
        |look_ups| drop(look_ups.security_groups.remove("nodes")),
    ];
    let missing: [Break; 6] = [
        |look_ups| look_ups.cluster = Fact::NotFound,
        |look_ups| look_ups.profile = Fact::NotFound,
        |look_ups| {
            look_ups.profile = Fact::Found(crate::plan::facts::InstanceProfile {
                role_arn: None,
                ..look_ups.profile.found().unwrap().clone()
            });
        },
        |look_ups| look_ups.instance_type = Fact::NotFound,
        |look_ups| drop(look_ups.subnets.insert("subnet-b".to_owned(), Fact::NotFound)),
        |look_ups| drop(look_ups.security_groups.insert("nodes".to_owned(), Fact::NotFound)),
    ];
    let both = unknown
        .iter()
        .map(|change| (change, true))
        .chain(missing.iter().map(|change| (change, false)));
    for (change, is_unknown) in both {
        for mut world in [World::new(false), World::at_rest(false)] {
            world.look_ups = look_ups();
            change(&mut world.look_ups);
            world.run();
            assert_eq!(world.aws_actions, Vec::<String>::new());
            let shown = if is_unknown {
                ConditionType::AwsUnavailable
            } else {
                ConditionType::TargetUnusable
            };
            assert_eq!(world.condition(shown).as_deref(), Some("True"), "{}", world.transcript);
            // A deletion needs none of it.
            world.group.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
            world.settle();
            assert_eq!(world.group.metadata.finalizers, Some(Vec::new()));
        }
    }
}

#[test]
fn a_type_that_a_zone_does_not_offer_is_named() {
    let mut world = World::at_rest(true);
    let Fact::Found(kind) = &mut world.look_ups.instance_type else {
        panic!()
    };
    kind.zones.remove("zone-c");
    world.run();
    assert_eq!(world.state(), "Ready", "what runs is not judged again");
    world.publish("ami-0b");
    world.run();
    let message = world.group.status.as_ref().unwrap().message.clone().unwrap();
    assert!(message.contains("m5.large is not offered in zone-c"), "{message}");
    assert!(world.requests.is_empty());
}

#[test]
fn sizes_tags_and_added_subnets_apply_under_lock() {
    let mut world = World::at_rest(true);
    world.scaling_group.as_mut().unwrap().tags.insert(
        "foreign".to_owned(),
        GroupTag {
            value: "x".to_owned(),
            propagate: false,
        },
    );
    world.group.spec.eks.as_mut().unwrap().max_size = Some(9);
    "red".clone_into(&mut configuration(&mut world).tags[0].value);
    world.run();
    let group = world.scaling_group.as_ref().unwrap();
    assert_eq!((group.min_size, group.max_size), (3, 9));
    assert_eq!(group.tags["team"].value, "red");
    configuration(&mut world).tags.clear();
    world.run();
    let tags: BTreeSet<&str> = world
        .scaling_group
        .as_ref()
        .unwrap()
        .tags
        .keys()
        .map(String::as_str)
        .collect();
    assert!(!tags.contains("team") && tags.contains("foreign"), "{tags:?}");
    configuration(&mut world).subnets.push("subnet-d".to_owned());
    let subnet = crate::plan::facts::Subnet {
        id: "subnet-d".to_owned(),
        zone: "zone-a".to_owned(),
    };
    world
        .look_ups
        .subnets
        .insert("subnet-d".to_owned(), Fact::Found(subnet));
    world.run();
    assert!(world.scaling_group.as_ref().unwrap().subnets.contains("subnet-d"));
    assert!(world.requests.is_empty());
    assert!(!world.transcript.contains("terminate"));
}

#[test]
fn a_removed_subnet_asks_and_then_its_nodes_go() {
    let mut world = World::at_rest(true);
    configuration(&mut world).subnets.pop();
    world.run();
    let target = world
        .request(crate::api::upgrade_request::Phase::Pending)
        .spec
        .target
        .clone();
    assert_eq!(target.removed_subnets, ["subnet-c"]);
    assert!(world.scaling_group.as_ref().unwrap().subnets.contains("subnet-c"));
    world.approve();
    world.settle();
    assert!(!world.scaling_group.as_ref().unwrap().subnets.contains("subnet-c"));
    assert!(world.transcript.contains("terminate"));
    assert!(
        !world.transcript.contains("create version"),
        "what a node boots did not change"
    );
}

#[test]
fn a_group_deleted_by_hand_comes_back_on_what_is_approved() {
    let mut world = super::pending();
    // A rollout that was cancelled leaves a newer version behind, which is not approved.
    world.approve();
    world.settle();
    world.decide(Phase::InProgress, |request| request.spec.cancelled = true);
    world.run();
    assert_eq!(world.template.as_ref().unwrap().versions.len(), 2);
    world.publish("ami-0c");
    world.run();
    let requests = world.requests.clone();
    world.request(Phase::Pending);
    world.scaling_group = None;
    world.nodes.clear();
    world.run();
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    assert_eq!(world.requests, requests, "also the same objects in the same phases");
}

#[test]
fn a_lost_template_is_rebuilt_and_nothing_rotates() {
    let mut world = super::pending();
    let (requests, before) = (world.requests.clone(), world.scaling_group.clone().unwrap());
    world.template = None;
    world.run();
    assert_eq!(world.state(), "Locked", "{}", world.transcript);
    let (template, group) = (world.template.as_ref().unwrap(), world.scaling_group.as_ref().unwrap());
    assert_eq!(
        template.versions[&1].image_id, "ami-0a",
        "what was approved, not what is wanted"
    );
    let pinned = matches!(&group.launch_source, LaunchSource::Template { id, version: VersionSelector::Number(1), .. } if *id == template.id);
    assert!(pinned, "{:?}", group.launch_source);
    assert_eq!(group.instances, before.instances);
    assert_eq!(world.requests, requests);
}

#[test]
fn a_lost_template_that_cannot_be_rendered_any_more_says_so() {
    let mut world = World::at_rest(true);
    world.template = None;
    configuration(&mut world).instance_type = Some("m5.xlarge".to_owned());
    world.run();
    assert_eq!(
        world.condition(ConditionType::ApprovedTemplateLost).as_deref(),
        Some("True")
    );
    assert_eq!(world.aws_actions, Vec::<String>::new());
    configuration(&mut world).instance_type = Some("m5.large".to_owned());
    world.run();
    assert_eq!(world.state(), "Ready", "{}", world.transcript);
}

#[test]
fn an_approved_version_deleted_by_hand_is_made_again() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.run();
    world.approve();
    world.run();
    world.publish("ami-0c");
    world.run();
    let instances = world.scaling_group.as_ref().unwrap().instances.clone();
    let template = world.template.as_mut().unwrap();
    template.versions.remove(&2);
    template.default_version = 1;
    world.run();
    assert_eq!(pin(&world), Some(2));
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert_eq!(world.scaling_group.as_ref().unwrap().instances, instances);
    assert!(world.transcript.contains("made again"), "{}", world.transcript);
    assert_eq!(world.template.as_ref().unwrap().default_version, 2);
}

#[test]
fn a_lost_status_is_rebuilt_from_aws() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.run();
    world.approve();
    world.run();
    world.group.status = None;
    world.aws_actions.clear();
    world.run();
    assert_eq!(world.state(), "Ready", "{}", world.transcript);
    assert_eq!(world.aws_actions, Vec::<String>::new());
    let status = world.group.status.as_ref().unwrap();
    assert_eq!(
        status.launch_template.as_ref().unwrap().approved_version.as_deref(),
        Some("2")
    );
    assert_eq!(status.image.as_ref().unwrap().current.as_deref(), Some("ami-0b"));
}

#[test]
fn a_crash_between_record_and_creation_converges() {
    let mut world = World::new(true);
    for _ in 0..4 {
        world.pass();
    }
    // The Auto Scaling group exists; the status never heard of its version.
    assert!(world.scaling_group.is_some());
    assert_eq!(
        world
            .group
            .status
            .as_ref()
            .unwrap()
            .launch_template
            .as_ref()
            .and_then(|record| record.approved_version.clone()),
        None
    );
    world.run();
    assert_eq!(world.state(), "Ready");
    assert_eq!(
        world
            .aws_actions
            .iter()
            .filter(|action| action.starts_with("create"))
            .count(),
        2
    );
}

#[test]
fn an_edit_before_the_first_write_creates_the_edited_group() {
    let mut world = World::new(true);
    world.pass();
    world.pass();
    configuration(&mut world).instance_type = Some("m5.xlarge".to_owned());
    world.run();
    assert_eq!(world.state(), "Ready", "{}", world.transcript);
    assert!(world.requests.is_empty());
}

#[test]
fn a_cluster_name_cannot_change_under_a_group() {
    let mut world = World::at_rest(false);
    configuration(&mut world).cluster_name = Some("other".to_owned());
    world.run();
    assert_eq!(world.aws_actions, Vec::<String>::new());
    assert_eq!(scaling_group_name(&world.group).as_deref(), Some("demo-team-workers"));
    assert!(template_name(&world.group).unwrap().starts_with("demo-team-workers-"));
    assert!(
        world
            .group
            .status
            .as_ref()
            .unwrap()
            .message
            .as_ref()
            .unwrap()
            .contains("clusterName")
    );
    // A deletion does not depend on the edit.
    world.group.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    world.settle();
    assert!(
        world.scaling_group.is_none() && world.template.is_none(),
        "{}",
        world.transcript
    );
}

#[test]
fn trouble_at_rest_is_shown_and_changes_nothing() {
    for class in [FailureClass::Throttled, FailureClass::Denied] {
        let mut world = World::at_rest(true);
        let shown = crate::plan::problem::failure_condition(class);
        world.troubles = vec![failure(class)];
        world.run();
        assert_eq!(world.condition(shown).as_deref(), Some("True"));
        let conditions = &world.group.status.as_ref().unwrap().conditions;
        let told = conditions
            .iter()
            .find(|condition| condition.type_ == shown.as_ref())
            .unwrap();
        for words in ["autoscaling:DescribeAutoScalingGroups", "no luck", "still holds"] {
            assert!(told.message.contains(words), "{}", told.message);
        }
        assert_eq!(world.state(), "Ready");
        world.troubles.clear();
        world.run();
        assert_eq!(world.condition(shown), None);
        assert_eq!(world.aws_actions, Vec::<String>::new());
    }
}
