//! What the plan keeps its hands off: foreign groups, and input that is not built (promise P15).

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;

use crate::api::ConditionType;
use crate::api::instance_group::InstanceGroup;
use crate::plan::facts::workload::{Pod, PodKind};
use crate::plan::rollout::tests::toy::pod;
use crate::plan::settings::InForce;
use crate::plan::support::unsupported_fields;
use crate::plan::test_world::World;

fn configuration(world: &mut World) -> &mut crate::api::instance_group::EksConfiguration {
    &mut world.group.spec.eks.as_mut().unwrap().configuration
}

#[test]
fn a_foreign_or_unknown_group_is_left_alone() {
    let mut world = World::at_rest(false);
    world.scaling_group.as_mut().unwrap().tags.clear();
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.aws_actions, Vec::<String>::new());
    assert_eq!(world.condition(ConditionType::Unsupported).as_deref(), Some("True"));
    world.group.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    world.settle();
    assert!(world.scaling_group.is_some(), "a deletion does not take it along");

    let mut peers = World::at_rest(false);
    peers.group.status = None;
    peers
        .template
        .as_mut()
        .unwrap()
        .versions
        .get_mut(&1)
        .unwrap()
        .description = String::new();
    peers.run();
    assert_eq!(
        peers.aws_actions,
        Vec::<String>::new(),
        "a running group of the peer is not touched"
    );
    assert_eq!(peers.condition(ConditionType::Unsupported).as_deref(), Some("True"));
}

#[test]
fn unsupported_input_keeps_our_hands_off_except_for_deletion() {
    let mut world = World::at_rest(false);
    world.publish("ami-0b");
    configuration(&mut world).spot_price = Some("0.1".to_owned());
    world.group.spec.eks.as_mut().unwrap().min_size = Some(5);
    world.run();
    assert_eq!(world.aws_actions, Vec::<String>::new());
    let message = world.group.status.as_ref().unwrap().message.clone().unwrap();
    assert!(message.contains("spec.eks.configuration.spotPrice"), "{message}");
    configuration(&mut world).spot_price = None;
    for key in ["boundaries", "defaults", "conditionals", "awsAuth", "anything"] {
        let data = BTreeMap::from([(key.to_owned(), String::new())]);
        world.settings = InForce::default().next(Some(&data));
        world.run();
        assert_eq!(world.aws_actions, Vec::<String>::new(), "{key}");
        let message = world.group.status.as_ref().unwrap().message.clone().unwrap();
        assert!(message.contains(&format!("data.{key}")), "{message}");
    }
    world.group.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    world.settle();
    assert!(world.scaling_group.is_none() && world.template.is_none());
}

/// Promise P5: nobody goes on with the drain of a node, so nobody would ever give it up either.
#[test]
fn a_group_that_is_not_understood_any_more_lets_go_of_its_nodes_in_hand() {
    type Edit = fn(&mut World);
    let edits: [Edit; 4] = [
        |world| configuration(world).spot_price = Some("0.1".to_owned()),
        |world| {
            let data = BTreeMap::from([("boundaries".to_owned(), String::new())]);
            world.settings = InForce::default().next(Some(&data));
        },
        |world| configuration(world).image = None,
        |world| configuration(world).cluster_name = Some("other".to_owned()),
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut world = World::at_rest(false);
        let by_person = world.nodes.keys().next_back().unwrap().clone();
        world.nodes.get_mut(&by_person).unwrap().cordoned = true;
        let first = world.nodes.keys().next().unwrap().clone();
        let before = world.group.clone();
        world.pods.insert(first.clone(), vec![ending(&world)]);
        world.publish("ami-0b");
        world.settle();
        assert!(world.nodes[&first].cordoned, "{number}: {}", world.transcript);
        world.aws_actions.clear();
        edit(&mut world);
        world.settle();
        assert!(world.nodes[&first].record.is_none(), "{number}: {}", world.transcript);
        let cordoned: Vec<&String> = world
            .nodes
            .iter()
            .filter(|(_, node)| node.cordoned)
            .map(|(id, _)| id)
            .collect();
        assert_eq!((cordoned, world.aws_actions.len()), (vec![&by_person], 0), "{number}");
        // Understood again, it goes on.
        world.group.spec = before.spec;
        world.settings = InForce::default();
        world.pods.clear();
        world.run();
        assert_eq!(world.running_images(), ["ami-0b"; 3], "{number}: {}", world.transcript);
    }
    // Nodes of another group's Auto Scaling group are not ours to let go of.
    let mut world = World::at_rest(false);
    let first = world.nodes.keys().next().unwrap().clone();
    world.pods.insert(first.clone(), vec![ending(&world)]);
    world.publish("ami-0b");
    world.settle();
    world.scaling_group.as_mut().unwrap().tags.clear();
    configuration(&mut world).image = None;
    world.settle();
    assert!(world.nodes[&first].cordoned, "{}", world.transcript);
}

