//! Proves the control plane: what it serves, refuses, records and cleans up. It must not look at AWS.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{SOON, config_map, gone};
use crate::testbed::{Testbed, shared};

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
    maps.delete("owner", &DeleteParams::default()).await?;
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
    // Other tests may have a release there.
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    assert!(listed.is_array(), "{listed}");
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
