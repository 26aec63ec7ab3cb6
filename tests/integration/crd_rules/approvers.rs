//! Two people who decide on one request.
//!
//! Owns order and simultaneity. It must not lean on admission policies: the names are typed by the people themselves.

use anyhow::{Context, Result, ensure};
use kube::Client;
use serde_json::{Value, json};

use super::request_table::{EXCLUSIVE, NAME_ALONE};
use super::stored_request::Stored;
use super::{Answer, REQUESTS, accepted, ask, path, prepared, refused};
use crate::testbed::Testbed;

/// Both may write requests of the namespace.
async fn approvers(testbed: &Testbed, namespace: &str) -> Result<[Client; 2]> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "approver", "namespace": namespace},
        "rules": [{"apiGroups": ["instancemgr.keikoproj.io"], "resources": [REQUESTS], "verbs": ["*"]}],
    });
    let user = |name: &str| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "approver", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "approver"},
        "subjects": [user("alice"), user("bob")],
    });
    let rights = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    for (plural, object) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("{rights}/{plural}");
        accepted(
            ask(&testbed.admin(), "POST", &path, "application/json", &object).await?,
            plural,
        )?;
    }
    let people = [
        testbed.client_for_user("alice").await?,
        testbed.client_for_user("bob").await?,
    ];
    for client in &people {
        // The authorizer learns of a binding from a watch.
        let read = axum::http::Request::get(path(REQUESTS, namespace)).body(Vec::new())?;
        let (parts, body) = read.into_parts();
        testbed
            .until(std::time::Duration::from_secs(30), "the binding to count", async || {
                let again = axum::http::Request::from_parts(parts.clone(), body.clone());
                Ok(Some(client.request::<Value>(again).await?))
            })
            .await?;
    }
    Ok(people)
}

async fn decide(client: &Client, request: &Stored, spec: Value) -> Result<Answer> {
    super::patch(
        client,
        REQUESTS,
        &request.namespace,
        &request.name,
        &json!({"spec": spec}),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_approvers_the_first_write_wins() -> Result<()> {
    let testbed = prepared("rules-approvers").await?;
    let [alice, bob] = approvers(testbed, "rules-approvers").await?;
    let open = async |name: &str| Stored::new(testbed, "rules-approvers", name, &json!({}), Some("Pending")).await;

    let approved = open("approved").await?;
    accepted(
        decide(&alice, &approved, json!({"approved": true, "approvedBy": "alice"})).await?,
        "alice",
    )?;
    let before = approved.read().await?;
    for (decision, reason) in [
        (json!({"denied": true, "approvedBy": "bob"}), EXCLUSIVE),
        (json!({"approved": true, "approvedBy": "bob"}), NAME_ALONE),
    ] {
        refused(
            decide(&bob, &approved, decision).await?,
            reason,
            "bob after alice's approval",
        )?;
    }
    assert_eq!(approved.read().await?, before);

    let denied = open("denied").await?;
    accepted(
        decide(&alice, &denied, json!({"denied": true, "approvedBy": "alice"})).await?,
        "alice",
    )?;
    let before = denied.read().await?;
    refused(
        decide(&bob, &denied, json!({"approved": true, "approvedBy": "bob"})).await?,
        EXCLUSIVE,
        "bob after alice's denial",
    )?;
    assert_eq!(denied.read().await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn approvers_at_the_same_moment_never_both_win() -> Result<()> {
    let testbed = prepared("rules-race").await?;
    let [alice, bob] = approvers(testbed, "rules-race").await?;
    let approve = |name: &str| json!({"approved": true, "approvedBy": name});
    let deny = json!({"denied": true, "approvedBy": "bob"});
    for round in 0..20 {
        let opposed = round % 2 == 0;
        let (second, reason) = if opposed {
            (deny.clone(), EXCLUSIVE)
        } else {
            (approve("bob"), NAME_ALONE)
        };
        let request = Stored::new(testbed, "rules-race", &format!("r{round}"), &json!({}), Some("Pending")).await?;
        let (first, second) = tokio::try_join!(
            decide(&alice, &request, approve("alice")),
            decide(&bob, &request, second),
        )?;
        let winner = match (first, second) {
            (Ok(_), loser @ Err(_)) => {
                refused(loser, reason, "bob")?;
                "alice"
            }
            (loser @ Err(_), Ok(_)) => {
                refused(loser, reason, "alice")?;
                "bob"
            }
            both => anyhow::bail!("round {round}: {both:?}"),
        };
        let spec = &request.read().await?["spec"];
        ensure!(
            spec["approvedBy"] == winner,
            "round {round}: {winner} won, and {spec} is stored"
        );
        let denied = opposed && winner == "bob";
        ensure!(
            spec["approved"] == !denied && spec["denied"] == denied,
            "round {round}: {spec}"
        );
    }
    Ok(())
}

/// `kubectl edit` and `kubectl replace` send what was read: the second is told that it has changed since.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_on_what_was_read_before_another_decision_is_a_conflict() -> Result<()> {
    let testbed = prepared("rules-stale").await?;
    let [alice, bob] = approvers(testbed, "rules-stale").await?;
    let request = Stored::new(testbed, "rules-stale", "r", &json!({}), Some("Pending")).await?;
    let mut read = request.read().await?;
    accepted(
        decide(&alice, &request, json!({"approved": true, "approvedBy": "alice"})).await?,
        "alice",
    )?;
    let spec = read["spec"].as_object_mut().context("a spec")?;
    spec.insert("denied".into(), true.into());
    spec.insert("approvedBy".into(), "bob".into());
    let path = format!("{}/r", path(REQUESTS, "rules-stale"));
    let Err(refusal) = ask(&bob, "PUT", &path, "application/json", &read).await? else {
        panic!("a stale write was accepted")
    };
    assert_eq!(refusal.code, 409, "{refusal:?}");
    assert!(refusal.says("the object has been modified"), "{refusal:?}");
    assert_eq!(request.read().await?["spec"]["approvedBy"], "alice");
    Ok(())
}