/// A pod that is on its way out.
fn ending(world: &World) -> Pod {
    Pod {
        ends_at: Some(world.now),
        ..pod("web-1", PodKind::Owned)
    }
}

#[test]
fn each_unsupported_field_is_named() {
    let supported = World::new(true).group;
    assert_eq!(unsupported_fields(&supported), Vec::<String>::new());
    let cases: &[(&str, &str, &str)] = &[
        (
            "/metadata/annotations/instancemgr.keikoproj.io~1os-family",
            r#""bottlerocket""#,
            "os-family",
        ),
        (
            "/metadata/annotations/instancemgr.keikoproj.io~1default-labels",
            r#""a=b""#,
            "default-labels",
        ),
        (
            "/metadata/annotations/instancemgr.keikoproj.io~1cluster-autoscaler-enabled",
            r#""true""#,
            "cluster-autoscaler-enabled",
        ),
        (
            "/metadata/annotations/instancemgr.keikoproj.io~1custom-networking-enabled",
            r#""true""#,
            "custom-networking-enabled",
        ),
        ("/spec/provisioner", r#""eks-managed""#, "spec.provisioner"),
        (
            "/spec/eks-fargate",
            r#"{"clusterName":"c","selectors":[]}"#,
            "spec.eks-fargate",
        ),
        (
            "/spec/eks-managed",
            r#"{"maxSize":1,"minSize":1,"configuration":{}}"#,
            "spec.eks-managed",
        ),
        ("/spec/strategy", r#"{"type":"crd"}"#, "spec.strategy.type"),
        ("/spec/strategy", r#"{"crd":{}}"#, "spec.strategy.crd"),
        ("/spec/eks/warmPool", r#"{"maxSize":1}"#, "spec.eks.warmPool"),
        ("/spec/eks/type", r#""LaunchConfiguration""#, "spec.eks.type"),
        ("/spec/eks/configuration/roleName", r#""""#, "roleName"),
        (
            "/spec/eks/configuration/instanceProfileName",
            r#""""#,
            "instanceProfileName",
        ),
        ("/spec/eks/configuration/managedPolicies", r#"["a"]"#, "managedPolicies"),
        (
            "/spec/eks/configuration/suspendProcesses",
            r#"["Launch"]"#,
            "suspendProcesses",
        ),
        (
            "/spec/eks/configuration/bootstrapArguments",
            r#""--x""#,
            "bootstrapArguments",
        ),
        (
            "/spec/eks/configuration/bootstrapOptions",
            r#"{"containerRuntime":"containerd"}"#,
            "containerRuntime",
        ),
        (
            "/spec/eks/configuration/metricsCollection",
            r#"["all"]"#,
            "metricsCollection",
        ),
        (
            "/spec/eks/configuration/lifecycleHooks",
            r#"[{"name":"a","lifecycle":"launch"}]"#,
            "lifecycleHooks",
        ),
        (
            "/spec/eks/configuration/mixedInstancesPolicy",
            r#"{"instancePool":"SubFamilyFlexible"}"#,
            "mixedInstancesPolicy",
        ),
        (
            "/spec/eks/configuration/volumes",
            r#"[{"name":"/dev/xvda","type":"gp3","size":1,"mountOptions":{}}]"#,
            "mountOptions",
        ),
    ];
    for (pointer, value, named) in cases {
        let mut json = serde_json::to_value(&supported).unwrap();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        json.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = serde_json::from_str(value).unwrap();
        let group: InstanceGroup = serde_json::from_value(json).unwrap();
        let paths = unsupported_fields(&group);
        assert!(
            paths.iter().any(|path| path.contains(named)),
            "{pointer} {value}: {paths:?}"
        );
    }
    let mut absent = supported;
    absent.metadata.annotations = None;
    assert!(unsupported_fields(&absent)[0].contains("os-family"));
}
