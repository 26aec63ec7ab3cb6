//! Ways around the verbs that Kubernetes itself would open.
//!
//! Owns the garbage collector as a tool, and giving oneself a verb.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::ground::{LOCK, made, policed};
use super::people::{GROUPS, OURS, Person, REQUESTS, forbidden, path, taken};
use crate::testbed::installation::HOME;

const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// An owner that is gone makes the garbage collector delete. It has no verb unlock, and gets none by us.
#[tokio::test(flavor = "multi_thread")]
async fn the_garbage_collector_deletes_no_locked_group() -> Result<()> {
    let namespace = "rights-collector";
    let testbed = policed(namespace).await?;
    let tenant = Person::writer(testbed, namespace, "tenant").await?;
    let before = testbed.audit_position()?;
    for (name, lock) in [("locked", "true"), ("open", "false")] {
        made(testbed, namespace, name, json!({"annotations": {LOCK: lock}})).await?;
        let never_was = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "never-was"});
        let at = format!("{}/{name}", path(GROUPS, namespace));
        let owned = json!({"metadata": {"ownerReferences": [never_was]}});
        taken(tenant.ask("PATCH", &at, &owned).await?, "an owner that never was")?;
    }
    testbed
        .until(Duration::from_mins(1), "the garbage collector's tries", async || {
            let tries: Vec<_> = testbed
                .audit_after(before)?
                .into_iter()
                .filter(|event| event["user"]["username"] == COLLECTOR && event["verb"] == "delete")
                .filter(|event| event["objectRef"]["namespace"] == namespace)
                .collect();
            let code = |name: &str| {
                let of = tries.iter().find(|event| event["objectRef"]["name"] == name);
                of.map(|event| event["responseStatus"]["code"].clone())
            };
            let refused = code("locked").context("none at the locked one")?;
            let open = code("open").context("none at the open one")?;
            ensure!(refused == 403 && open == 200, "{refused} and {open}");
            Ok(Some(()))
        })
        .await?;
    taken(
        tenant.get(&format!("{}/locked", path(GROUPS, namespace))).await?,
        "the locked group",
    )?;
    Ok(())
}

/// Kubernetes lets nobody give what they do not have: that holds for our verbs, too.
#[tokio::test(flavor = "multi_thread")]
async fn who_gives_rights_in_a_namespace_gives_no_verb_that_they_lack() -> Result<()> {
    let namespace = "rights-giver";
    let testbed = policed(namespace).await?;
    let giver = Person::named(testbed, "giver@rights-giver").await?;
    let rbac = "rbac.authorization.k8s.io";
    let giver = giver.given(testbed, Some(namespace), "sluice-editor").await?;
    let roles: [&str; 2] = ["roles", "rolebindings"];
    let giver = giver
        .may(testbed, Some(namespace), &[(&["create", "get"], rbac, &roles)])
        .await?;
    for role in ["sluice-approver", "sluice-unlocker"] {
        let binding = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role}, "subjects": [giver.subject()],
        });
        let at = format!("/apis/{rbac}/v1/namespaces/{namespace}/rolebindings");
        forbidden(
            giver.ask("POST", &at, &binding).await?,
            &["attempting to grant RBAC permissions"],
            role,
        )?;
    }
    let role = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "own"},
        "rules": [{"apiGroups": [OURS], "resources": [REQUESTS], "verbs": ["approve"]}],
    });
    let at = format!("/apis/{rbac}/v1/namespaces/{namespace}/roles");
    forbidden(
        giver.ask("POST", &at, &role).await?,
        &["attempting to grant RBAC permissions"],
        "an own role",
    )
}

/// The record that ages of images are counted from is the operator's.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_ages_an_image_by_hand() -> Result<()> {
    let testbed = policed("rights-ages").await?;
    let tenant = Person::named(testbed, "tenant@rights-ages").await?;
    let verbs = ["create", "update", "patch", "delete"];
    let tenant = tenant
        .may(testbed, Some(HOME), &[(&verbs, "", &["configmaps"])])
        .await?;
    let all = format!("/api/v1/namespaces/{HOME}/configmaps");
    let record = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sluice-images"}, "data": {"seen": "2020"},
    });
    let words = [tenant.name.as_str(), "sluice-images", "lacks the verb unlock"];
    forbidden(tenant.ask("POST", &all, &record).await?, &words, "making it")?;
    taken(
        Person::admin(testbed).ask("POST", &all, &record).await?,
        "the administrator",
    )?;
    let at = format!("{all}/sluice-images");
    forbidden(
        tenant.ask("PATCH", &at, &json!({"data": {"seen": "2019"}})).await?,
        &words,
        "changing it",
    )?;
    forbidden(tenant.ask("DELETE", &at, &json!(null)).await?, &words, "deleting it")?;
    // The operator is let pass by the policy; the role that lets it write comes with what it writes.
    let operator = Person::operator(testbed).await?;
    let operator = operator
        .may(testbed, Some(HOME), &[(&["patch"], "", &["configmaps"])])
        .await?;
    taken(
        operator.ask("PATCH", &at, &json!({"data": {"seen": "2026"}})).await?,
        "the operator",
    )?;
    Ok(())
}
