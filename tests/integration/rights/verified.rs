//! What the operator records of who decided, and whether it vouches for it (P12).
//!
//! Owns an operator at work, with and without the policies that write and check the name.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice::api::upgrade_request::Phase;
use sluice::clock;

use super::people::{Person, REQUESTS, path, taken};
use crate::gate::ground::{Ground, SOON};
use crate::running::Running;
use crate::testbed::Testbed;

/// A request that is as old as the policies may have been decided on before they held; so wait until they are older.
async fn in_force_for_a_while(testbed: &Testbed) -> Result<()> {
    let binding = ["get", "mutatingadmissionpolicybinding", "sluice-stamp", "-o", "json"];
    let binding: Value = serde_json::from_str(&testbed.kubectl(&binding).await?.success()?)?;
    let made: Timestamp = binding["metadata"]["creationTimestamp"]
        .as_str()
        .context("a time")?
        .parse()?;
    testbed
        .until(SOON, "the policies to be older than a new request", async || {
            let age = clock::now().duration_since(made);
            Ok((age > SignedDuration::from_secs(7)).then_some(()))
        })
        .await
}

/// Denies the request that is open, and answers what the operator recorded of it.
async fn denied(ground: &Ground<'_>, person: &Person) -> Result<Value> {
    let request = ground.until_request(Phase::Pending).await?;
    let name = request.metadata.name.context("a name")?;
    let at = format!("{}/{name}", path(REQUESTS, &ground.name));
    taken(
        person.ask("PATCH", &at, &json!({"spec": {"denied": true}})).await?,
        "a denial",
    )?;
    let admin = Person::admin(ground.testbed);
    ground
        .testbed
        .until(SOON, "the record of the denial", async || {
            let request = taken(admin.get(&at).await?, "reading")?;
            let decisions = request["status"]["decisions"].as_array().cloned().unwrap_or_default();
            ensure!(request["status"]["phase"] == "Denied", "{}", request["status"]);
            ensure!(decisions.len() == 1, "{decisions:?}");
            Ok(decisions.into_iter().next())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_decided_is_verified_only_while_the_policies_are_there() -> Result<()> {
    let testbed = Testbed::start("rights-verified").await?;
    let mut running = Running::start(&testbed).await?;
    let ground = Ground::new(&testbed, "verified").await?;
    let alice = Person::with_token(&testbed, "alice").await?;
    let alice = alice.given(&testbed, Some("verified"), "sluice-approver").await?;
    ground.at_rest("workers", true).await?;
    in_force_for_a_while(&testbed).await?;
    ground.publish("b").await?;
    let decision = denied(&ground, &alice).await?;
    ensure!(decision["by"] == "alice" && decision["verified"] == true, "{decision}");

    // Without the binding nobody writes or checks: the next operator that starts does not vouch any more.
    let binding = ["delete", "mutatingadmissionpolicybinding", "sluice-stamp"];
    testbed.kubectl(&binding).await?.success()?;
    running.relaunch(&testbed, &[]).await?;
    ground.publish("c").await?;
    let request = ground.until_request(Phase::Pending).await?;
    let at = format!(
        "{}/{}",
        path(REQUESTS, "verified"),
        request.metadata.name.context("a name")?
    );
    testbed
        .until(SOON, "the API server to forget the binding", async || {
            let dry = alice
                .ask("PATCH", &format!("{at}?dryRun=All"), &json!({"spec": {"denied": true}}))
                .await?;
            ensure!(dry.is_err(), "still stamped");
            Ok(Some(()))
        })
        .await?;
    let typed = json!({"spec": {"denied": true, "approvedBy": "alice"}});
    taken(alice.ask("PATCH", &at, &typed).await?, "her own name, typed")?;
    let admin = Person::admin(&testbed);
    let decision = testbed
        .until(SOON, "the record", async || {
            let request = taken(admin.get(&at).await?, "reading")?;
            ensure!(request["status"]["phase"] == "Denied", "{}", request["status"]);
            Ok(Some(request["status"]["decisions"][0].clone()))
        })
        .await?;
    ensure!(decision["by"] == "alice" && decision["verified"] == false, "{decision}");
    drop(running);
    testbed.stop().await
}
