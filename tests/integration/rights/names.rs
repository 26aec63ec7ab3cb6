//! The name beside a decision: written by the API server, and never another than the caller's.
//!
//! Owns servers that can write it. Those that cannot are in `older_servers`.

use anyhow::{Result, ensure};
use serde_json::json;

use super::ground::{enter, opened, policed, request};
use super::people::{Person, REQUESTS, forbidden, path, refused, taken};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_writes_who_decides() -> Result<()> {
    let namespace = "rights-names";
    let testbed = policed(namespace).await?;
    let mut people = Vec::new();
    for name in ["alice", "bob"] {
        let person = Person::named(testbed, &format!("{name}@{namespace}")).await?;
        people.push(person.given(testbed, Some(namespace), "sluice-approver").await?);
    }
    let [alice, bob] = &people[..] else { unreachable!() };
    opened(testbed, namespace, "r", Some("Pending")).await?;
    let at = format!("{}/r", path(REQUESTS, namespace));
    // Each decision in turn, by turns: it is always the last one who is named.
    for (person, decision, phase) in [
        (alice, json!({"approved": true}), "Approved"),
        (bob, json!({"approved": false}), "Pending"),
        (alice, json!({"urgent": true}), "Pending"),
        (bob, json!({"approved": true}), "InProgress"),
        (alice, json!({"urgent": false}), "InProgress"),
        (bob, json!({"cancelled": true}), "InProgress"),
    ] {
        let decided = person.ask("PATCH", &at, &json!({"spec": decision})).await?;
        let decided = taken(decided, &format!("{}: {decision}", person.name))?;
        ensure!(
            decided["spec"]["approvedBy"] == person.name.as_str(),
            "{decision}: {}",
            decided["spec"]
        );
        enter(testbed, namespace, "r", phase).await?;
    }
    // The whole object, as kubectl edit sends it, with the name that was read.
    opened(testbed, namespace, "whole", Some("Pending")).await?;
    let at = format!("{}/whole", path(REQUESTS, namespace));
    let mut whole = taken(
        alice.ask("PATCH", &at, &json!({"spec": {"approved": true}})).await?,
        "alice",
    )?;
    whole["spec"]["approved"] = false.into();
    whole["spec"]["denied"] = true.into();
    let denied = taken(bob.ask("PUT", &at, &whole).await?, "bob")?;
    ensure!(denied["spec"]["approvedBy"] == bob.name.as_str(), "{}", denied["spec"]);
    // A reason alone names nobody else.
    let reason = json!({"spec": {"decisionReason": "too early"}});
    let explained = taken(alice.ask("PATCH", &at, &reason).await?, "alice explains")?;
    ensure!(
        explained["spec"]["approvedBy"] == bob.name.as_str(),
        "{}",
        explained["spec"]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_the_callers_is_refused() -> Result<()> {
    let namespace = "rights-forged";
    let testbed = policed(namespace).await?;
    let alice = Person::named(testbed, "alice@rights-forged").await?;
    let alice = alice.given(testbed, Some(namespace), "sluice-approver").await?;
    let before = opened(testbed, namespace, "r", Some("Pending")).await?;
    let at = format!("{}/r", path(REQUESTS, namespace));
    for decision in ["approved", "denied", "cancelled", "urgent"] {
        let forged = json!({"spec": {decision: true, "approvedBy": "carol"}});
        let words = ["says \"carol\"", "user \"alice@rights-forged\" decides", "leave it out"];
        forbidden(alice.ask("PATCH", &at, &forged).await?, &words, decision)?;
    }
    // Without a decision the definition itself refuses, whoever is named.
    for name in ["carol", alice.name.as_str()] {
        let named = json!({"spec": {"approvedBy": name}});
        refused(
            alice.ask("PATCH", &at, &named).await?,
            422,
            &["approvedBy changes only together"],
            name,
        )?;
    }
    ensure!(taken(alice.get(&at).await?, "reading")? == before);
    let honest = json!({"spec": {"approved": true, "approvedBy": alice.name}});
    taken(alice.ask("PATCH", &at, &honest).await?, "her own name")?;
    Ok(())
}

/// The one who makes requests cannot slip a decision, or a name, in with one.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_comes_decided_is_named_too() -> Result<()> {
    let namespace = "rights-born";
    let testbed = policed(namespace).await?;
    let operator = Person::operator(testbed).await?;
    let all = path(REQUESTS, namespace);
    let mut born = request("decided");
    born["spec"]["approved"] = true.into();
    let made = taken(operator.ask("POST", &all, &born).await?, "decided at birth")?;
    ensure!(made["spec"]["approvedBy"] == operator.name.as_str(), "{}", made["spec"]);
    let mut forged = request("forged");
    forged["spec"]["approved"] = true.into();
    forged["spec"]["approvedBy"] = "alice".into();
    forbidden(
        operator.ask("POST", &all, &forged).await?,
        &["says \"alice\""],
        "forged at birth",
    )?;
    let mut named = request("named");
    named["spec"]["approvedBy"] = operator.name.clone().into();
    let words = ["changes only together with approved"];
    forbidden(
        operator.ask("POST", &all, &named).await?,
        &words,
        "a name without a decision",
    )
}
