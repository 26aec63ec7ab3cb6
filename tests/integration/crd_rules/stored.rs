//! What was stored before these definitions came, under laxer ones.
//!
//! Owns an own testbed, since it changes the definitions. It must not accept what is newly broken.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice::api::InstanceGroup;

use super::group_table::{self, Case};
use super::request_table;
use super::{GROUPS, REQUESTS, accepted, ask, create, merged, patch, path, refused, try_create};
use crate::definitions;
use crate::testbed::Testbed;

const NAMESPACE: &str = "default";
const FINALIZER: &str = "finalizer.instancegroups.keikoproj.io";

/// The same kinds with no rule and no schema to speak of.
fn lax() -> Result<Vec<Value>> {
    let mut definitions = definitions::manifests()?;
    for definition in &mut definitions {
        let version = definition.pointer_mut("/spec/versions/0").context("a version")?;
        version["schema"] =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        version.as_object_mut().context("an object")?.remove("selectableFields");
    }
    Ok(definitions)
}

/// Every group that the table says is refused, with the case that refuses it.
fn violators() -> Vec<(String, Case, Value)> {
    let mut found = Vec::new();
    for (index, case) in group_table::cases().into_iter().enumerate() {
        for (variant, edit) in case.refused.iter().enumerate() {
            let name = format!("case{index}-{variant}");
            let object = merged(group_table::base(&name, NAMESPACE), edit);
            let one = Case {
                accepted: Vec::new(),
                refused: Vec::new(),
                ..case
            };
            found.push((name, one, object));
        }
    }
    found
}

/// A status as the operator before this one left it.
fn old_status() -> Value {
    json!({
        "currentState": "Ready", "currentMin": 1, "currentMax": 3, "activeScalingGroupName": "old",
        "activeLaunchTemplateName": "old", "latestTemplateVersion": "4", "lifecycle": "normal",
        "configMD5": "0123", "strategyRetryCount": 0, "usingSpotRecommendation": false,
        "provisioner": "eks", "strategy": "rollingUpdate",
        "conditions": [{"type": "NodesReady", "status": "True"}],
    })
}

/// A stored group that breaks rules can be noted on, reported on, edited elsewhere and removed.
async fn goes_on(client: &Client, name: &str, object: &Value) -> Result<()> {
    let write = async |name: &str, body: Value| patch(client, GROUPS, NAMESPACE, name, &body).await;
    accepted(
        write(name, json!({"metadata": {"annotations": {"a": "b"}}})).await?,
        "annotate",
    )?;
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "SpecInvalid", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"status": {"message": "m", "conditions": [{"type": "NodesReady", "status": "True"}, ready]}});
    accepted(write(&format!("{name}/status"), status).await?, "status")?;
    accepted(
        write(
            name,
            json!({"spec": {"strategy": {"rollingUpdate": {"deleteBarePods": true}}}}),
        )
        .await?,
        "an edit of the strategy",
    )?;
    if object.pointer("/spec/eks/configuration").is_some() {
        accepted(
            write(name, json!({"spec": {"eks": {"configuration": {"keyPairName": "k"}}}})).await?,
            "an edit of the configuration",
        )?;
        accepted(
            write(name, json!({"spec": {"eks": {"type": "LaunchTemplate"}}})).await?,
            "an edit of the section",
        )?;
    }
    let at = format!("{}/{name}", path(GROUPS, NAMESPACE));
    accepted(
        ask(client, "DELETE", &at, "application/json", &json!({})).await?,
        "delete",
    )?;
    accepted(
        write(&format!("{name}/status"), json!({"status": {"message": "goes"}})).await?,
        "status while it goes",
    )?;
    accepted(
        write(name, json!({"metadata": {"finalizers": null}})).await?,
        "its finalizer",
    )?;
    match write(name, json!({})).await? {
        Err(refusal) if refusal.code == 404 => Ok(()),
        other => bail!("it is still there: {other:?}"),
    }
}

/// As the operator reads them: one group that no type can hold does not take the others along.
async fn old_statuses_are_read(client: &Client) -> Result<()> {
    let groups: Api<DeserializeGuard<InstanceGroup>> = Api::namespaced(client.clone(), NAMESPACE);
    let mut read = 0;
    for DeserializeGuard(group) in groups.list(&ListParams::default()).await?.items {
        let group = match group {
            Ok(group) => group,
            Err(unreadable) if unreadable.error.contains("2147483648") => continue,
            Err(unreadable) => bail!("{:?}: {}", unreadable.metadata.name, unreadable.error),
        };
        let status = group.status.context("a status")?;
        ensure!(status.current_min == Some(1), "{status:?}");
        let [condition] = status.conditions.as_slice() else {
            bail!("{:?}", status.conditions)
        };
        let words = [
            &condition.type_,
            &condition.status,
            &condition.reason,
            &condition.message,
        ];
        ensure!(words == ["NodesReady", "True", "", ""], "{condition:?}");
        read += 1;
    }
    ensure!(read + 1 == violators().len(), "{read} groups were read");
    Ok(())
}

