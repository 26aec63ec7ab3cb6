//! `sluice settings check --live` on a real API server.
//!
//! Owns what is read of a cluster; what is said of it is tested on the plan.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::definitions;
use crate::testbed::Testbed;

async fn check(testbed: &Testbed, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["settings", "check"])
        .args(arguments)
        .env("KUBECONFIG", testbed.kubeconfig())
        .output()
        .await?;
    let printed = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(printed)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_counts_the_groups_of_a_cluster() -> Result<()> {
    let testbed = Testbed::start("settings-check").await?;
    let file = format!("{}/examples/settings/three-tiers.yaml", env!("CARGO_MANIFEST_DIR"));
    let (code, printed) = check(&testbed, &[&file, "--live"]).await?;
    ensure!(
        code == Some(1) && printed.contains("cannot list instance groups"),
        "{printed}"
    );

    definitions::installed(&testbed).await?;
    let example = format!("{}/examples/locked-group.yaml", env!("CARGO_MANIFEST_DIR"));
    let mut group: Value = serde_saphyr::from_str(&std::fs::read_to_string(example)?)?;
    for (tier, groups) in [("dev", &["one", "two"][..]), ("staging", &[]), ("other", &["three"])] {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": tier, "labels": { "instancemgr.keikoproj.io/tier": tier } },
        });
        let apply = ["apply", "-f", "-"];
        testbed.kubectl_stdin(&apply, &namespace.to_string()).await?.success()?;
        for name in groups {
            group["metadata"]["namespace"] = tier.into();
            group["metadata"]["name"] = (*name).into();
            testbed.kubectl_stdin(&apply, &group.to_string()).await?.success()?;
        }
    }
    let (code, printed) = check(&testbed, &[&file, "--live"]).await?;
    ensure!(code == Some(0), "{printed}");
    for said in [
        "three-tiers.yaml:15: warning: schedules[1].match: no group of this cluster matches",
        "three-tiers.yaml:18: warning: schedules[2].match: no group of this cluster matches",
        "holds 3 of 3 groups",
        "schedule dev: groups in namespaces with tier=dev (2 here)",
        "groups that no schedule is for (1 here)",
    ] {
        ensure!(printed.contains(said), "{said:?} is not in:\n{printed}");
    }
    let (code, printed) = check(&testbed, &[&file]).await?;
    ensure!(code == Some(0) && !printed.contains("warning"), "{printed}");
    Ok(())
}
