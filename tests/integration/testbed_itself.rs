//! Proves the testbed before anything is judged on it: what it serves, what it records, and that it ends whole.
//!
//! It must not need the operator.
#![allow(clippy::print_stdout, reason = "a child test tells its parent where its testbed is")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aws_sdk_autoscaling::types::LaunchTemplateSpecification;
use aws_sdk_ec2::types::RequestLaunchTemplateData;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::testbed::{Aws, Fault, NodeOptions, NodeSimulator, Operator, Seed, Testbed, shared, wait};

const SOON: Duration = Duration::from_secs(30);
const IMAGE_LABEL: &str = "instancemgr.keikoproj.io/image";

#[tokio::test(flavor = "multi_thread")]
async fn serves_and_refuses_whoever_has_no_rights() -> Result<()> {
    let testbed = shared().await?;
    assert_eq!(
        testbed
            .kubectl(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"])
            .await?
            .success()?,
        "admin"
    );
    testbed.kubectl(&["get", "nodes"]).await?.success()?;
    for user in ["alice", "bob", "carol"] {
        let kubeconfig = testbed.kubeconfig_for_user(user)?;
        let complaint = testbed.kubectl_as(&kubeconfig, &["get", "nodes"]).await?.failure()?;
        assert!(
            complaint.contains(&format!("User \"{user}\" cannot list resource \"nodes\"")),
            "{complaint}"
        );
    }
    assert!(testbed.kubeconfig_for_user("mallory").is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_service_account_may_do_what_it_was_given() -> Result<()> {
    let testbed = shared().await?;
    testbed.kubectl(&["create", "namespace", "accounts"]).await?.success()?;
    testbed
        .kubectl(&["create", "serviceaccount", "operator", "-n", "accounts"])
        .await?
        .success()?;
    let bind = [
        "create",
        "clusterrolebinding",
        "accounts-view",
        "--clusterrole=view",
        "--serviceaccount=accounts:operator",
    ];
    testbed.kubectl(&bind).await?.success()?;
    let client = testbed.client_for_service_account("accounts", "operator").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "accounts");
    // The authorizer learns of a binding from a watch, a moment after its answer.
    testbed
        .until(SOON, "the binding to count", async || {
            Ok(maps.list(&ListParams::default()).await.map(Some)?)
        })
        .await?;
    let refused = maps.create(&PostParams::default(), &config_map("refused")).await;
    assert!(matches!(refused, Err(kube::Error::Api(answer)) if answer.code == 403));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_has_writes_with_their_content_and_no_reads() -> Result<()> {
    let testbed = shared().await?;
    let before = testbed.audit_position()?;
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "audited", "namespace": "default"}, "data": {"key": "value"},
    });
    testbed
        .kubectl_stdin(&["create", "-f", "-"], &manifest.to_string())
        .await?
        .success()?;
    let event = testbed
        .until(SOON, "the event of the write", async || {
            let events = testbed.audit_after(before)?;
            ensure!(
                events
                    .iter()
                    .all(|event| event["verb"] != "get" && event["verb"] != "list"),
                "a read was noted"
            );
            Ok(events.into_iter().find(|event| event["objectRef"]["name"] == "audited"))
        })
        .await?;
    assert_eq!(event["verb"], "create");
    assert_eq!(event["user"]["username"], "admin");
    assert_eq!(event["responseStatus"]["code"], 201);
    assert_eq!(event["requestObject"]["data"]["key"], "value");
    assert!(testbed.audit()?.len() > testbed.audit_after(before)?.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_go_with_their_owner_and_content_with_its_namespace() -> Result<()> {
    let testbed = shared().await?;
    let maps: Api<ConfigMap> = Api::namespaced(testbed.admin(), "default");
    let owner = maps.create(&PostParams::default(), &config_map("owner")).await?;
    let mut dependent = config_map("dependent");
    dependent.metadata.owner_references = Some(vec![serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(),
    }))?]);
    maps.create(&PostParams::default(), &dependent).await?;
    testbed.kubectl(&["create", "namespace", "doomed"]).await?.success()?;
    maps.delete("owner", &kube::api::DeleteParams::default()).await?;
    gone(testbed, &maps, "dependent").await?;

    testbed
        .kubectl(&["delete", "namespace", "doomed", "--wait=false"])
        .await?
        .success()?;
    let namespaces: Api<Namespace> = Api::all(testbed.admin());
    gone(testbed, &namespaces, "doomed").await
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_reaches_the_cluster() -> Result<()> {
    let testbed = shared().await?;
    let listed = testbed
        .helm(&["list", "--all-namespaces", "--output", "json"])
        .await?
        .success()?;
    assert_eq!(listed.trim(), "[]");
    Ok(())
}

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
            Ok(testbed.kubectl(&lease).await?.success().map(Some)?)
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