/// Stored under the lax definitions, then the real ones come.
async fn taken_over(testbed: &Testbed, requests: &[Value]) -> Result<()> {
    definitions::install(testbed, &lax()?).await?;
    let client = testbed.admin();
    for (name, _, mut object) in violators() {
        object["metadata"]["finalizers"] = json!([FINALIZER]);
        accepted(create(&client, GROUPS, &object).await?, &name)?;
        let status = json!({"status": old_status()});
        accepted(
            patch(&client, GROUPS, NAMESPACE, &format!("{name}/status"), &status).await?,
            &name,
        )?;
    }
    for request in requests {
        accepted(create(&client, REQUESTS, request).await?, "a request")?;
    }
    definitions::installed(testbed).await?;
    let broken = merged(
        group_table::base("broken", NAMESPACE),
        &json!({"spec": {"provisioner": "ec2"}}),
    );
    let both = merged(
        request_table::base("both", NAMESPACE),
        &json!({"spec": {"approved": true, "denied": true}}),
    );
    for (plural, object) in [(GROUPS, broken), (REQUESTS, both)] {
        testbed
            .until(Duration::from_secs(30), "the rules to be in force", async || {
                Ok(try_create(&client, plural, &object).await?.is_err().then_some(()))
            })
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_requests_stored_before_the_rules_can_be_kept_and_removed() -> Result<()> {
    let testbed = Testbed::start("stored-rules").await?;
    let request = merged(
        request_table::base("both", NAMESPACE),
        &json!({"spec": {"approved": true, "denied": true}, "metadata": {"finalizers": ["example.com/held"]}}),
    );
    taken_over(&testbed, &[request]).await?;
    let client = testbed.admin();

    old_statuses_are_read(&client).await?;
    let mut wrong = Vec::new();
    for (name, case, object) in violators() {
        if let Err(problem) = goes_on(&client, &name, &object).await {
            wrong.push(format!("{}: {}: {problem:#}", case.field, case.message));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");

    let write = async |name: &str, body: Value| patch(&client, REQUESTS, NAMESPACE, name, &body).await;
    accepted(
        write("both", json!({"metadata": {"annotations": {"a": "b"}}})).await?,
        "annotate",
    )?;
    accepted(
        write("both/status", json!({"status": {"phase": "Denied"}})).await?,
        "status",
    )?;
    let at = format!("{}/both", path(REQUESTS, NAMESPACE));
    accepted(
        ask(&client, "DELETE", &at, "application/json", &json!({})).await?,
        "delete",
    )?;
    accepted(
        write("both", json!({"metadata": {"finalizers": null}})).await?,
        "its finalizer",
    )?;
    testbed.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_group_may_be_mended_in_steps_and_not_broken_further() -> Result<()> {
    let testbed = Testbed::start("stored-mended").await?;
    definitions::install(&testbed, &lax()?).await?;
    let client = testbed.admin();
    let mut group = group_table::base("old", NAMESPACE);
    group["spec"] = json!({
        "provisioner": "nope", "strategy": {"type": "x", "rollingUpdate": {"maxUnavailable": "a"}},
        "eks": {"minSize": 5, "maxSize": 1, "configuration": {
            "clusterName": "c", "image": "bad", "metadataOptions": {"httpTokens": "z", "httpPutHopLimit": 99},
            "volumes": [{"name": "a", "type": "gp2", "size": 1, "iops": 5}],
            "placement": {"tenancy": "z"}, "taints": [{"key": "a", "effect": "zz"}],
        }},
    });
    accepted(create(&client, GROUPS, &group).await?, "old")?;
    let both = merged(
        request_table::base("both", NAMESPACE),
        &json!({"spec": {"approved": true, "denied": true}}),
    );
    definitions::installed(&testbed).await?;
    testbed
        .until(Duration::from_secs(30), "the rules to be in force", async || {
            let broken = merged(
                group_table::base("broken", NAMESPACE),
                &json!({"spec": {"provisioner": "ec2"}}),
            );
            let refused = try_create(&client, GROUPS, &broken).await?.is_err();
            Ok((refused && try_create(&client, REQUESTS, &both).await?.is_err()).then_some(()))
        })
        .await?;
    let write = async |spec: Value| patch(&client, GROUPS, NAMESPACE, "old", &json!({"spec": spec})).await;
    let configuration = |edit: Value| json!({"eks": {"configuration": edit}});

    refused(
        write(configuration(json!({"image": "worse"}))).await?,
        "image must be an AMI id",
        "worse",
    )?;
    accepted(
        write(configuration(json!({"image": "ami-1"}))).await?,
        "one field mended",
    )?;
    refused(
        write(configuration(json!({"image": "bad"}))).await?,
        "image must be an AMI id",
        "broken again",
    )?;
    accepted(write(json!({"eks": {"minSize": 1}})).await?, "the sizes mended")?;
    refused(
        write(json!({"eks": {"minSize": 5}})).await?,
        "eks.minSize must not exceed",
        "the sizes broken again",
    )?;
    let volumes = json!({"volumes": [{"name": "a", "type": "gp2", "size": 2, "iops": 5}]});
    refused(
        write(configuration(volumes)).await?,
        "iops of a volume needs type",
        "a broken volume edited",
    )?;
    refused(
        write(configuration(
            json!({"placement": {"hostResourceGroupArn": "arn:aws:a:b:c:d"}}),
        ))
        .await?,
        "needs placement.tenancy host",
        "another rule of the same object",
    )?;
    accepted(write(json!({"provisioner": "eks"})).await?, "the provisioner mended")?;
    testbed.stop().await
}
