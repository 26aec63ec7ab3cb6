//! A group that fails again and again beside one that is well (case C42).

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice::api::upgrade_request::Phase;

use super::scene::{GROUP, Scene};
use crate::testbed::Fault;

/// Tries of the failing call while the other group rolls out: each pause is longer than the one before.
const FEW: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_group_is_tried_less_and_less_and_holds_up_no_other() -> Result<()> {
    let failing = Scene::locked("failing", 1, json!({})).await?;
    let healthy = Scene::locked("healthy", 2, json!({})).await?;
    let aws = failing.testbed.aws();
    let status = failing.groups.get(GROUP).await?.status.context("a status")?;
    let template = status.launch_template.and_then(|template| template.id);
    let template = template.context("a template")?;
    let fault = Fault::on("ec2", "CreateLaunchTemplateVersion")
        .error("InternalError", 500)
        .matching("*", &template);
    let fault = aws.inject_fault(fault).await?;
    let before = aws.last_sequence().await?;
    let stopped = failing.approve_new("b").await?;
    let new = healthy.approve_new("b").await?;
    healthy.until_phase(Phase::Succeeded).await?;
    healthy.until_clean(&new, 2).await?;
    let calls = aws.calls(before).await?;
    let tries = calls
        .iter()
        .filter(|call| call.action == "CreateLaunchTemplateVersion")
        .filter(|call| call.parameters.values().any(|value| *value == template))
        .count();
    ensure!((1..=FEW).contains(&tries), "{tries} tries");
    failing.until_phase(Phase::InProgress).await?;
    aws.remove_fault(&fault).await?;
    failing.until_phase(Phase::Succeeded).await?;
    failing.until_clean(&stopped, 1).await
}
