//! What of a request is the operator's: that it exists, what it is about, and whose it is (case D33).
//!
//! Owns the writes of people who hold every right that RBAC knows, approve included.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{FINALIZER, opened, policed, request};
use super::people::{OPERATOR, Person, REQUESTS, forbidden, path, refused, taken};
use crate::testbed::Testbed;

/// Somebody who may write requests, and one who may approve them as well.
async fn insiders(testbed: &Testbed, namespace: &str) -> Result<[Person; 2]> {
    let editor = Person::writer(testbed, namespace, "editor").await?;
    let approver = Person::writer(testbed, namespace, "approver").await?;
    let approver = approver.given(testbed, Some(namespace), "sluice-approver").await?;
    Ok([editor, approver])
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_operator_makes_a_request() -> Result<()> {
    let namespace = "rights-make";
    let testbed = policed(namespace).await?;
    let [editor, approver] = insiders(testbed, namespace).await?;
    let all = path(REQUESTS, namespace);
    let mut decided = request("decided");
    decided["spec"]["approved"] = true.into();
    let mut named = decided.clone();
    named["spec"]["approvedBy"] = approver.name.clone().into();
    for person in [editor, approver, Person::admin(testbed)] {
        let words = [person.name.as_str(), "only the operator does", OPERATOR];
        for made in [&request("plain"), &decided, &named] {
            let what = format!("{}: {}", person.name, made["spec"]);
            forbidden(person.ask("POST", &all, made).await?, &words, &what)?;
            let at = format!(
                "{all}/{}?fieldManager=x",
                made["metadata"]["name"].as_str().unwrap_or_default()
            );
            let applied = person.send("PATCH", &at, "application/apply-patch+yaml", made).await?;
            forbidden(applied, &words, &what)?;
        }
    }
    let operator = Person::operator(testbed).await?;
    taken(operator.ask("POST", &all, &request("plain")).await?, "the operator")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_references_finalizers_and_our_labels_are_the_operators() -> Result<()> {
    let namespace = "rights-metadata";
    let testbed = policed(namespace).await?;
    let insiders = insiders(testbed, namespace).await?;
    let operator = Person::operator(testbed).await?;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone", "controller": true});
    let mut with_all = request("r");
    with_all["metadata"]["finalizers"] = json!([FINALIZER]);
    with_all["metadata"]["ownerReferences"] = json!([owner]);
    let other_owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"});
    let label = |name: &str, value: Value| json!({"labels": {format!("instancemgr.keikoproj.io/{name}"): value}});
    let all = path(REQUESTS, namespace);
    // A garbage collector would take a request with an owner that never was; it is no part of this.
    let bare = taken(operator.ask("POST", &all, &request("bare")).await?, "bare")?;
    for (what, change) in [
        ("an owner", json!({"ownerReferences": [other_owner]})),
        ("a finalizer", json!({"finalizers": ["example.com/mine"]})),
        ("another value", label("tier", "dev".into())),
        ("a removed label", label("tier", Value::Null)),
        ("an added label", label("added", "".into())),
        ("all labels gone", json!({"labels": null})),
    ] {
        let patch = json!({"metadata": change});
        for person in &insiders {
            let words = [
                person.name.as_str(),
                "belong to the operator",
                OPERATOR,
                "rights-metadata/bare",
            ];
            let answer = person.ask("PATCH", &format!("{all}/bare"), &patch).await?;
            forbidden(answer, &words, &format!("{}: {what}", person.name))?;
        }
        let admin = Person::admin(testbed)
            .ask("PATCH", &format!("{all}/bare"), &patch)
            .await?;
        forbidden(admin, &["user \"admin\"", "belong to the operator"], what)?;
        let dry = format!("{all}/bare?dryRun=All");
        taken(
            operator.ask("PATCH", &dry, &patch).await?,
            &format!("the operator: {what}"),
        )?;
    }
    ensure!(taken(operator.get(&format!("{all}/bare")).await?, "reading")? == bare);
    // Taking away what the operator put there.
    with_all["metadata"]["ownerReferences"] = json!([]);
    with_all["metadata"]["name"] = "held".into();
    taken(operator.ask("POST", &all, &with_all).await?, "held")?;
    for person in &insiders {
        let let_go = json!({"metadata": {"finalizers": null}});
        let answer = person.ask("PATCH", &format!("{all}/held"), &let_go).await?;
        forbidden(answer, &["belong to the operator"], "letting go")?;
    }
    Ok(())
}

/// The definition itself refuses: approvers get no further than editors.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_changes_what_a_request_is_about() -> Result<()> {
    let namespace = "rights-about";
    let testbed = policed(namespace).await?;
    let [_, approver] = insiders(testbed, namespace).await?;
    let before = opened(testbed, namespace, "r", Some("Pending")).await?;
    let at = format!("{}/r", path(REQUESTS, namespace));
    for (change, word) in [
        (json!({"target": {"imageId": "ami-9"}}), "target cannot be changed"),
        (json!({"target": {"imageId": null}}), "target cannot be changed"),
        (
            json!({"target": {"removedSubnets": ["subnet-1"]}}),
            "target cannot be changed",
        ),
        (json!({"from": {"imageId": "ami-9"}}), "from cannot be changed"),
        (json!({"from": null}), "from cannot be changed"),
        (
            json!({"instanceGroupRef": {"name": "others"}}),
            "instanceGroupRef cannot be changed",
        ),
        (json!({"reason": "Adoption"}), "reason cannot be changed"),
    ] {
        let mut decided = change.clone();
        decided["approved"] = true.into();
        for spec in [change, decided] {
            let what = spec.to_string();
            let answer = approver.ask("PATCH", &at, &json!({"spec": spec})).await?;
            refused(answer, 422, &[word], &what)?;
        }
    }
    ensure!(taken(approver.get(&at).await?, "reading")? == before);
    Ok(())
}

/// A status is the operator's: neither an editor nor an approver may write one, of whatever object.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_a_status_and_a_status_write_changes_nothing_else() -> Result<()> {
    let namespace = "rights-status";
    let testbed = policed(namespace).await?;
    let approver = Person::named(testbed, "insider@rights-status").await?;
    let mut insider = approver;
    for role in ["sluice-viewer", "sluice-editor", "sluice-approver", "sluice-unlocker"] {
        insider = insider.given(testbed, Some(namespace), role).await?;
    }
    opened(testbed, namespace, "r", Some("InProgress")).await?;
    let at = format!("{}/r/status", path(REQUESTS, namespace));
    let done = json!({"status": {"phase": "Succeeded"}});
    forbidden(
        insider.ask("PATCH", &at, &done).await?,
        &["cannot patch resource", "/status"],
        "a status",
    )?;
    // Whoever has the right by other ways gets the status and nothing else by it.
    let sneaky = json!({"status": {"phase": "Approved"}, "spec": {"approved": true}, "metadata": {"labels": null}});
    let written = taken(
        Person::admin(testbed).ask("PATCH", &at, &sneaky).await?,
        "a status by force",
    )?;
    ensure!(
        written["spec"]["approved"] == false && written["metadata"]["labels"] == request("r")["metadata"]["labels"],
        "{written}"
    );
    Ok(())
}
