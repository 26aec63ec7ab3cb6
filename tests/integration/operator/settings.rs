//! Settings of the fleet that this version does not act on.
//!
//! Owns the settings' keys as an obstacle, and that it goes when they go.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{HOME, PATIENCE, SECONDS, TEAM};
use super::{actions, apply, condition, example, group_ready, group_until, install, is_true, kubectl, nodes, patch};
use super::{recommend, start, writes};
use crate::testbed::Testbed;

const KEYS: [&str; 2] = ["conditionals", "boundaries"];

async fn set(testbed: &Testbed, data: Value) -> Result<()> {
    let change = json!({"data": data}).to_string();
    let arguments = [
        "-n",
        HOME,
        "patch",
        "configmap",
        "instance-manager",
        "--type=merge",
        "-p",
        &change,
    ];
    kubectl(testbed, &arguments).await.map(drop)
}

/// Waits until a group names a key, and no other, as what it cannot go on with.
async fn waits_for(testbed: &Testbed, name: &str, key: &str) -> Result<Value> {
    group_until(testbed, name, &format!("held up by {key}"), |group| {
        let unsupported = condition(group, "Unsupported").filter(|_| is_true(group, "Unsupported"));
        let message = unsupported.and_then(|it| it["message"].as_str()).unwrap_or_default();
        let names = |key: &str| message.contains(&format!("data.{key}"));
        condition(group, "Ready").is_some_and(|ready| ready["status"] == "False")
            && KEYS.iter().all(|other| names(other) == (*other == key))
            && group["status"]["observedGeneration"] == group["metadata"]["generation"]
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settings_key_holds_everything_up_but_a_deletion_until_it_goes() -> Result<()> {
    let testbed = Testbed::start("operator-settings").await?;
    let installation = install(&testbed, &[]).await?;
    // Without keys it is no obstacle.
    kubectl(&testbed, &["-n", HOME, "create", "configmap", "instance-manager"]).await?;
    // Nor is another one beside it.
    let other = ["-n", HOME, "create", "configmap", "other", "--from-literal=upgrades=x"];
    kubectl(&testbed, &other).await?;
    let operator = start(&testbed, &installation).await?;
    let nodes = nodes(&testbed)?;
    apply(&testbed, &example("locked-group.yaml", "stays")?).await?;
    let mut goes = example("pinned-image.yaml", "goes")?;
    goes["spec"]["eks"]["configuration"]["image"] = recommend(&testbed, 1).await?.into();
    apply(&testbed, &goes).await?;
    group_ready(&testbed, "stays").await?;
    group_ready(&testbed, "goes").await?;

    let before = testbed.aws().last_sequence().await?;
    set(&testbed, json!({"conditionals": "x"})).await?;
    waits_for(&testbed, "stays", "conditionals").await?;
    patch(&testbed, "stays", json!({"spec": {"eks": {"minSize": 4}}})).await?;
    patch(
        &testbed,
        "goes",
        json!({"spec": {"eks": {"configuration": {"instanceType": "m5.xlarge"}}}}),
    )
    .await?;
    apply(&testbed, &example("locked-group.yaml", "comes")?).await?;
    for name in ["stays", "goes", "comes"] {
        waits_for(&testbed, name, "conditionals").await?;
    }
    set(&testbed, json!({"conditionals": null, "boundaries": "x"})).await?;
    for name in ["stays", "goes", "comes"] {
        waits_for(&testbed, name, "boundaries").await?;
    }
    let calls = writes(&testbed, before).await?;
    assert!(calls.is_empty(), "AWS was written to: {:?}", actions(&calls));

    // A deletion is what the person asked for, whatever the settings say.
    kubectl(
        &testbed,
        &["-n", TEAM, "delete", "instancegroup", "goes", "--timeout=40s"],
    )
    .await?;
    let calls = writes(&testbed, before).await?;
    assert_eq!(actions(&calls), ["DeleteAutoScalingGroup", "DeleteLaunchTemplate"]);

    let before = testbed.aws().last_sequence().await?;
    set(&testbed, json!({"boundaries": null})).await?;
    testbed
        .until(SECONDS, "what was held up", async || {
            let calls = writes(&testbed, before).await?;
            let (seen, expected) = (actions(&calls), ["UpdateAutoScalingGroup", "CreateAutoScalingGroup"]);
            ensure!(expected.iter().all(|action| seen.contains(action)), "seen: {seen:?}");
            Ok(Some(()))
        })
        .await?;
    for name in ["stays", "comes"] {
        let group = group_until(&testbed, name, "Ready again", |group| {
            is_true(group, "Ready") && !is_true(group, "Unsupported")
        })
        .await?;
        ensure!(group["status"]["lock"]["locked"] == true, "{}", group["status"]);
    }
    let size = testbed
        .until(PATIENCE, "the size that was asked for", async || {
            let instances = testbed.aws().instances().await?;
            Ok((instances.len() == 4 + 3).then_some(instances.len()))
        })
        .await
        .context("4 of one group, 3 of the other")?;
    assert_eq!(size, 7);
    operator.alive()?;
    drop(nodes);
    testbed.stop().await
}
