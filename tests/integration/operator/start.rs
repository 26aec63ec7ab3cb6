//! Starting before everything else is there, and ending whenever asked.
//!
//! Owns the life of the process. Must not judge what the operator decides.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::relay::Relay;
use super::{HOME, PATIENCE, SECONDS};
use super::{actions, apply, example, group_ready, install, kubectl, nodes, patch, start, writes};
use crate::testbed::installation::{binary, chart};
use crate::testbed::{Fault, Operator, Testbed};

const KINDS: [&str; 2] = [
    "instancegroups.instancemgr.keikoproj.io",
    "instancegroupupgraderequests.instancemgr.keikoproj.io",
];

/// Ends the operator as a kubelet does; it has to end well and soon.
async fn end(operator: &Operator) -> Result<()> {
    let status = operator.terminate(Duration::from_secs(8)).await?;
    ensure!(status.code() == Some(0), "asked to end, it ended with {status}");
    Ok(())
}

/// Waits for a `/readyz` that is not well, and is as described.
async fn not_ready(testbed: &Testbed, operator: &Operator, what: &str, holds: impl Fn(&str) -> bool) -> Result<()> {
    let waiting = testbed.until(SECONDS, what, async || {
        operator.alive()?;
        let (health, _) = operator.get("/healthz").await?;
        ensure!(health == 200, "/healthz answered {health}");
        let (status, text) = operator.get("/readyz").await?;
        ensure!(status == 503 && holds(&text), "/readyz answered {status}: {text}");
        Ok(Some(()))
    });
    waiting.await
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_what_is_missing_at_start_and_ends_well_whenever_asked() -> Result<()> {
    let testbed = Testbed::start("operator-start").await?;
    let installation = install(&testbed, &["--skip-crds"]).await?;

    // No API server at all.
    testbed.api_server_stop().await?;
    let early = start(&testbed, &installation).await?;
    not_ready(&testbed, &early, "/readyz without an API server", |text| {
        text.contains(KINDS[0]) && text.contains("nodes: ") && text.contains("Connection refused")
    })
    .await?;
    end(&early).await?;

    // An API server that does not know the kinds.
    let operator = start(&testbed, &installation).await?;
    not_ready(&testbed, &operator, "the first failure", |text| {
        text.contains("refused")
    })
    .await?;
    testbed.api_server_start().await?;
    let only_kinds = |text: &str| KINDS.iter().all(|kind| text.contains(kind)) && !text.contains("nodes: ");
    not_ready(&testbed, &operator, "/readyz without the CRDs", |text| {
        only_kinds(text) && text.contains("404")
    })
    .await?;

    // A second one ends well even now, while the first goes on.
    let short = start(&testbed, &installation).await?;
    not_ready(&testbed, &short, "/readyz of the second", only_kinds).await?;
    end(&short).await?;

    let crds = format!("{}/crds", chart());
    kubectl(&testbed, &["apply", "-f", &crds]).await?;
    // A watch that the API server turned away while it sets a kind up counts again after a quiet quarter of a minute.
    operator.answers("/readyz", Duration::from_secs(40)).await?;
    let nodes = nodes(&testbed)?;
    let before = testbed.aws().last_sequence().await?;
    apply(&testbed, &example("locked-group.yaml", "workers")?).await?;
    group_ready(&testbed, "workers").await?;
    assert_eq!(
        actions(&writes(&testbed, before).await?),
        ["CreateLaunchTemplate", "CreateAutoScalingGroup"]
    );

    ends_between_two_calls(&testbed, &operator).await?;

    // The next start makes up for the rest.
    let before = testbed.aws().last_sequence().await?;
    let (mut relay, kubeconfig) = Relay::start(&installation.kubeconfig).await?;
    let operator = installation.operator(&testbed)?.kubeconfig(&kubeconfig).up().await?;
    testbed
        .until(PATIENCE, "the rest of the pass", async || {
            let later = writes(&testbed, before).await?;
            Ok(actions(&later).contains(&"CreateOrUpdateTags").then_some(()))
        })
        .await?;
    group_ready(&testbed, "workers").await?;

    // A watch that is taken up again where it left off has nothing to say, and counts all the same.
    relay.cut();
    not_ready(&testbed, &operator, "/readyz with the way cut", |text| {
        text.contains("ConfigMap instance-manager: ") && text.contains("refused")
    })
    .await?;
    relay.mend().await?;
    operator.answers("/readyz", Duration::from_secs(40)).await?;
    end(&operator).await?;
    drop(nodes);
    testbed.stop().await
}

/// Asks the operator to end while an AWS call hangs, with another one to come in the same pass.
async fn ends_between_two_calls(testbed: &Testbed, operator: &Operator) -> Result<()> {
    let slow = Fault::on("autoscaling", "UpdateAutoScalingGroup").latency(Duration::from_secs(3));
    testbed.aws().inject_fault(slow).await?;
    let before = testbed.aws().last_sequence().await?;
    patch(
        testbed,
        "workers",
        json!({"spec": {"eks": {"minSize": 4, "configuration": {"tags": [{"key": "cost-center", "value": "4711"}]}}}}),
    )
    .await?;
    testbed
        .until(PATIENCE, "the slow call", async || {
            let calls = writes(testbed, before).await?;
            let slow = calls.iter().find(|call| call.action == "UpdateAutoScalingGroup");
            Ok(slow.filter(|call| call.status.is_none()).map(drop))
        })
        .await?;
    end(operator).await?;
    testbed.aws().clear_faults().await?;
    let calls = writes(testbed, before).await?;
    assert_eq!(actions(&calls), ["UpdateAutoScalingGroup"], "no other write may begin");
    assert_eq!(calls[0].status, Some(200), "the call under way has to finish");
    Ok(())
}

#[test]
fn a_bad_flag_is_refused_with_a_way_out() -> Result<()> {
    for (flag, value, hint) in [
        ("--aws-poll-interval", "10", "write it as 30s, 5m or 1h30m"),
        ("--metrics-addr", "8080", "127.0.0.1:8080"),
        ("--log-format", "yaml", "text, json"),
        ("--log-level", "sluice=loud", "sluice=debug,info"),
        ("--max-workers", "0", "1..=65535"),
        ("--controllers", "instance-groups", "there are: instance-group"),
        ("--kubeconfig", "/no/such/file", "/no/such/file"),
        ("--leader-elect-renew-deadline", "15s", "--leader-elect-lease-duration"),
        ("--leader-elect-retry-period", "1m", "--leader-elect-renew-deadline"),
        ("--no-such-flag", HOME, "--help"),
    ] {
        let mut command = Command::new(binary());
        command
            .args(["run", "--config-namespace", HOME, flag, value])
            .args(if flag == "--metrics-addr" {
                &[][..]
            } else {
                &["--metrics-addr", "127.0.0.1:0"]
            })
            .env_clear()
            .env("AWS_REGION", "us-west-2")
            .env("POD_NAMESPACE", HOME)
            .env("AWS_EC2_METADATA_DISABLED", "true");
        let output = command.output().context("running the binary")?;
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{flag} {value} was taken");
        assert!(
            told.contains(hint) && told.contains(flag.trim_start_matches('-')),
            "{told}"
        );
    }
    Ok(())
}
