//! Images and Kubernetes versions: unreachable, unusable, vanished, a minor step.

use jiff::SignedDuration;
use pretty_assertions::assert_eq;

use super::{aws, pending};
use crate::api::upgrade_request::{Phase, UpgradeReason};
use crate::api::{ConditionType, annotation};
use crate::plan::facts::{Fact, FailureClass};
use crate::plan::test_world::{PARAMETER, World, failure, image};

#[test]
fn an_unreachable_parameter_is_no_verdict() {
    for class in [
        FailureClass::Throttled,
        FailureClass::Unavailable,
        FailureClass::Denied,
        FailureClass::Unclassified,
    ] {
        let mut world = pending();
        world
            .parameters
            .insert(PARAMETER.to_owned(), Fact::Unknown(failure(class)));
        world.run();
        assert_eq!(world.phases(), [Phase::Pending], "{class:?}");
        let mut rested = World::at_rest(false);
        rested
            .parameters
            .insert(PARAMETER.to_owned(), Fact::Unknown(failure(class)));
        rested.run();
        assert_eq!(aws(&mut rested), Vec::<String>::new(), "{class:?}");
        assert!(rested.requests.is_empty());
    }
}

#[test]
fn an_approved_rollout_runs_while_parameters_are_unreachable() {
    let mut world = pending();
    world
        .parameters
        .insert(PARAMETER.to_owned(), Fact::Unknown(failure(FailureClass::Unavailable)));
    world.approve();
    world.run();
    assert_eq!(world.running_images(), ["ami-0b"; 3]);
    assert_eq!(world.phases(), [Phase::Succeeded]);
}

#[test]
fn unusable_images_open_no_request_and_say_why() {
    let now = World::new(true).now;
    let mut cases: Vec<(&str, World)> = Vec::new();
    let mut case = |reason, change: &dyn Fn(&mut World)| {
        let mut world = World::at_rest(true);
        world.publish("ami-0b");
        change(&mut world);
        cases.push((reason, world));
    };
    case("ImageNotFound", &|world| {
        drop(world.images.insert("ami-0b".to_owned(), Fact::NotFound));
    });
    case("ImageUnavailable", &|world| {
        let image = crate::plan::facts::Image {
            state: "pending".to_owned(),
            ..image("ami-0b")
        };
        world.images.insert("ami-0b".to_owned(), Fact::Found(image));
    });
    case("ImageArchitecture", &|world| {
        let image = crate::plan::facts::Image {
            architecture: "arm64".to_owned(),
            ..image("ami-0b")
        };
        world.images.insert("ami-0b".to_owned(), Fact::Found(image));
    });
    case("ImageDeprecated", &|world| {
        let image = crate::plan::facts::Image {
            deprecated_at: Some(now),
            ..image("ami-0b")
        };
        world.images.insert("ami-0b".to_owned(), Fact::Found(image));
    });
    case("ParameterNotFound", &|world| {
        drop(world.parameters.insert(PARAMETER.to_owned(), Fact::NotFound));
    });
    for value in ["", "latest", "ami-", "ami-xyz"] {
        case("ParameterUnusable", &move |world| {
            let Some(Fact::Found(parameter)) = world.parameters.get_mut(PARAMETER) else {
                panic!()
            };
            parameter.value = value.to_owned();
        });
    }
    for (reason, mut world) in cases {
        world.run();
        let plan = world.plan();
        assert!(
            matches!(plan.wake, crate::plan::step::Wake::At(_)),
            "looked at again: {plan}"
        );
        assert!(
            plan.waits.iter().any(|wait| wait.reason.to_string() == reason),
            "{plan}"
        );
        assert!(world.requests.is_empty(), "{reason}");
        assert_eq!(
            world.condition(ConditionType::ImageUnusable).as_deref(),
            Some("True"),
            "{reason}"
        );
        let conditions = &world.group.status.as_ref().unwrap().conditions;
        assert!(
            conditions.iter().any(|condition| condition.reason == reason
                && condition.message.starts_with("spec.eks.configuration.image: ")),
            "{reason}: {conditions:?}"
        );
        let message = world.group.status.as_ref().unwrap().message.clone().unwrap();
        assert!(
            message.starts_with("spec.eks.configuration.image: "),
            "{reason}: {message}"
        );
        assert_eq!(aws(&mut world), Vec::<String>::new(), "{reason}");
    }
}

#[test]
fn an_image_that_is_deprecated_tomorrow_is_usable_today() {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    let later = world.now + SignedDuration::from_secs(1);
    let soon = crate::plan::facts::Image {
        deprecated_at: Some(later),
        ..image("ami-0b")
    };
    world.images.insert("ami-0b".to_owned(), Fact::Found(soon));
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
}

