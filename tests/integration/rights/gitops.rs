//! A `GitOps` tool that applies manifests under a service account of its own (case C11 and D28).
//!
//! Owns server-side apply with force, as such tools do it, and the refusals that end up in their status.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{LOCK, group, made, opened, policed, request};
use super::people::{Answer, GROUPS, OURS, Person, REQUESTS, forbidden, path, taken};
use crate::testbed::Testbed;

async fn tool(testbed: &Testbed, namespace: &str) -> Result<Person> {
    let tool = Person::service_account(testbed, namespace, "gitops").await?;
    tool.given(testbed, Some(namespace), "sluice-editor").await
}

async fn apply(tool: &Person, plural: &str, namespace: &str, manifest: &Value) -> Result<Answer> {
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let at = format!("{}/{name}?fieldManager=gitops&force=true", path(plural, namespace));
    tool.send("PATCH", &at, "application/apply-patch+yaml", manifest).await
}

fn locked_as(value: Option<&str>) -> Value {
    let mut manifest = group("workers");
    if let Some(value) = value {
        manifest["metadata"]["annotations"][LOCK] = value.into();
    }
    manifest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_without_the_lock_is_refused_from_an_account_without_unlock() -> Result<()> {
    let namespace = "rights-gitops";
    let testbed = policed(namespace).await?;
    let tool = tool(testbed, namespace).await?;
    taken(
        apply(&tool, GROUPS, namespace, &locked_as(Some("true"))).await?,
        "the first time",
    )?;
    taken(
        apply(&tool, GROUPS, namespace, &locked_as(Some("true"))).await?,
        "again",
    )?;
    let words = [
        tool.name.as_str(),
        "may not unlock instance group rights-gitops/workers",
        "lacks the verb unlock",
        "applying a manifest that had it without it",
    ];
    // The annotation went from the manifest, or says false there: both unlock.
    for manifest in [locked_as(None), locked_as(Some("false"))] {
        forbidden(
            apply(&tool, GROUPS, namespace, &manifest).await?,
            &words,
            "without the lock",
        )?;
    }
    let now = taken(
        tool.get(&format!("{}/workers", path(GROUPS, namespace))).await?,
        "reading",
    )?;
    ensure!(now["metadata"]["annotations"][LOCK] == "true", "{}", now["metadata"]);
    // With the verb it is done.
    let tool = tool.given(testbed, Some(namespace), "sluice-unlocker").await?;
    taken(
        apply(&tool, GROUPS, namespace, &locked_as(None)).await?,
        "with the verb",
    )?;
    Ok(())
}

/// Somebody pulled the brake by hand: the tool neither takes it off nor gets stuck, unless its manifest says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_put_on_by_hand_outlives_the_tool() -> Result<()> {
    let namespace = "rights-brake";
    let testbed = policed(namespace).await?;
    let tool = tool(testbed, namespace).await?;
    taken(
        apply(&tool, GROUPS, namespace, &locked_as(None)).await?,
        "the first time",
    )?;
    let person = Person::writer(testbed, namespace, "oncall").await?;
    let at = format!("{}/workers", path(GROUPS, namespace));
    let brake = json!({"metadata": {"annotations": {LOCK: "true"}}});
    taken(person.ask("PATCH", &at, &brake).await?, "the brake")?;
    let applied = taken(apply(&tool, GROUPS, namespace, &locked_as(None)).await?, "again")?;
    ensure!(
        applied["metadata"]["annotations"][LOCK] == "true",
        "{}",
        applied["metadata"]
    );
    let answer = apply(&tool, GROUPS, namespace, &locked_as(Some("false"))).await?;
    forbidden(answer, &["lacks the verb unlock"], "against the brake")
}

/// A request from a manifest in Git: the account has no right to requests, and with all of RBAC's it has no verb approve.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_from_a_manifest_decides_nothing() -> Result<()> {
    let namespace = "rights-exported";
    let testbed = policed(namespace).await?;
    let tool = tool(testbed, namespace).await?;
    opened(testbed, namespace, "r", Some("Pending")).await?;
    let mut exported = request("r");
    exported["spec"]["approved"] = false.into();
    let answer = apply(&tool, REQUESTS, namespace, &exported).await?;
    forbidden(answer, &["cannot patch resource"], "no right to requests")?;
    let tool = tool
        .may(testbed, Some(namespace), &[(&["create", "patch"], OURS, &[REQUESTS])])
        .await?;
    taken(apply(&tool, REQUESTS, namespace, &exported).await?, "nothing changes")?;
    let at = format!("{}/r", path(REQUESTS, namespace));
    let approval = json!({"spec": {"approved": true}});
    taken(Person::admin(testbed).ask("PATCH", &at, &approval).await?, "a person")?;
    let words = [tool.name.as_str(), "lacks the verb approve"];
    forbidden(
        apply(&tool, REQUESTS, namespace, &exported).await?,
        &words,
        "a withdrawal by Git",
    )?;
    // Put back after it is gone, it is no request of the operator's.
    let gone = Person::operator(testbed).await?;
    taken(gone.ask("DELETE", &at, &Value::Null).await?, "pruned")?;
    forbidden(
        apply(&tool, REQUESTS, namespace, &exported).await?,
        &["only the operator does"],
        "put back",
    )
}

/// The tool may not prune what is locked, as it would when a manifest goes from Git.
#[tokio::test(flavor = "multi_thread")]
async fn pruning_a_locked_group_is_refused_from_an_account_without_unlock() -> Result<()> {
    let namespace = "rights-gitops-prune";
    let testbed = policed(namespace).await?;
    let tool = tool(testbed, namespace).await?;
    made(testbed, namespace, "workers", json!({"annotations": {LOCK: "true"}})).await?;
    let at = format!("{}/workers", path(GROUPS, namespace));
    let words = [tool.name.as_str(), "may not delete", "lacks the verb unlock"];
    forbidden(tool.ask("DELETE", &at, &Value::Null).await?, &words, "pruning")
}
