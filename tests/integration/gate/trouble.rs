//! Bad input and an AWS in trouble: told on the object, nothing half-made is rotated, deletion works.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sluice::api::upgrade_request::Phase;

use super::ground::{Ground, SOON};
use crate::running::{Running, shared_operator};
use crate::testbed::{Fault, Testbed};

/// P13: each thing that is missing is told with the field's path.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_told_with_its_path() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "missing").await?;
    ground.publish("a").await?;
    let cases: [(&str, &str, Value, &str); 7] = [
        (
            "subnet",
            "subnets",
            json!(["subnet-0123456789abcdef0"]),
            "TargetUnusable",
        ),
        ("subnetname", "subnets", json!(["nowhere"]), "TargetUnusable"),
        ("securitygroup", "securityGroups", json!(["nobody"]), "TargetUnusable"),
        ("type", "instanceType", json!("m99.huge"), "TargetUnusable"),
        ("profile", "instanceProfileName", json!("nobody"), "TargetUnusable"),
        ("image", "image", json!("ami-0123456789abcdef0"), "ImageUnusable"),
        ("parameter", "image", json!("ssm:///images/none"), "ImageUnusable"),
    ];
    let before = ground.testbed.aws().last_sequence().await?;
    for (name, field, value, _) in &cases {
        let mut manifest = ground.manifest(name, true);
        manifest["spec"]["eks"]["configuration"][field] = value.clone();
        ground.create(manifest).await?;
    }
    for (name, field, _, kind) in &cases {
        let message = ground
            .until_condition(name, kind)
            .await
            .with_context(|| (*name).to_owned())?;
        ensure!(
            message.contains(&format!("spec.eks.configuration.{field}")),
            "{name}: {message}"
        );
    }
    ensure!(ground.writes(before).await?.is_empty(), "something was made");
    for (name, ..) in &cases {
        ground.delete(name).await.with_context(|| (*name).to_owned())?;
    }
    Ok(())
}

/// P13: when no instance comes, AWS's own words are on the object.
#[tokio::test(flavor = "multi_thread")]
async fn no_instance_comes_and_aws_says_why() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "nobody").await?;
    let image = ground.at_rest("workers", true).await?;
    ground.testbed.aws().deregister(&image).await?;
    ground
        .patch("workers", json!({ "spec": { "eks": { "minSize": 3 } } }))
        .await?;
    let group = ground
        .until_group("workers", "the words of Auto Scaling", |group| {
            group
                .status
                .as_ref()
                .and_then(|status| status.message.as_ref())
                .is_some_and(|message| message.contains(&image))
        })
        .await?;
    let message = group.status.and_then(|status| status.message).context("a message")?;
    ensure!(message.contains("Auto Scaling says"), "{message}");
    ground.delete("workers").await
}

/// D18: a name that we may not read fails alone.
#[tokio::test(flavor = "multi_thread")]
async fn one_forbidden_parameter_leaves_the_others_alone() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "forbidden").await?;
    ground.at_rest("workers", true).await?;
    let fault = Fault::on("ssm", "GetParameters")
        .error("AccessDeniedException", 400)
        .matching("*", "/images/secret");
    let fault = ground.testbed.aws().inject_fault(fault).await?;
    let mut manifest = ground.manifest("secret", true);
    manifest["spec"]["eks"]["configuration"]["image"] = json!("ssm:///images/secret");
    ground.create(manifest).await?;
    let message = ground.until_condition("secret", "AccessDenied").await?;
    ensure!(message.contains("ssm:GetParameter"), "{message}");
    ground.publish("b").await?;
    ground.until_request(Phase::Pending).await?;
    ground.delete("secret").await?;
    ground.testbed.aws().remove_fault(&fault).await?;
    ground.delete("workers").await
}

/// P6: throttled, broken, silent or refusing, AWS is never read as "absent" or "changed".
#[tokio::test(flavor = "multi_thread")]
async fn aws_trouble_is_told_and_changes_nothing() -> Result<()> {
    let testbed = Testbed::start("trouble").await?;
    let running = Running::start(&testbed).await?;
    let ground = Ground::new(&testbed, "trouble").await?;
    ground.at_rest("workers", false).await?;
    let aws = testbed.aws();
    let troubles = [
        (
            Fault::on_everything().error("Throttling", 400).message("Rate exceeded"),
            "AWSUnavailable",
        ),
        (Fault::on_everything().error("InternalFailure", 500), "AWSUnavailable"),
        (
            Fault::on_service("autoscaling")
                .error("AccessDenied", 403)
                .message("User is not authorized to perform: autoscaling:Describe"),
            "AccessDenied",
        ),
        (
            Fault::on_service("ec2").error("UnauthorizedOperation", 403),
            "AccessDenied",
        ),
    ];
    for (index, (fault, kind)) in troubles.into_iter().enumerate() {
        let before = aws.last_sequence().await?;
        aws.inject_fault(fault).await?;
        // Each round a new group that cannot be made, beside the one that rests.
        let name = format!("new{index}");
        ground.create(ground.manifest(&name, true)).await?;
        let message = ground
            .until_condition(&name, kind)
            .await
            .with_context(|| format!("round {index}"))?;
        ensure!(message.contains(':'), "{message}");
        // So does the one that rests, although nothing of it is wanted.
        ground
            .until_condition("workers", kind)
            .await
            .with_context(|| format!("round {index}: at rest"))?;
        let told = aws.calls(before).await?;
        let wrote: Vec<&str> = told
            .iter()
            // A refused attempt is no change.
            .filter(|call| call.mutating && call.error_code.is_none())
            .map(|call| call.action.as_str())
            .collect();
        ensure!(wrote.is_empty(), "round {index}: {wrote:?}");
        ensure!(told.len() < 400, "a hot loop: {} calls", told.len());
        aws.clear_faults().await?;
        ground
            .until_state(&name, "Ready")
            .await
            .with_context(|| format!("round {index}: recovery"))?;
        let rested = ground.groups.get("workers").await?;
        ensure!(
            rested.status.is_some_and(|status| status.history.len() == 1),
            "the resting group was touched"
        );
    }
    // A write that is refused says which right is missing.
    aws.inject_fault(Fault::on("autoscaling", "CreateAutoScalingGroup").error("AccessDenied", 403))
        .await?;
    ground.create(ground.manifest("denied", true)).await?;
    let message = ground.until_condition("denied", "AccessDenied").await?;
    ensure!(message.contains("autoscaling:CreateAutoScalingGroup"), "{message}");
    aws.clear_faults().await?;
    ground.until_state("denied", "Ready").await?;
    // The effect came, the answer did not: no second group.
    aws.inject_fault(
        Fault::on("autoscaling", "CreateAutoScalingGroup")
            .error("InternalFailure", 500)
            .after_effect()
            .times(1),
    )
    .await?;
    ground.create(ground.manifest("lost", true)).await?;
    ground.until_state("lost", "Ready").await?;
    testbed
        .until(SOON, "the operator lives", async || running.operator.alive().map(Some))
        .await?;
    drop(running.nodes);
    testbed.stop().await
}