#[test]
fn amazon_linux_2_above_1_32_is_named_and_never_changed_silently() {
    let mut world = World::at_rest(true);
    world
        .group
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(annotation::OS_FAMILY.to_owned(), "amazonlinux2".to_owned());
    let wanted = crate::plan::wanted::Wanted::parse(&world.group).unwrap();
    let (cluster, kind) = (
        world.look_ups.cluster.found().unwrap(),
        world.look_ups.instance_type.found().unwrap(),
    );
    let problem = crate::plan::image::image_source(&world.group, &wanted, cluster, kind).unwrap_err();
    assert_eq!(problem.condition(), ConditionType::ImageUnusable);
    assert!(problem.to_string().contains("os-family"), "{problem}");
}

#[test]
fn an_image_deregistered_after_the_approval_fails_the_claim() {
    let mut world = pending();
    world.approve();
    world.images.insert("ami-0b".to_owned(), Fact::NotFound);
    world.run();
    assert_eq!(world.phases(), [Phase::Failed]);
    assert_eq!(
        world
            .request(Phase::Failed)
            .status
            .as_ref()
            .unwrap()
            .failure
            .as_ref()
            .unwrap()
            .reason,
        "ImageUnavailable"
    );
    assert_eq!(aws(&mut world), Vec::<String>::new());
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
}

#[test]
fn an_image_that_vanishes_after_the_claim_ends_the_rollout() {
    for passes in 1..6 {
        let mut world = pending();
        world.approve();
        for _ in 0..passes {
            world.pass();
        }
        world.images.insert("ami-0b".to_owned(), Fact::NotFound);
        world.run();
        assert_eq!(
            world.phases(),
            [Phase::Failed],
            "after {passes} passes: {}",
            world.transcript
        );
        let images = world.running_images();
        assert!(
            images.iter().filter(|image| *image == "ami-0b").count() <= 1,
            "{images:?}"
        );
        world.scaling_group.as_mut().unwrap().instances.remove(0);
        world.fill();
        assert_eq!(world.running_images()[2], "ami-0a", "the pin is back");
        assert_eq!(world.condition(ConditionType::ImageUnusable).as_deref(), Some("True"));
        world.images.insert("ami-0b".to_owned(), Fact::Found(image("ami-0b")));
        world.run();
        assert_eq!(
            world.condition(ConditionType::UpgradeBlocked).as_deref(),
            Some("True"),
            "it does not start again"
        );
    }
    let mut world = World::at_rest(false);
    world.publish("ami-0b");
    world.pass();
    world.pass();
    world.images.insert("ami-0b".to_owned(), Fact::NotFound);
    world.run();
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    assert_eq!(
        world.group.status.as_ref().unwrap().blocked_targets.len(),
        1,
        "{}",
        world.transcript
    );
}

#[test]
fn a_control_plane_upgrade_asks_even_when_unlocked() {
    let mut world = World::at_rest(false);
    world.upgrade_cluster("1.34", "ami-0d");
    world.run();
    assert_eq!(
        world.request(Phase::Pending).spec.reason,
        UpgradeReason::KubernetesVersionDrift
    );
    assert_eq!(world.running_images(), ["ami-0a"; 3]);
    assert_eq!(aws(&mut world), Vec::<String>::new());
    // A newer image for the new minor joins.
    world.republish(&PARAMETER.replace("1.33", "1.34"), "ami-0e");
    world.run();
    assert_eq!(world.request(Phase::Pending).spec.reason, UpgradeReason::Multiple);
    world.approve();
    world.run();
    assert_eq!(world.running_images(), ["ami-0e"; 3]);
}

#[test]
fn a_pinned_version_does_not_follow_the_cluster() {
    let mut world = World::new(false);
    world.group.spec.eks.as_mut().unwrap().configuration.kubernetes_version = Some("1.33".to_owned());
    world.run();
    world.upgrade_cluster("1.34", "ami-0d");
    world.run();
    assert!(world.requests.is_empty());
    assert_eq!(world.state(), "Ready");
}

#[test]
fn an_approved_image_that_is_gone_fails_the_claim_even_while_parameters_are_unreachable() {
    let mut world = pending();
    world
        .parameters
        .insert(PARAMETER.to_owned(), Fact::Unknown(failure(FailureClass::Unavailable)));
    world.images.insert("ami-0b".to_owned(), Fact::NotFound);
    world.approve();
    world.run();
    assert_eq!(world.phases(), [Phase::Failed], "{}", world.transcript);
    assert!(
        !world.transcript.contains("InProgress"),
        "it was never claimed: {}",
        world.transcript
    );
    assert_eq!(aws(&mut world), Vec::<String>::new());
}
