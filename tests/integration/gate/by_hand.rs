//! Somebody changes or deletes at AWS what is ours (cases D20, D23, D24).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use serde_json::json;
use sluice::api::upgrade_request::Phase;

use super::ground::{Ground, SOON};
use crate::running::shared_operator;

/// D23, D24: the group on what is approved, the template with the same content, no rotation.
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_deletes_at_aws_comes_back_as_approved() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "byhand").await?;
    let old = ground.at_rest("workers", true).await?;
    ground.publish("b").await?;
    let request = ground.until_request(Phase::Pending).await?;
    let config = ground.testbed.aws().sdk_config();
    let autoscaling = aws_sdk_autoscaling::Client::new(&config);
    let name = "demo-byhand-workers";
    let kept: Vec<String> = ground
        .instances("workers")
        .await?
        .into_iter()
        .map(|instance| instance.instance_id)
        .collect();

    let ec2 = aws_sdk_ec2::Client::new(&config);
    let template = ground
        .groups
        .get("workers")
        .await?
        .status
        .and_then(|status| status.launch_template?.id)
        .context("a template")?;
    ec2.delete_launch_template()
        .launch_template_id(&template)
        .send()
        .await?;
    // For a minute after our own create "not there" may be AWS's reads lagging; only then it is believed.
    let group = ground
        .testbed
        .until(Duration::from_mins(2), "a template made anew", async || {
            let group = ground.groups.get("workers").await?;
            let id = group
                .status
                .as_ref()
                .and_then(|status| status.launch_template.as_ref()?.id.clone());
            Ok(id.is_some_and(|id| id != template).then_some(group))
        })
        .await?;
    let id = group
        .status
        .and_then(|status| status.launch_template?.id)
        .context("a template")?;
    ground
        .testbed
        .until(SOON, "the pin on the new template", async || {
            let groups = autoscaling
                .describe_auto_scaling_groups()
                .auto_scaling_group_names(name)
                .send()
                .await?;
            let group = groups.auto_scaling_groups().first().context("the group")?.clone();
            Ok(group
                .launch_template()
                .filter(|source| source.launch_template_id() == Some(&id) && source.version() == Some("1"))
                .map(drop))
        })
        .await?;
    let now: Vec<String> = ground
        .instances("workers")
        .await?
        .into_iter()
        .map(|instance| instance.instance_id)
        .collect();
    ensure!(now == kept, "instances were rotated: {kept:?} to {now:?}");

    autoscaling
        .delete_auto_scaling_group()
        .auto_scaling_group_name(name)
        .force_delete(true)
        .send()
        .await?;
    ground
        .testbed
        .until(SOON, "new instances", async || {
            let instances = ground.instances("workers").await?;
            Ok(
                (instances.len() == 2 && instances.iter().all(|instance| !kept.contains(&instance.instance_id)))
                    .then_some(()),
            )
        })
        .await?;
    ground.until_images("workers", &old, 2).await?;
    let same = ground.until_request(Phase::Pending).await?;
    ensure!(same.uid() == request.uid(), "the open request was touched");
    ground.delete("workers").await
}

/// D20: the approved image is gone before the claim.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_gone_after_the_approval_touches_no_node() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "gone").await?;
    let old = ground.at_rest("workers", true).await?;
    let new = ground.publish("b").await?;
    let request = ground.until_request(Phase::Pending).await?;
    let before = ground.testbed.aws().last_sequence().await?;
    ground.testbed.aws().deregister(&new).await?;
    // The operator may know of it already (then the request is superseded), or learn it at the claim.
    ground
        .testbed
        .until(SOON, "the image to be missed", async || {
            let now = ground.requests.get(&request.name_any()).await?;
            if !now.spec.approved && !now.is_terminal() {
                ground
                    .patch_request(&request.name_any(), json!({ "spec": { "approved": true } }))
                    .await?;
            }
            ensure!(
                matches!(now.phase(), Phase::Failed | Phase::Superseded),
                "{:?}",
                now.status
            );
            Ok(Some(()))
        })
        .await?;
    ensure!(ground.writes(before).await?.is_empty());
    ground.until_images("workers", &old, 2).await?;
    ground.delete("workers").await
}

/// A pin that somebody moved is put back.
#[tokio::test(flavor = "multi_thread")]
async fn a_pin_moved_to_latest_is_put_back() -> Result<()> {
    let ground = Ground::new(shared_operator().await?, "pin").await?;
    ground.at_rest("workers", true).await?;
    let config = ground.testbed.aws().sdk_config();
    let autoscaling = aws_sdk_autoscaling::Client::new(&config);
    let name = "demo-pin-workers";
    let template = ground
        .groups
        .get("workers")
        .await?
        .status
        .and_then(|status| status.launch_template?.id)
        .context("a template")?;
    let latest = aws_sdk_autoscaling::types::LaunchTemplateSpecification::builder()
        .launch_template_id(&template)
        .version("$Latest")
        .build();
    autoscaling
        .update_auto_scaling_group()
        .auto_scaling_group_name(name)
        .launch_template(latest)
        .send()
        .await?;
    ground
        .testbed
        .until(SOON, "a numeric pin", async || {
            let groups = autoscaling
                .describe_auto_scaling_groups()
                .auto_scaling_group_names(name)
                .send()
                .await?;
            let group = groups.auto_scaling_groups().first().context("the group")?.clone();
            Ok(group
                .launch_template()
                .filter(|source| source.version() == Some("1"))
                .map(drop))
        })
        .await?;
    ground.delete("workers").await
}
