//! Deleting a request that somebody decided on, or that is under way, needs the verb approve.
//!
//! Owns each phase, and who is exempt. Whole collections are in `collections`.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{FINALIZER, enter, made, make_namespace, opened, policed, request};
use super::people::{GROUPS, OURS, Person, REQUESTS, forbidden, path, taken};
use crate::testbed::Testbed;

const LACKS: &str = "lacks the verb approve on instancegroupupgraderequests.instancemgr.keikoproj.io";
const SOON: Duration = Duration::from_secs(40);

/// Phases in which a deletion lifts a block, stops a rollout or takes a decision back.
const GUARDED: [&str; 5] = ["Approved", "InProgress", "Denied", "Failed", "Cancelled"];
const FREE: [&str; 3] = ["Pending", "Succeeded", "Superseded"];

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_not_deleted_without_the_verb_approve() -> Result<()> {
    let namespace = "rights-delete";
    let testbed = policed(namespace).await?;
    let bob = Person::writer(testbed, namespace, "bob").await?;
    let alice = Person::named(testbed, "alice@rights-delete").await?;
    let alice = alice.given(testbed, Some(namespace), "sluice-approver").await?;
    for phase in GUARDED.into_iter().chain(FREE) {
        let name = phase.to_lowercase();
        opened(testbed, namespace, &name, Some(phase)).await?;
        let at = format!("{}/{name}", path(REQUESTS, namespace));
        let answer = bob.ask("DELETE", &at, &Value::Null).await?;
        if FREE.contains(&phase) {
            taken(answer, phase)?;
        } else {
            forbidden(answer, &[&bob.name, LACKS, namespace, &name, phase], phase)?;
            taken(alice.ask("DELETE", &at, &Value::Null).await?, phase)?;
        }
    }
    // Before a status was written, it waits.
    opened(testbed, namespace, "new", None).await?;
    taken(
        bob.ask("DELETE", &format!("{}/new", path(REQUESTS, namespace)), &Value::Null)
            .await?,
        "new",
    )?;
    Ok(())
}

/// The decision counts, not that the operator has seen it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_decision_is_not_deleted_either() -> Result<()> {
    let namespace = "rights-fresh";
    let testbed = policed(namespace).await?;
    let bob = Person::writer(testbed, namespace, "bob").await?;
    for (phase, suffix) in [(None, "new"), (Some("Pending"), "pending")] {
        for decision in ["approved", "denied", "cancelled"] {
            let name = format!("{decision}-{suffix}");
            opened(testbed, namespace, &name, phase).await?;
            let at = format!("{}/{name}", path(REQUESTS, namespace));
            let decided = json!({"spec": {decision: true}});
            taken(Person::admin(testbed).ask("PATCH", &at, &decided).await?, decision)?;
            forbidden(bob.ask("DELETE", &at, &Value::Null).await?, &[LACKS, &name], &name)?;
        }
    }
    Ok(())
}

/// As the operator does it: its finalizer first, then exactly what it saw. That it needs no verb approve for that is shown in
/// `older_servers`, where it holds none.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_prunes_in_every_phase() -> Result<()> {
    let namespace = "rights-prune";
    let testbed = policed(namespace).await?;
    let operator = Person::operator(testbed).await?;
    for phase in GUARDED.into_iter().chain(FREE) {
        let name = phase.to_lowercase();
        let mut object = request(&name);
        object["metadata"]["finalizers"] = json!([FINALIZER]);
        taken(operator.ask("POST", &path(REQUESTS, namespace), &object).await?, phase)?;
        let held = enter(testbed, namespace, &name, phase).await?;
        let at = format!("{}/{name}", path(REQUESTS, namespace));
        let release = json!({"metadata": {"resourceVersion": held["metadata"]["resourceVersion"], "finalizers": []}});
        let released = taken(operator.ask("PATCH", &at, &release).await?, phase)?;
        let exactly = json!({"preconditions": {
            "uid": released["metadata"]["uid"], "resourceVersion": released["metadata"]["resourceVersion"],
        }});
        taken(operator.ask("DELETE", &at, &exactly).await?, phase)?;
    }
    Ok(())
}

