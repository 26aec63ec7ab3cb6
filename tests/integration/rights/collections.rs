//! Deletions of whole collections, which come to the policies without a name.
//!
//! Owns that each object is judged by itself. What may be deleted one by one is told in `deletions`, `groups`, `settings`.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{LOCK, made, opened, policed};
use super::people::{GROUPS, Person, REQUESTS, forbidden, path, taken};

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_judged_one_by_one() -> Result<()> {
    let namespace = "rights-all-requests";
    let testbed = policed(namespace).await?;
    let bob = Person::writer(testbed, namespace, "bob").await?;
    for phase in ["Denied", "InProgress", "Approved", "Failed", "Cancelled"] {
        opened(testbed, namespace, &phase.to_lowercase(), Some(phase)).await?;
        let all = path(REQUESTS, namespace);
        let answer = bob.ask("DELETE", &all, &Value::Null).await?;
        forbidden(
            answer,
            &[&bob.name, "lacks the verb approve", &phase.to_lowercase()],
            phase,
        )?;
        let selected = format!("{all}?fieldSelector=status.phase={phase}");
        forbidden(
            bob.ask("DELETE", &selected, &Value::Null).await?,
            &["lacks the verb approve"],
            phase,
        )?;
        taken(Person::admin(testbed).ask("DELETE", &all, &Value::Null).await?, phase)?;
    }
    for phase in ["Pending", "Succeeded"] {
        opened(testbed, namespace, &phase.to_lowercase(), Some(phase)).await?;
    }
    taken(
        bob.ask("DELETE", &path(REQUESTS, namespace), &Value::Null).await?,
        "what is free",
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_judged_one_by_one() -> Result<()> {
    let namespace = "rights-all-groups";
    let testbed = policed(namespace).await?;
    let bob = Person::writer(testbed, namespace, "bob").await?;
    let unlocker = Person::writer(testbed, namespace, "unlocker").await?;
    let unlocker = unlocker.given(testbed, Some(namespace), "sluice-unlocker").await?;
    made(testbed, namespace, "locked", json!({"annotations": {LOCK: "true"}})).await?;
    made(testbed, namespace, "open", json!({})).await?;
    let all = path(GROUPS, namespace);
    let answer = bob.ask("DELETE", &all, &Value::Null).await?;
    forbidden(
        answer,
        &[&bob.name, "lacks the verb unlock", "rights-all-groups/locked"],
        "all",
    )?;
    let left = taken(bob.get(&all).await?, "groups")?;
    let names: Vec<_> = left["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|group| &group["metadata"]["name"])
        .collect();
    ensure!(names.contains(&&json!("locked")), "{names:?}");
    taken(
        unlocker.ask("DELETE", &all, &Value::Null).await?,
        "all, by the unlocker",
    )?;
    Ok(())
}
