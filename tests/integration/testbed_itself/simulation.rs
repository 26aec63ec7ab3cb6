//! Proves the simulated AWS's handle and the simulated kubelets. What the simulation answers is proved beside it.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::groups::make_group;
use super::{SOON, gone};
use crate::testbed::{Fault, NodeOptions, NodeSimulator, Testbed, shared};

const IMAGE_LABEL: &str = "instancemgr.keikoproj.io/image";

#[tokio::test(flavor = "multi_thread")]
async fn aws_is_seeded_counted_and_made_to_fail() -> Result<()> {
    let aws = shared().await?.aws();
    let seed = aws.seed("seeded", "1.33").await?;
    assert_eq!((seed.subnet_ids.len(), seed.region.as_str()), (3, "us-west-2"));
    let image = aws
        .publish_image("node-image-1", "arm64", "2026-11-01T00:00:00Z")
        .await?;
    aws.set_parameter("/aws/service/testbed/image", &image, "2026-11-02T00:00:00Z")
        .await?;

    let before = aws.last_sequence().await?;
    let sdk = aws.sdk_config();
    let eks = aws_sdk_eks::Client::new(&sdk);
    let version = async || -> Result<_> {
        Ok(eks
            .describe_cluster()
            .name("seeded")
            .send()
            .await?
            .cluster
            .context("none")?
            .version)
    };
    assert_eq!(version().await?.as_deref(), Some("1.33"));
    aws.set_cluster_version("seeded", "1.34").await?;
    assert_eq!(version().await?.as_deref(), Some("1.34"));
    let parameter = aws_sdk_ssm::Client::new(&sdk)
        .get_parameter()
        .name("/aws/service/testbed/image")
        .send()
        .await?;
    assert_eq!(parameter.parameter.and_then(|found| found.value), Some(image.clone()));
    assert_eq!(aws.counts(before).await?["eks"]["DescribeCluster"], 2);

    let fault = Fault::on("ec2", "DescribeImages")
        .error("RequestLimitExceeded", 503)
        .matching("ImageId.1", &image)
        .times(9);
    let fault = aws.inject_fault(fault).await?;
    let describe = || {
        aws_sdk_ec2::Client::new(&sdk)
            .describe_images()
            .image_ids(&image)
            .send()
    };
    assert!(describe().await.is_err());
    aws.remove_fault(&fault).await?;
    aws.deprecate(&image, "2027-01-01T00:00:00Z").await?;
    let described = describe().await?;
    assert!(
        described.images()[0]
            .deprecation_time()
            .is_some_and(|time| time.starts_with("2027-01-01"))
    );
    let calls = aws.calls(before).await?;
    let call = calls
        .iter()
        .find(|call| call.error_code.is_some())
        .context("no call failed")?;
    assert_eq!(
        (call.action.as_str(), call.status, call.mutating),
        ("DescribeImages", Some(503), false)
    );
    assert!(call.sequence > before);
    aws.deregister(&image).await?;
    assert!(
        aws.deregister(&image).await.is_err(),
        "a refusal of the administration is an error"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_ready_and_go_with_their_instances() -> Result<()> {
    let testbed = shared().await?;
    let aws = testbed.aws();
    let seed = aws.seed("nodes", "1.33").await?;
    let good = aws.publish_image("good", "x86_64", "2026-11-01T00:00:00Z").await?;
    let bad = aws.publish_image("bad", "x86_64", "2026-11-02T00:00:00Z").await?;
    let options = NodeOptions {
        group_prefix: "simulated-".into(),
        renew_leases: true,
        ..NodeOptions::default()
    };
    let simulator = NodeSimulator::start(testbed.admin(), aws, options)?;
    simulator.never_ready(&bad);
    make_group(aws, &seed, "simulated-good", &good, 2).await?;
    make_group(aws, &seed, "simulated-bad", &bad, 1).await?;
    make_group(aws, &seed, "somebody-elses", &good, 1).await?;

    let nodes: Api<Node> = Api::all(testbed.admin());
    ready_nodes(testbed, &nodes, &good, 2).await?;
    ready_nodes(testbed, &nodes, &bad, 0).await?;
    let instances = aws.instances().await?;
    let instance = instances
        .iter()
        .find(|it| it.group_name == "simulated-good")
        .context("no instance")?;
    let node = nodes.get(&instance.private_dns_name).await?;
    let spec = node.spec.clone().unwrap_or_default();
    assert_eq!(
        spec.provider_id,
        Some(format!("aws:///{}/{}", instance.zone, instance.instance_id))
    );
    assert_eq!(
        spec.taints, None,
        "a ready node has lost the taint that it registered with"
    );
    assert_eq!(node.labels()["topology.kubernetes.io/zone"], instance.zone);
    assert_eq!(
        node.labels()["node.kubernetes.io/instance-type"],
        instance.instance_type
    );
    let lease = ["get", "lease", "-n", "kube-node-lease", &instance.private_dns_name];
    testbed
        .until(SOON, "the node's lease", async || {
            testbed.kubectl(&lease).await?.success().map(Some)
        })
        .await?;

    simulator.set_ready(&instance.instance_id, false);
    ready_nodes(testbed, &nodes, &good, 1).await?;
    simulator.heal(&bad);
    ready_nodes(testbed, &nodes, &bad, 1).await?;
    let autoscaling = aws_sdk_autoscaling::Client::new(&aws.sdk_config());
    autoscaling
        .delete_auto_scaling_group()
        .auto_scaling_group_name("simulated-good")
        .force_delete(true)
        .send()
        .await?;
    gone(testbed, &nodes, &instance.private_dns_name).await?;
    testbed
        .until(SOON, "only the other group's node to be left", async || {
            let left = nodes
                .list(&ListParams::default().labels(&format!("{IMAGE_LABEL} in ({good}, {bad})")))
                .await?;
            ensure!(left.items.len() == 1, "{} nodes", left.items.len());
            Ok(Some(()))
        })
        .await?;
    assert_eq!(simulator.problem(), None);
    Ok(())
}

async fn ready_nodes(testbed: &Testbed, nodes: &Api<Node>, image: &str, wanted: usize) -> Result<()> {
    let selected = ListParams::default().labels(&format!("{IMAGE_LABEL}={image}"));
    testbed
        .until(SOON, &format!("{wanted} ready nodes of {image}"), async || {
            let listed = nodes.list(&selected).await?;
            let ready = listed.iter().filter(|node| is_ready(node)).count();
            ensure!(
                ready == wanted && !listed.items.is_empty(),
                "{ready} of {} are ready",
                listed.items.len()
            );
            Ok(Some(()))
        })
        .await
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
