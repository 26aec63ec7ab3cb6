//! Two approvers at the same moment, under the policies (case D14).
//!
//! Owns real users with tokens, and names that the API server writes. `crd_rules::approvers` has the same without policies.

use anyhow::{Result, bail, ensure};
use serde_json::json;

use super::ground::{opened, policed};
use super::people::{Answer, Person, REQUESTS, path, refused, taken};

const EXCLUSIVE: &str = "approved and denied exclude each other";
const FINAL: &str = "a denial is final";

async fn approvers(testbed: &crate::testbed::Testbed, namespace: &str) -> Result<[Person; 2]> {
    let alice = Person::with_token(testbed, "alice").await?;
    let bob = Person::with_token(testbed, "bob").await?;
    Ok([
        alice.given(testbed, Some(namespace), "sluice-approver").await?,
        bob.given(testbed, Some(namespace), "sluice-approver").await?,
    ])
}

async fn decide(person: &Person, at: &str, decision: &str) -> Result<Answer> {
    person.ask("PATCH", at, &json!({"spec": {decision: true}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_approvers_the_second_is_refused_in_words() -> Result<()> {
    let namespace = "rights-second";
    let testbed = policed(namespace).await?;
    let [alice, bob] = approvers(testbed, namespace).await?;
    for (first, second) in [("approved", "denied"), ("denied", "approved")] {
        opened(testbed, namespace, first, Some("Pending")).await?;
        let at = format!("{}/{first}", path(REQUESTS, namespace));
        let decided = taken(decide(&alice, &at, first).await?, "the first")?;
        refused(decide(&bob, &at, second).await?, 422, &[EXCLUSIVE], "the second")?;
        // The same decision again is none: the first one keeps the name.
        taken(decide(&bob, &at, first).await?, "the same again")?;
        let now = taken(bob.get(&at).await?, "reading")?;
        ensure!(now["spec"] == decided["spec"], "{}", now["spec"]);
        ensure!(now["spec"]["approvedBy"] == "alice", "{}", now["spec"]);
        // Who read before the first wrote, and writes the whole, is told so.
        let mut stale = decided.clone();
        stale["metadata"]["resourceVersion"] = "1".into();
        stale["spec"][second] = true.into();
        stale["spec"][first] = false.into();
        let answer = bob.ask("PUT", &at, &stale).await?;
        refused(answer, 409, &["the object has been modified"], "the stale one")?;
    }
    // Over a denial nobody gets by turning it round.
    let at = format!("{}/denied", path(REQUESTS, namespace));
    let turned = json!({"spec": {"approved": true, "denied": false}});
    refused(bob.ask("PATCH", &at, &turned).await?, 422, &[FINAL], "turned round")
}

#[tokio::test(flavor = "multi_thread")]
async fn approver_and_denier_at_the_same_moment_never_both_win() -> Result<()> {
    let namespace = "rights-race";
    let testbed = policed(namespace).await?;
    let [alice, bob] = approvers(testbed, namespace).await?;
    for round in 0..12 {
        let name = format!("r{round}");
        opened(testbed, namespace, &name, Some("Pending")).await?;
        let at = format!("{}/{name}", path(REQUESTS, namespace));
        let (approval, denial) = tokio::try_join!(decide(&alice, &at, "approved"), decide(&bob, &at, "denied"))?;
        let winner = match (approval, denial) {
            (Ok(_), denial @ Err(_)) => {
                refused(denial, 422, &[EXCLUSIVE], "bob")?;
                "alice"
            }
            (approval @ Err(_), Ok(_)) => {
                refused(approval, 422, &[EXCLUSIVE], "alice")?;
                "bob"
            }
            both => bail!("round {round}: {both:?}"),
        };
        let spec = taken(alice.get(&at).await?, "reading")?["spec"].clone();
        let approved = winner == "alice";
        ensure!(
            spec["approvedBy"] == winner && spec["approved"] == approved && spec["denied"] == !approved,
            "round {round}: {winner} won, and {spec} is stored"
        );
    }
    Ok(())
}
