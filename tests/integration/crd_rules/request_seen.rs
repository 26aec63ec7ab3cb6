//! Requests as people meet them in kubectl: names, columns, selectors, the documented command.
//!
//! Owns what is typed and printed. It must not try rules.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::prepared;
use super::stored_request::Stored;

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_found_by_short_name_and_category() -> Result<()> {
    let testbed = prepared("crd-category").await?;
    let listed = testbed
        .kubectl(&["api-resources", "--categories=instancemgr", "-o", "name"])
        .await?
        .success()?;
    let listed: BTreeSet<_> = listed.lines().collect();
    assert_eq!(
        listed,
        BTreeSet::from([
            "instancegroups.instancemgr.keikoproj.io",
            "instancegroupupgraderequests.instancemgr.keikoproj.io",
        ])
    );
    for names in ["instancemgr", "ig,igur", "ig,upgraderequest,upgraderequests"] {
        testbed
            .kubectl(&["get", names, "-n", "crd-category"])
            .await?
            .success()?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_approval_works_as_written() -> Result<()> {
    let testbed = prepared("rules-documented").await?;
    // `kubectl patch upgraderequest NAME --type merge -p '{"spec":{"approved":true}}'`
    for (resource, name) in [("upgraderequest", "r1"), ("upgraderequests", "r2"), ("igur", "r3")] {
        let request = Stored::new(testbed, "rules-documented", name, &json!({}), Some("Pending")).await?;
        let typed = [
            "-n",
            "rules-documented",
            "patch",
            resource,
            name,
            "--type",
            "merge",
            "-p",
        ];
        let typed = [typed.as_slice(), &[r#"{"spec":{"approved":true}}"#]].concat();
        testbed.kubectl(&typed).await?.success()?;
        let spec = &request.read().await?["spec"];
        let expected = json!({
            "approved": true, "denied": false, "cancelled": false, "urgent": false, "approvedBy": "", "decisionReason": "",
        });
        for (field, value) in expected.as_object().context("an object")? {
            ensure!(spec[field] == *value, "{field} is {}", spec[field]);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_selected_by_group_and_phase_and_show_their_columns() -> Result<()> {
    let testbed = prepared("rules-columns").await?;
    let other = json!({"instanceGroupRef": {"name": "others"}});
    for (name, spec, phase) in [
        ("w-1", json!({"approvedBy": "alice", "approved": true}), "Succeeded"),
        ("w-2", json!({}), "Pending"),
        ("o-1", other, "Pending"),
    ] {
        Stored::new(testbed, "rules-columns", name, &spec, Some(phase)).await?;
    }
    let get = async |arguments: &[&str]| {
        let all = [&["get", "igur", "-n", "rules-columns"], arguments].concat();
        testbed.kubectl(&all).await?.success()
    };
    for (selector, names) in [
        ("status.phase=Pending", vec!["o-1", "w-2"]),
        ("spec.instanceGroupRef.name=workers", vec!["w-1", "w-2"]),
        ("spec.instanceGroupRef.name=workers,status.phase!=Pending", vec!["w-1"]),
    ] {
        let listed = get(&["--field-selector", selector, "-o", "jsonpath={.items[*].metadata.name}"]).await?;
        assert_eq!(listed.split(' ').collect::<Vec<_>>(), names, "{selector}");
    }
    let narrow = "NAME GROUP REASON FROM TO PHASE AUTO-AT BY PROGRESS AGE";
    for (arguments, header) in [
        (vec![], narrow.to_owned()),
        (vec!["-o", "wide"], format!("{narrow} MESSAGE POLICY FROM-NAME TO-NAME")),
    ] {
        let table = get(&arguments).await?;
        let Some(first) = table.lines().next() else {
            bail!("an empty table")
        };
        assert_eq!(first.split_whitespace().collect::<Vec<_>>().join(" "), header);
    }
    let table = get(&["w-1"]).await?;
    let row: Vec<_> = table.lines().nth(1).context("a row")?.split_whitespace().collect();
    assert_eq!(
        row[..7],
        ["w-1", "workers", "ImageDrift", "ami-1", "ami-2", "Succeeded", "alice"]
    );
    Ok(())
}
