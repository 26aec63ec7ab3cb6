//! Objects that the API server holds and nobody can read.
//!
//! Owns stored nonsense: how it comes in, what is told of it, and that all others go on.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{HOME, PATIENCE, TEAM};
use super::{apply, events, example, group_ready, install, json, kubectl, nodes, start};
use crate::testbed::Testbed;
use crate::testbed::installation::chart;

/// Text that may be a secret.
const SECRET: &str = "hunter2-of-the-unreadable";

/// Puts definitions in place that take anything, as an older or a foreign version may.
async fn take_anything(testbed: &Testbed) -> Result<()> {
    for kind in ["instancegroups", "instancegroupupgraderequests"] {
        let name = format!("{kind}.instancemgr.keikoproj.io");
        let mut definition = json(testbed, &["get", "crd", &name]).await?;
        let version = &mut definition["spec"]["versions"][0];
        version["schema"] =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        version.as_object_mut().context("a version")?.remove("selectableFields");
        let definition = definition.to_string();
        let replaced = testbed.kubectl_stdin(&["replace", "-f", "-"], &definition);
        replaced.await?.success()?;
    }
    Ok(())
}

/// Stores an object as soon as the API server has taken up the new definition.
async fn store(testbed: &Testbed, object: &Value) -> Result<()> {
    testbed
        .until(PATIENCE, "nonsense to be taken", async || {
            apply(testbed, object).await.map(Some)
        })
        .await
}

/// The one Warning about an object.
async fn warning(testbed: &Testbed, kind: &str, name: &str) -> Result<String> {
    testbed
        .until(PATIENCE, &format!("a Warning about {name}"), async || {
            let all = events(testbed, kind, name).await?;
            let warning = all.iter().find(|event| event["reason"] == "Unreadable");
            let warning = warning.with_context(|| format!("its Events are {all:?}"))?;
            ensure!(warning["type"] == "Warning", "it is {warning}");
            Ok(warning["message"].as_str().map(str::to_owned))
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_told_once_and_all_others_go_on() -> Result<()> {
    let testbed = Testbed::start("operator-objects").await?;
    // With the policies, nobody but the operator could store such a request.
    let installation = install(&testbed, &["--set=admissionPolicies.enabled=false"]).await?;
    let operator = start(&testbed, &installation).await?;
    let nodes = nodes(&testbed)?;

    take_anything(&testbed).await?;
    let mut number = example("locked-group.yaml", "no-number")?;
    number["spec"]["eks"]["minSize"] = "three".into();
    store(&testbed, &number).await?;
    let mut script = example("locked-group.yaml", "no-list")?;
    script["spec"]["eks"]["configuration"]["userData"] = format!("#!/bin/sh\nexport PASSWORD=\"{SECRET}\"\n").into();
    store(&testbed, &script).await?;
    let request = json!({
        "apiVersion": "instancemgr.keikoproj.io/v1alpha1",
        "kind": "InstanceGroupUpgradeRequest",
        "metadata": {"name": "no-truth", "namespace": TEAM},
        "spec": {"approved": "yes"},
    });
    store(&testbed, &request).await?;

    let told = warning(&testbed, "InstanceGroup", "no-number").await?;
    assert!(told.contains("\"three\""), "{told}");
    let told = warning(&testbed, "InstanceGroup", "no-list").await?;
    assert!(!told.contains(SECRET) && told.contains("Expected a sequence"), "{told}");
    warning(&testbed, "InstanceGroupUpgradeRequest", "no-truth").await?;

    // Seen again and again: touched, and woken with all others by a change of the settings.
    for round in ["1", "2", "3"] {
        for object in [
            "instancegroup/no-number",
            "instancegroup/no-list",
            "upgraderequest/no-truth",
        ] {
            let touch = format!("example.com/round={round}");
            kubectl(&testbed, &["-n", TEAM, "label", "--overwrite", object, &touch]).await?;
        }
    }
    let settings = ["-n", HOME, "create", "configmap", "instance-manager"];
    kubectl(&testbed, &settings).await?;
    // The others live under the real definitions.
    let crds = format!("{}/crds", chart());
    kubectl(&testbed, &["replace", "-f", &crds]).await?;
    apply(&testbed, &example("locked-group.yaml", "good")?).await?;
    group_ready(&testbed, "good").await?;

    for (kind, name) in [
        ("InstanceGroup", "no-number"),
        ("InstanceGroup", "no-list"),
        ("InstanceGroupUpgradeRequest", "no-truth"),
    ] {
        let all = events(&testbed, kind, name).await?;
        assert_eq!(all.len(), 1, "{name}: {all:?}");
    }
    assert!(
        !operator.log()?.contains(SECRET),
        "the log repeats what an object holds"
    );
    operator.alive()?;
    drop(nodes);
    testbed.stop().await
}
