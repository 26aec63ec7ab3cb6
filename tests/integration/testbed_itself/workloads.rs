//! Proves that pods live on the simulated nodes: scheduled, Ready in time, evicted under a budget, moved when nodes go.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams};
use kube::{Api, ResourceExt};

use super::groups::group_of;
use super::{SOON, gone};
use crate::testbed::{Availability, Testbed, Workload, shared_with_workloads};

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_and_are_evicted_as_their_budget_allows() -> Result<()> {
    let testbed = shared_with_workloads().await?;
    let _nodes = group_of(testbed, "evicted", 2).await?;
    let web = Workload::new("evicted", "web").replicas(2).max_unavailable(1);
    let web = web.on_group("evicted").one_a_node().ready_after(Duration::from_secs(1));
    let pods = web.create(testbed).await?;
    let mut homes: Vec<_> = pods.iter().filter_map(home).collect();
    homes.sort();
    homes.dedup();
    assert_eq!(homes.len(), 2, "one a node: {homes:?}");
    budget_allows(testbed, &web, 1).await?;

    let record = Availability::start(testbed, &web).await?;
    let before = testbed.audit_position()?;
    let api: Api<Pod> = Api::namespaced(testbed.admin(), web.namespace());
    api.evict(&pods[0].name_any(), &EvictParams::default()).await?;
    // Without retries: this client of kube's asks again on 429, for minutes.
    let eviction = format!("/api/v1/namespaces/evicted/pods/{}/eviction", pods[1].name_any());
    let body = format!(
        r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}","namespace":"evicted"}}}}"#,
        pods[1].name_any()
    );
    let arguments = ["create", "--raw", &eviction, "-f", "-"];
    let complaint = testbed.kubectl_stdin(&arguments, &body).await?.failure()?;
    assert!(complaint.contains("disruption budget"), "{complaint}");
    web.ready(testbed).await?;
    assert_eq!(record.lowest()?, 1);
    assert_eq!(record.counts()?, [2, 1, 2]);

    let answers = testbed.until(SOON, "both evictions in the audit log", async || {
        let answers = testbed.evictions(before)?;
        let ours: Vec<_> = answers.into_iter().filter(|it| it.namespace == "evicted").collect();
        ensure!(ours.len() >= 2, "{ours:?}");
        Ok(Some(ours))
    });
    let answers = answers.await?;
    assert_eq!((answers[0].code, answers[0].pod.clone()), (201, pods[0].name_any()));
    assert_eq!((answers[1].code, answers[1].pod.clone()), (429, pods[1].name_any()));
    assert_eq!(answers[1].causes, ["DisruptionBudget"]);
    assert_eq!(answers[1].user, "admin");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_move_when_their_node_goes_and_stay_where_its_kubelet_is_dead() -> Result<()> {
    let testbed = shared_with_workloads().await?;
    let nodes = group_of(testbed, "moved", 2).await?;
    let web = Workload::new("moved", "web").on_group("moved");
    let pod = web.create(testbed).await?.remove(0);
    let home = home(&pod).context("a pod without a node")?;
    let instance = instance_of(testbed, &home).await?;
    let autoscaling = aws_sdk_autoscaling::Client::new(&testbed.aws().sdk_config());
    autoscaling
        .terminate_instance_in_auto_scaling_group()
        .instance_id(&instance)
        .should_decrement_desired_capacity(true)
        .send()
        .await?;
    gone(testbed, &Api::<Node>::all(testbed.admin()), &home).await?;
    let pods: Api<Pod> = Api::namespaced(testbed.admin(), "moved");
    gone(testbed, &pods, &pod.name_any()).await?;
    let moved = web.ready(testbed).await?.remove(0);
    assert_ne!(moved.uid(), pod.uid());

    let home = self::home(&moved).context("a pod without a node")?;
    nodes.silence(&instance_of(testbed, &home).await?);
    let all: Api<Node> = Api::all(testbed.admin());
    testbed
        .until(SOON, "the dead kubelet's label to go", async || {
            let node = all.get(&home).await?;
            Ok((!node.labels().contains_key("sluice.test/kubelet")).then_some(()))
        })
        .await?;
    pods.delete(&moved.name_any(), &DeleteParams::default().grace_period(1))
        .await?;
    testbed
        .until(SOON, "the next pod to wait for a node that lives", async || {
            let next = web.pods(testbed).await?;
            Ok((next.len() == 2).then_some(()))
        })
        .await?;
    assert!(pods.get(&moved.name_any()).await?.metadata.deletion_timestamp.is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_end_when_they_are_told_to() -> Result<()> {
    let testbed = shared_with_workloads().await?;
    let _nodes = group_of(testbed, "ends", 1).await?;
    let stays = Workload::new("ends", "stays").on_group("ends").never_ends();
    let goes = Workload::new("ends", "goes").on_group("ends").grace(300);
    let goes = goes.gone_after(Duration::from_millis(200));
    let finishes = Workload::new("ends", "finishes").on_group("ends");
    let (stays, goes) = tokio::try_join!(stays.create(testbed), goes.create(testbed))?;
    let finishing = finishes.annotation("sluice.test/finishes-after", "100ms");
    finishing.apply(testbed).await?;
    let pods: Api<Pod> = Api::namespaced(testbed.admin(), "ends");
    for pod in stays.iter().chain(&goes) {
        pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
    }
    gone(testbed, &pods, &goes[0].name_any()).await?;
    assert!(pods.get_opt(&stays[0].name_any()).await?.is_some(), "it never ends");
    testbed
        .until(SOON, "a pod that has succeeded", async || {
            let listed = finishing.pods(testbed).await?;
            let done = listed.iter().any(|pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                phase == Some("Succeeded")
            });
            Ok(done.then_some(()))
        })
        .await?;
    // Or the Deployment makes pods without end.
    testbed
        .kubectl(&["delete", "namespace", "ends", "--wait=false"])
        .await?
        .success()?;
    Ok(())
}

async fn budget_allows(testbed: &Testbed, workload: &Workload, count: u64) -> Result<()> {
    let arguments = [
        "-n",
        workload.namespace(),
        "get",
        "pdb",
        workload.name(),
        "-o",
        "jsonpath={.status.disruptionsAllowed}",
    ];
    testbed
        .until(SOON, "the budget to allow a disruption", async || {
            let allowed = testbed.kubectl(&arguments).await?.success()?;
            ensure!(allowed == count.to_string(), "it allows {allowed}");
            Ok(Some(()))
        })
        .await
}

fn home(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

async fn instance_of(testbed: &Testbed, node: &str) -> Result<String> {
    let instances = testbed.aws().instances().await?;
    let instance = instances.into_iter().find(|it| it.private_dns_name == node);
    Ok(instance
        .with_context(|| format!("no instance of node {node}"))?
        .instance_id)
}
