//! A server that cannot write names into decisions, as before Kubernetes 1.36, and an operator that may not approve.
//!
//! Owns a testbed of its own, with one installation of the chart after another. It must not repeat what holds everywhere.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{FINALIZER, enter, make_namespace, opened, request};
use super::people::{OPERATOR, OURS, Person, REQUESTS, forbidden, path, taken};
use crate::testbed::{Installation, Testbed, TestbedOptions};

const NAMESPACE: &str = "rights-older";
const SOON: Duration = Duration::from_secs(30);
/// What the policies here do not depend on.
const QUIET: [&str; 2] = ["--set=replicas=0", "--set=autoApprover.enabled=false"];

async fn approver(testbed: &Testbed, name: &str) -> Result<Person> {
    let person = Person::named(testbed, name).await?;
    person.given(testbed, Some(NAMESPACE), "sluice-approver").await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_stamping_a_name_is_the_callers_or_nobodys() -> Result<()> {
    let options = TestbedOptions::default().without_mutating_policies();
    let testbed = Testbed::start_with("rights-older", options).await?;
    Installation::of_chart(&testbed, &QUIET).await?;
    make_namespace(&testbed, NAMESPACE).await?;
    let kinds = testbed.kubectl(&[
        "api-resources",
        "--api-group=admissionregistration.k8s.io",
        "-o",
        "name",
    ]);
    let kinds = kinds.await?.success()?;
    ensure!(
        !kinds.contains("mutatingadmissionpolicies") && kinds.contains("validatingadmissionpolicies"),
        "{kinds}"
    );

    let (alice, bob) = (approver(&testbed, "alice").await?, approver(&testbed, "bob").await?);
    anonymous_or_own(&testbed, &alice, &bob).await?;
    operator_without_approve(&testbed).await?;

    let named = [&QUIET[..], &["--set=requireNamedApproval=true"]].concat();
    Installation::of_chart(&testbed, &named).await?;
    only_own(&testbed, &alice, &bob).await?;

    // The auto-approver has nobody who could type a name.
    Installation::of_chart(&testbed, &["--set=replicas=0", "--set=requireNamedApproval=true"]).await?;
    let operator = Person::operator(&testbed).await?;
    opened(&testbed, NAMESPACE, "auto", Some("Pending")).await?;
    let at = format!("{}/auto", path(REQUESTS, NAMESPACE));
    let decided = testbed
        .until(SOON, "the operator's verb", async || {
            let decided = operator.ask("PATCH", &at, &json!({"spec": {"approved": true}})).await?;
            Ok(Some(taken(decided, "the auto-approver")?))
        })
        .await?;
    ensure!(decided["spec"]["approvedBy"] == "", "{}", decided["spec"]);
    testbed.stop().await
}

async fn anonymous_or_own(testbed: &Testbed, alice: &Person, bob: &Person) -> Result<()> {
    opened(testbed, NAMESPACE, "free", Some("Pending")).await?;
    let at = format!("{}/free", path(REQUESTS, NAMESPACE));
    let forged = json!({"spec": {"approved": true, "approvedBy": "carol"}});
    let words = [
        "says \"carol\"",
        "user \"alice\" decides",
        "\"approvedBy\":\"alice\"",
        "\"approvedBy\":\"\"",
    ];
    forbidden(alice.ask("PATCH", &at, &forged).await?, &words, "forged")?;
    let approved = taken(
        alice.ask("PATCH", &at, &json!({"spec": {"approved": true}})).await?,
        "no name",
    )?;
    ensure!(approved["spec"]["approvedBy"] == "", "{}", approved["spec"]);
    // With no name to change, the decision alone has to be noticed.
    let writer = Person::writer(testbed, NAMESPACE, "writer").await?;
    for decision in [
        json!({"approved": false}),
        json!({"approved": null}),
        json!({"cancelled": true}),
        json!({"urgent": true}),
        json!({"decisionReason": "why"}),
    ] {
        let answer = writer.ask("PATCH", &at, &json!({"spec": decision})).await?;
        let what = format!("without the verb: {decision}");
        forbidden(answer, &["lacks the verb approve", &writer.name], &what)?;
    }
    let named = json!({"spec": {"approved": false, "approvedBy": "alice"}});
    taken(alice.ask("PATCH", &at, &named).await?, "her own name")?;
    // Now the record names alice: bob's decision must not pass as hers.
    let silent = json!({"spec": {"denied": true}});
    let words = ["says \"alice\"", "user \"bob\" decides", "\"approvedBy\":\"bob\""];
    forbidden(bob.ask("PATCH", &at, &silent).await?, &words, "bob under alice's name")?;
    for by in ["", "bob"] {
        let own = json!({"spec": {"denied": true, "approvedBy": by}});
        taken(bob.ask("PATCH", &format!("{at}?dryRun=All"), &own).await?, by)?;
    }
    Ok(())
}

async fn only_own(testbed: &Testbed, alice: &Person, bob: &Person) -> Result<()> {
    opened(testbed, NAMESPACE, "named", Some("Pending")).await?;
    let at = format!("{}/named", path(REQUESTS, NAMESPACE));
    let silent = json!({"spec": {"approved": true}});
    let words = [
        "says \"\"",
        "user \"alice\" decides",
        "\"approvedBy\":\"alice\" into the same patch",
    ];
    testbed
        .until(SOON, "the stricter policy", async || {
            let dry = alice.ask("PATCH", &format!("{at}?dryRun=All"), &silent).await?;
            forbidden(dry, &words, "no name")?;
            Ok(Some(()))
        })
        .await?;
    forbidden(alice.ask("PATCH", &at, &silent).await?, &words, "no name")?;
    let forged = json!({"spec": {"approved": true, "approvedBy": "bob"}});
    forbidden(alice.ask("PATCH", &at, &forged).await?, &["says \"bob\""], "forged")?;
    let own = json!({"spec": {"approved": true, "approvedBy": "alice"}});
    taken(alice.ask("PATCH", &at, &own).await?, "her own name")?;
    let cancelled = json!({"spec": {"cancelled": true}});
    forbidden(
        bob.ask("PATCH", &at, &cancelled).await?,
        &["says \"alice\""],
        "bob, silent",
    )
}

/// C6: with the auto-approver off, nothing that the operator does, or is made to do, decides.
async fn operator_without_approve(testbed: &Testbed) -> Result<()> {
    let operator = Person::operator(testbed).await?;
    ensure!(!operator.can(Some(NAMESPACE), "approve", OURS, REQUESTS).await?);
    ensure!(!operator.can(None, "approve", OURS, REQUESTS).await?);
    let all = path(REQUESTS, NAMESPACE);
    let lacks = ["lacks the verb approve", OPERATOR];
    let mut born = request("born");
    born["spec"]["approved"] = true.into();
    forbidden(operator.ask("POST", &all, &born).await?, &lacks, "approved at birth")?;
    let mut held = request("held");
    held["metadata"]["finalizers"] = json!([FINALIZER]);
    taken(operator.ask("POST", &all, &held).await?, "opening")?;
    let at = format!("{all}/held");
    for decision in ["approved", "denied", "cancelled", "urgent"] {
        let decided = json!({"spec": {decision: true}});
        forbidden(operator.ask("PATCH", &at, &decided).await?, &lacks, decision)?;
    }
    // Its own work goes on: status, labels, finalizer, pruning.
    for phase in ["Denied", "InProgress"] {
        enter(testbed, NAMESPACE, "held", phase).await?;
    }
    let label = json!({"metadata": {"labels": {"instancemgr.keikoproj.io/reason": "ImageDrift"}}});
    taken(operator.ask("PATCH", &at, &label).await?, "a label")?;
    taken(
        operator
            .ask("PATCH", &at, &json!({"metadata": {"finalizers": null}}))
            .await?,
        "letting go",
    )?;
    taken(operator.ask("DELETE", &at, &Value::Null).await?, "pruning")?;
    Ok(())
}
