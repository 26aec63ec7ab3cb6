//! Approvers of other people's making: the examples, under their own accounts and rights.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{PATIENCE, Stage, publish};

/// The folder of an example.
fn folder(name: &str) -> String {
    format!("{}/examples/approvers/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs an example as its own service account; its words go to a file.
async fn run(stage: &Stage, command: &mut Command, account: &str, log: &str) -> Result<Child> {
    let kubeconfig = stage.testbed.kubeconfig_for_service_account("team", account).await?;
    let words = std::fs::File::create(stage.testbed.folder().join(log))?;
    let kubectl = stage
        .testbed
        .kubectl_path()
        .parent()
        .context("a folder")?
        .display()
        .to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", format!("{kubectl}:{path}"))
        .env("NO_PROXY", "127.0.0.1,localhost")
        .stdin(Stdio::null())
        .stdout(words.try_clone()?)
        .stderr(words)
        .kill_on_drop(true);
    command.spawn().context("starting the example")
}

async fn said(stage: &Stage, log: &str, words: &str) -> Result<()> {
    let path = stage.testbed.folder().join(log);
    let what = format!("{log} to say {words:?}");
    let waiting = stage.testbed.until(PATIENCE, &what, async || {
        let text = std::fs::read_to_string(&path)?;
        ensure!(text.contains(words), "it says: {text}");
        Ok(Some(()))
    });
    waiting.await
}

async fn locked_group(stage: &Stage, name: &str) -> Result<()> {
    stage.group("team", name, 1).await?;
    stage
        .kubectl(&[
            "-n",
            "team",
            "annotate",
            "instancegroup",
            name,
            "instancemgr.keikoproj.io/lock-upgrades=true",
        ])
        .await?;
    stage
        .group_until("team", name, "Ready", |group| {
            group["status"]["currentState"] == "Ready"
        })
        .await?;
    Ok(())
}

fn of<'a>(name: &'a str, phase: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |request| request["spec"]["instanceGroupRef"]["name"] == name && request["status"]["phase"] == phase
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_in_shell_approves_and_is_refused_without_the_verb() -> Result<()> {
    let stage = Stage::new("approver-shell").await?;
    stage.namespace("team", "dev").await?;
    let rights = format!("{}/rights.yaml", folder("shell"));
    stage.kubectl(&["apply", "-f", &rights]).await?;
    let without = json!({ "rules": [{ "apiGroups": ["instancemgr.keikoproj.io"], "resources": ["instancegroupupgraderequests"], "verbs": ["patch"] }] });
    stage
        .kubectl(&[
            "-n",
            "team",
            "patch",
            "role",
            "shell-approver",
            "--type=merge",
            "-p",
            &without.to_string(),
        ])
        .await?;
    locked_group(&stage, "workers").await?;
    let new = publish(&stage.testbed, 2).await?;
    stage.request_until("team", "Pending", of("workers", "Pending")).await?;
    let script = format!("{}/approve.sh", folder("shell"));
    let start = async |log| {
        let mut command = Command::new(&script);
        run(
            &stage,
            command.env("IMAGES", "amazon-eks-node-al2023-*"),
            "shell-approver",
            log,
        )
        .await
    };
    let mut refused = start("refused.log").await?;
    said(&stage, "refused.log", "not approved team/").await?;
    said(&stage, "refused.log", "approve").await?;
    refused.kill().await?;
    stage
        .request_until("team", "still Pending", of("workers", "Pending"))
        .await?;
    stage.kubectl(&["apply", "-f", &rights]).await?;
    let mut approver = start("approver.log").await?;
    said(&stage, "approver.log", "approved team/").await?;
    stage.ready_on("team", "workers", &new).await?;
    let done = stage.request_until("team", "done", of("workers", "Succeeded")).await?;
    let by = &done["spec"]["approvedBy"];
    ensure!(by == "system:serviceaccount:team:shell-approver", "{by}");
    approver.kill().await?;
    stage.stop().await
}
