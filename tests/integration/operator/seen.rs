//! What is seen of the operator from outside: metrics, logs, Events, its use of its rights.
//!
//! Owns one whole story with user data that may be secret. Must not judge the story itself.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{HOME, PATIENCE, TEAM};
use super::{apply, events, example, group_ready, group_until, install, json, kubectl, nodes, patch, start};
use crate::testbed::{Testbed, TestbedOptions};

const GROUP: &str = "storyteller";
const SECRETS: [&str; 2] = ["hunter2-of-the-first-script", "hunter3-of-the-second-script"];

fn script(secret: &str) -> Value {
    json!([{"name": "s", "stage": "PreBootstrap", "data": format!("#!/bin/sh\nexport PASSWORD='{secret}'\n")}])
}

/// Whether a text holds a secret, plain or inside of something in base64.
fn leaks(text: &str) -> bool {
    SECRETS.iter().any(|secret| {
        let encoded = (0..3).any(|shift| {
            let code = STANDARD.encode(format!("{}{secret}", " ".repeat(shift)));
            text.contains(&code[4..code.len() - 4])
        });
        encoded || text.contains(secret)
    })
}

/// A locked group comes, its script changes, the request is approved, the nodes are replaced. Answers the request.
async fn story(testbed: &Testbed) -> Result<Value> {
    let mut group = example("locked-group.yaml", GROUP)?;
    group["spec"]["eks"]["configuration"]["userData"] = script(SECRETS[0]);
    apply(testbed, &group).await?;
    group_ready(testbed, GROUP).await?;
    let change = json!({"spec": {"eks": {"configuration": {"userData": script(SECRETS[1])}}}});
    patch(testbed, GROUP, change).await?;
    let request = testbed
        .until(PATIENCE, "a request", async || {
            let list = json(testbed, &["-n", TEAM, "get", "upgraderequest"]).await?;
            let pending = |request: &&Value| request["status"]["phase"] == "Pending";
            Ok(list["items"].as_array().into_iter().flatten().find(pending).cloned())
        })
        .await?;
    let name = request["metadata"]["name"].as_str().context("a name")?;
    let approval = r#"{"spec":{"approved":true}}"#;
    let approve = [
        "-n",
        TEAM,
        "patch",
        "upgraderequest",
        name,
        "--type=merge",
        "-p",
        approval,
    ];
    kubectl(testbed, &approve).await?;
    let done = testbed
        .until(PATIENCE, "the request's success", async || {
            let request = json(testbed, &["-n", TEAM, "get", "upgraderequest", name]).await?;
            ensure!(request["status"]["phase"] == "Succeeded", "{}", request["status"]);
            Ok(Some(request))
        })
        .await?;
    group_until(testbed, GROUP, "Ready again", |group| {
        group["status"]["currentState"] == "Ready" && group["status"]["upgradeRequest"].is_null()
    })
    .await?;
    Ok(done)
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_logs_and_events_tell_the_story_without_secrets_and_within_the_rights() -> Result<()> {
    let testbed = Testbed::start_with("operator-seen", TestbedOptions::default().audit_reads()).await?;
    let installation = install(&testbed, &[]).await?;
    let operator = start(&testbed, &installation).await?;
    let nodes = nodes(&testbed)?;
    let request = story(&testbed).await?;
    let request_name = request["metadata"]["name"].as_str().context("a name")?;
    ensure!(
        request["spec"]["target"]["changes"][0]["path"] == "userData",
        "{}",
        request["spec"]
    );

    let (status, metrics) = operator.get("/metrics").await?;
    ensure!(status == 200, "{metrics}");
    counted(&testbed, &metrics).await?;

    let described = kubectl(&testbed, &["-n", TEAM, "describe", "instancegroup", GROUP]).await?;
    let (_, told) = described.split_once("Status:").context("a status")?;
    for word in [
        "Conditions:",
        "NodesReady",
        "InstanceGroupCreated",
        "InstanceGroupNodesReady",
        "UpgradeRequestOpened",
    ] {
        ensure!(told.contains(word), "no {word} in: {told}");
    }
    let group = json(&testbed, &["-n", TEAM, "get", "instancegroup", GROUP]).await?;
    let about = [
        ("the group's status", group["status"].to_string()),
        ("the request", request.to_string()),
        ("metrics", metrics),
        (
            "Events of the group",
            json!(events(&testbed, "InstanceGroup", GROUP).await?).to_string(),
        ),
        (
            "Events of the request",
            json!(events(&testbed, "InstanceGroupUpgradeRequest", request_name).await?).to_string(),
        ),
    ];
    for (what, text) in about {
        ensure!(!leaks(&text), "{what} hold user data: {text}");
    }

    kubectl(
        &testbed,
        &["-n", TEAM, "delete", "instancegroup", GROUP, "--timeout=40s"],
    )
    .await?;
    let ended = operator.terminate(Duration::from_secs(8)).await?;
    ensure!(ended.success(), "{ended}");
    logged(&operator.log()?)?;
    within_rights(&testbed)?;
    drop(nodes);
    testbed.stop().await
}

/// Metrics count what AWS saw, time it, and name no object.
async fn counted(testbed: &Testbed, metrics: &str) -> Result<()> {
    let value = |series: &str| -> Result<f64> {
        let line = metrics.lines().find_map(|line| line.strip_prefix(series));
        let line = line.with_context(|| format!("no {series} in: {metrics}"))?;
        Ok(line.trim().parse()?)
    };
    let seen = testbed.aws().counts(0).await?;
    for (service, action) in [
        ("autoscaling", "CreateAutoScalingGroup"),
        ("autoscaling", "TerminateInstanceInAutoScalingGroup"),
        ("ec2", "CreateLaunchTemplateVersion"),
        ("eks", "DescribeCluster"),
    ] {
        let series = format!("sluice_aws_calls_total{{service=\"{service}\",action=\"{action}\",result=\"Success\"}}");
        let (counted, seen) = (value(&series)?, seen[service][action]);
        // A poller may have called since.
        let bound = u32::try_from(seen)?.into();
        ensure!(counted >= 1.0 && counted <= bound, "{counted} of {seen} {action}");
        ensure!(
            action.starts_with("Describe") || (counted - bound).abs() < 0.5,
            "{counted} of {seen} {action}"
        );
        ensure!(value(&format!("sluice_aws_call_seconds_count{{service=\"{service}\"}}"))? >= 1.0);
    }
    let reconciles = "sluice_reconciles_total{controller=\"instance-group\",result=\"Success\"}";
    ensure!(value(reconciles)? >= 1.0);
    ensure!(value("sluice_reconcile_seconds_count{controller=\"instance-group\"}")? >= 1.0);
    for name in [GROUP, TEAM, "demo", "ami-", "lt-"] {
        ensure!(!metrics.contains(name), "metrics name objects ({name}): {metrics}");
    }
    Ok(())
}

/// Each line is one JSON object; those of a reconcile say of what.
fn logged(log: &str) -> Result<()> {
    ensure!(!leaks(log), "the log holds user data");
    let mut of_the_group = BTreeSet::new();
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))?;
        for field in ["timestamp", "level", "message", "target"] {
            ensure!(entry[field].is_string(), "no {field} in {line}");
        }
        let span = &entry["span"];
        if span["name"] == "reconcile" {
            ensure!(
                span["controller"] == "instance-group" && span["namespace"] == TEAM,
                "{line}"
            );
            ensure!(span["group"] == GROUP, "{line}");
            of_the_group.insert(entry["message"].to_string());
        }
    }
    ensure!(
        of_the_group.contains("\"apply\""),
        "reconciles said only {of_the_group:?}"
    );
    Ok(())
}

/// The chart gives the operator all it needs.
fn within_rights(testbed: &Testbed) -> Result<()> {
    let account = format!("system:serviceaccount:{HOME}:sluice");
    let audit = testbed.audit()?;
    let of_the_operator = || {
        audit
            .iter()
            .filter(|event| event["user"]["username"] == account.as_str())
    };
    let verbs: BTreeSet<&str> = of_the_operator().filter_map(|event| event["verb"].as_str()).collect();
    let expected = ["create", "delete", "get", "list", "patch", "update", "watch"];
    ensure!(verbs.iter().eq(expected.iter()), "the whole story used only {verbs:?}");
    match of_the_operator().find(|event| event["responseStatus"]["code"] == 403) {
        None => Ok(()),
        Some(refused) => bail!("refused: {refused}"),
    }
}