/// A request of this group, as the operator opens it, but for its finalizer.
fn owned_by(group: &Value, name: &str) -> Value {
    let mut object = request(name);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": format!("{OURS}/v1alpha1"), "kind": "InstanceGroup", "name": group["metadata"]["name"],
        "uid": group["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    object
}

async fn gone(testbed: &Testbed, path: &str) -> Result<()> {
    let admin = Person::admin(testbed);
    testbed
        .until(SOON, &format!("{path} to be gone"), async || {
            match admin.get(path).await? {
                Err(refusal) if refusal.code == 404 => Ok(Some(())),
                Err(refusal) => anyhow::bail!("{}", refusal.text),
                Ok(there) => anyhow::bail!("there: {there}"),
            }
        })
        .await
}

/// The garbage collector takes the requests of a group along, whatever was decided on them.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_group_takes_its_requests_along() -> Result<()> {
    let namespace = "rights-owned";
    let testbed = policed(namespace).await?;
    let group = made(testbed, namespace, "workers", json!({})).await?;
    let operator = Person::operator(testbed).await?;
    for phase in GUARDED {
        let object = owned_by(&group, &phase.to_lowercase());
        taken(operator.ask("POST", &path(REQUESTS, namespace), &object).await?, phase)?;
        enter(testbed, namespace, &phase.to_lowercase(), phase).await?;
    }
    // The editor who deletes the group holds no right on requests at all.
    let editor = Person::named(testbed, "editor@rights-owned").await?;
    let editor = editor.given(testbed, Some(namespace), "sluice-editor").await?;
    let at = format!("{}/workers", path(GROUPS, namespace));
    let foreground = json!({"propagationPolicy": "Foreground"});
    taken(editor.ask("DELETE", &at, &foreground).await?, "the group")?;
    gone(testbed, &at).await?;
    let left = taken(operator.get(&path(REQUESTS, namespace)).await?, "requests")?;
    ensure!(left["items"].as_array().is_some_and(Vec::is_empty), "{left}");
    Ok(())
}

/// The other ways of deleting: a group that leaves its requests behind, a request in the foreground. The garbage collector
/// takes owners and its own finalizers off.
#[tokio::test(flavor = "multi_thread")]
async fn the_garbage_collector_may_let_go() -> Result<()> {
    let namespace = "rights-orphans";
    let testbed = policed(namespace).await?;
    let group = made(testbed, namespace, "workers", json!({})).await?;
    let admin = Person::admin(testbed);
    let operator = Person::operator(testbed).await?;
    taken(
        operator
            .ask("POST", &path(REQUESTS, namespace), &owned_by(&group, "left"))
            .await?,
        "left",
    )?;
    enter(testbed, namespace, "left", "Denied").await?;
    let at = format!("{}/workers", path(GROUPS, namespace));
    let orphan = json!({"propagationPolicy": "Orphan"});
    taken(admin.ask("DELETE", &at, &orphan).await?, "the group")?;
    gone(testbed, &at).await?;
    let at = format!("{}/left", path(REQUESTS, namespace));
    let left = taken(admin.get(&at).await?, "the request")?;
    ensure!(left["metadata"]["ownerReferences"].is_null(), "{left}");
    let foreground = json!({"propagationPolicy": "Foreground"});
    taken(admin.ask("DELETE", &at, &foreground).await?, "the request")?;
    gone(testbed, &at).await
}

/// A namespace goes with all that is in it: decided requests, locked groups, and settings if they are there.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_takes_everything_along() -> Result<()> {
    let namespace = "rights-whole";
    let testbed = policed("rights-whole-owner").await?;
    make_namespace(testbed, namespace).await?;
    made(
        testbed,
        namespace,
        "locked",
        json!({"annotations": {super::ground::LOCK: "true"}}),
    )
    .await?;
    for phase in GUARDED {
        opened(testbed, namespace, &phase.to_lowercase(), Some(phase)).await?;
    }
    let tenant = Person::named(testbed, "owner@rights-whole").await?;
    let tenant = tenant
        .may(testbed, None, &[(&["get", "delete"], "", &["namespaces"])])
        .await?;
    let at = format!("/api/v1/namespaces/{namespace}");
    taken(tenant.ask("DELETE", &at, &Value::Null).await?, "the namespace")?;
    gone(testbed, &at).await
}