#[tokio::test(flavor = "multi_thread")]
async fn a_process_under_test_is_started_watched_and_ended() -> Result<()> {
    let testbed = shared().await?;
    let served = testbed.folder().join("served");
    std::fs::create_dir(&served)?;
    let port = testbed.free_port()?;
    let number = port.to_string();
    // Python's own web server stands in for the operator.
    let arguments = [
        "-u",
        "-m",
        "http.server",
        &number,
        "--bind",
        "127.0.0.1",
        "--directory",
        &served.display().to_string(),
    ];
    let mut operator = Operator::start(testbed, testbed.python_path(), &arguments, &[], testbed.kubeconfig())?;
    let early = wait::until(Duration::from_millis(500), "an early readiness", async || {
        ensure!(served.join("readyz").exists(), "not ready yet");
        Ok(Some(()))
    });
    let complaint = early
        .await
        .map_or_else(|problem| problem.to_string(), |()| String::new());
    assert!(
        complaint.contains("an early readiness") && complaint.contains("not ready yet"),
        "{complaint}"
    );
    std::fs::write(served.join("readyz"), "ok")?;
    operator.ready(port).await?;
    assert_eq!(operator.get("/readyz").await?, (200, "ok".to_owned()));
    assert!(operator.log()?.contains("GET /readyz"));
    let pid = operator.pid();
    let status = operator.terminate(SOON).await?;
    assert!(!status.success(), "it does not handle the signal");
    assert!(!is_running(pid) && operator.alive().is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_restarts_and_pauses_and_keeps_its_data() -> Result<()> {
    let testbed = Testbed::start("restart").await?;
    let client = testbed.admin();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &config_map("kept")).await?;
    let account = testbed.kubeconfig_for_service_account("default", "default").await?;
    testbed.api_server_restart().await?;
    testbed
        .until(SOON, "the same client to be served again", async || {
            Ok(maps.get_opt("kept").await?)
        })
        .await?;
    let who = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    assert_eq!(
        testbed.kubectl_as(&account, &who).await?.success()?,
        "system:serviceaccount:default:default"
    );

    testbed.api_server_pause()?;
    let silent = tokio::time::timeout(Duration::from_millis(700), maps.get("kept")).await;
    assert!(silent.is_err(), "a paused server does not answer");
    testbed.api_server_resume()?;
    maps.get("kept").await?;
    testbed.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_dies_is_reported_with_its_log() -> Result<()> {
    let testbed = Testbed::start("crash").await?;
    testbed.health()?;
    kill(testbed.control_plane().controller_manager().pid())?;
    let started = Instant::now();
    let waited = testbed
        .until(Duration::from_secs(60), "what never comes", async || Ok(None::<()>))
        .await;
    let report = format!("{:#}", waited.err().context("the wait went well")?);
    assert!(
        report.contains("kube-controller-manager has ended (signal: 9"),
        "{report}"
    );
    assert!(
        report.contains("what never comes") && report.lines().count() > 3,
        "{report}"
    );
    assert!(
        started.elapsed() < SOON,
        "it waited although nothing could come any more"
    );
    testbed.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_and_dropping_leave_nothing() -> Result<()> {
    let stopped = Testbed::start("stopped").await?;
    let (folder, pids) = (stopped.folder().to_owned(), stopped.pids());
    assert_eq!(pids.len(), 4, "etcd, API server, controllers, AWS");
    assert!(pids.iter().all(|pid| is_running(*pid)));
    stopped.stop().await?;
    assert!(!folder.exists() && !pids.iter().any(|pid| is_running(*pid)));

    let dropped = Testbed::start("dropped").await?;
    let (folder, pids) = (dropped.folder().to_owned(), dropped.pids());
    drop(dropped);
    nothing_left(&folder, &pids).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_nothing() -> Result<()> {
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "testbed_itself::holds_a_testbed_until_it_is_killed",
        ])
        .env("TESTBED_TO_BE_ABANDONED", "yes")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let held = loop {
        let line = lines.next_line().await?.context("it ended before it had a testbed")?;
        if let Some((_, held)) = line.split_once("holding ") {
            break held.to_owned();
        }
    };
    let (pids, folder) = held.split_once(' ').context("pids and a folder")?;
    let pids = pids.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    assert!(pids.len() == 4 && pids.iter().all(|pid| is_running(*pid)));
    child.kill().await?;
    nothing_left(&PathBuf::from(folder), &pids).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test above, which kills it"]
async fn holds_a_testbed_until_it_is_killed() -> Result<()> {
    if std::env::var_os("TESTBED_TO_BE_ABANDONED").is_none() {
        return Ok(());
    }
    let testbed = Testbed::start("abandoned").await?;
    let pids: Vec<_> = testbed.pids().iter().map(ToString::to_string).collect();
    println!("holding {} {}", pids.join(","), testbed.folder().display());
    std::future::pending().await
}

/// A launch template of this image and a group of so many instances, as the operator would make them.
async fn make_group(aws: &Aws, seed: &Seed, name: &str, image: &str, size: i32) -> Result<()> {
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

async fn gone<K>(testbed: &Testbed, api: &Api<K>, name: &str) -> Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let what = format!("{name} to be gone");
    testbed
        .until(SOON, &what, async || {
            Ok(api.get_opt(name).await?.is_none().then_some(()))
        })
        .await
}

async fn nothing_left(folder: &Path, pids: &[u32]) -> Result<()> {
    wait::until(SOON, "the processes and the folder to be gone", async || {
        let running: Vec<_> = pids.iter().filter(|pid| is_running(**pid)).collect();
        ensure!(
            running.is_empty() && !folder.exists(),
            "running: {running:?}, folder: {}",
            folder.exists()
        );
        Ok(Some(()))
    })
    .await
}

/// A process that has ended but that nobody has asked about yet does not count.
fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

fn kill(pid: u32) -> Result<()> {
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -s KILL {pid}")])
        .status()?;
    ensure!(sent.success(), "no process {pid} to kill");
    Ok(())
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}
