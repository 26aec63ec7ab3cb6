//! Groups for the proofs of the testbed, made through AWS as the operator would. It must not prove anything.

use anyhow::{Result, ensure};
use aws_sdk_autoscaling::types::LaunchTemplateSpecification;
use aws_sdk_ec2::types::RequestLaunchTemplateData;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

use super::SOON;
use crate::testbed::{Aws, NodeOptions, NodeSimulator, Seed, Testbed};

/// A group on a testbed with workloads, whose nodes take pods; cluster and image have its name, too.
pub async fn group_of(testbed: &Testbed, name: &str, size: i32) -> Result<NodeSimulator> {
    let aws = testbed.aws();
    let seed = aws.seed(name, "1.33").await?;
    let image = aws.publish_image(name, "x86_64", "2026-11-01T00:00:00Z").await?;
    let nodes = testbed.start_nodes(NodeOptions {
        group_prefix: name.to_owned(),
        ..NodeOptions::default()
    })?;
    make_group(aws, &seed, name, &image, size).await?;
    open_nodes(testbed, name, size).await?;
    Ok(nodes)
}

/// Wait until a group has exactly so many nodes without a taint.
pub async fn open_nodes(testbed: &Testbed, group: &str, wanted: i32) -> Result<()> {
    let selected = ListParams::default().labels(&format!("sluice.test/group={group}"));
    let nodes: Api<Node> = Api::all(testbed.admin());
    testbed
        .until(SOON, &format!("{wanted} untainted nodes of {group}"), async || {
            let listed = nodes.list(&selected).await?;
            let open = listed.iter().filter(|node| {
                let spec = node.spec.as_ref();
                spec.is_none_or(|spec| spec.taints.as_ref().is_none_or(Vec::is_empty))
            });
            let open = i32::try_from(open.count())?;
            ensure!(open == wanted, "{open} of {} nodes are untainted", listed.items.len());
            Ok(Some(()))
        })
        .await
}

/// A launch template of this image and a group of so many instances.
pub async fn make_group(aws: &Aws, seed: &Seed, name: &str, image: &str, size: i32) -> Result<()> {
    let sdk = aws.sdk_config();
    let data = RequestLaunchTemplateData::builder()
        .image_id(image)
        .instance_type("m5.large".into())
        .build();
    let ec2 = aws_sdk_ec2::Client::new(&sdk);
    ec2.create_launch_template()
        .launch_template_name(name)
        .launch_template_data(data)
        .send()
        .await?;
    let template = LaunchTemplateSpecification::builder()
        .launch_template_name(name)
        .version("1")
        .build();
    aws_sdk_autoscaling::Client::new(&sdk)
        .create_auto_scaling_group()
        .auto_scaling_group_name(name)
        .launch_template(template)
        .min_size(0)
        .max_size(5)
        .desired_capacity(size)
        .vpc_zone_identifier(seed.subnet_ids.join(","))
        .send()
        .await?;
    Ok(())
}
