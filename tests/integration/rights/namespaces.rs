//! What of a namespace loosens the gate of its groups (case D31), by whichever subresource.
//!
//! Owns people who may write namespaces. It must not leave a namespace locked that others use.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{LOCK, policed};
use super::people::{OURS, Person, Rule, forbidden, taken};
use crate::testbed::Testbed;

const LACKS: &str = "lacks the verb unlock on instancegroups.instancemgr.keikoproj.io";
const EXCLUDED: &str = "instancemgr.keikoproj.io/config-excluded";
const TIER: &str = "instancemgr.keikoproj.io/tier";
/// `finalize` takes whole objects only.
const SUBRESOURCES: [&str; 3] = ["", "/status", "/finalize"];

async fn keeper(testbed: &Testbed, name: &str) -> Result<Person> {
    let person = Person::named(testbed, name).await?;
    let resources = ["namespaces", "namespaces/status", "namespaces/finalize"];
    let rule: Rule<'_> = (&["create", "get", "update", "patch"], "", &resources);
    person.may(testbed, None, &[rule]).await
}

/// A change of the metadata by PUT, and by PATCH where there is one.
async fn change(
    person: &Person,
    namespace: &str,
    subresource: &str,
    metadata: &Value,
) -> Result<Vec<super::people::Answer>> {
    let at = format!("/api/v1/namespaces/{namespace}");
    let mut whole = taken(Person::get(person, &at).await?, namespace)?;
    for (field, changes) in metadata.as_object().into_iter().flatten() {
        for (name, value) in changes.as_object().into_iter().flatten() {
            if value.is_null() {
                whole["metadata"][field].as_object_mut().map(|all| all.remove(name));
            } else {
                whole["metadata"][field][name] = value.clone();
            }
        }
    }
    let at = format!("{at}{subresource}");
    let mut answers = vec![person.ask("PUT", &format!("{at}?dryRun=All"), &whole).await?];
    if subresource != "/finalize" {
        let patch = json!({"metadata": metadata});
        answers.push(person.ask("PATCH", &format!("{at}?dryRun=All"), &patch).await?);
    }
    Ok(answers)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_not_loosened_by_any_subresource() -> Result<()> {
    let namespace = "rights-loosen";
    let testbed = policed(namespace).await?;
    let tenant = keeper(testbed, "tenant@rights-loosen").await?;
    let unlocker = keeper(testbed, "unlocker@rights-loosen").await?;
    let unlocker = unlocker.given(testbed, Some(namespace), "sluice-unlocker").await?;
    let at = format!("/api/v1/namespaces/{namespace}");
    // Locking, and labels that are not ours, are the tenant's.
    let locked = json!({"metadata": {"annotations": {LOCK: "true"}, "labels": {"example.com/a": "b"}}});
    taken(tenant.ask("PATCH", &at, &locked).await?, "locking")?;
    let tier = json!({"metadata": {"labels": {TIER: "prod"}}});
    taken(unlocker.ask("PATCH", &at, &tier).await?, "the unlocker labels")?;
    let before = taken(tenant.get(&at).await?, "reading")?;
    let words = [
        tenant.name.as_str(),
        LACKS,
        "in namespace rights-loosen",
        "sluice-unlocker",
    ];
    for loosening in [
        json!({"annotations": {LOCK: "false"}}),
        json!({"annotations": {LOCK: "FALSE"}}),
        json!({"annotations": {LOCK: null}}),
        json!({"annotations": {EXCLUDED: "true"}}),
        json!({"annotations": {EXCLUDED: "false"}}),
        json!({"labels": {TIER: "dev"}}),
        json!({"labels": {TIER: null}}),
        json!({"labels": {"instancemgr.keikoproj.io/added": ""}}),
    ] {
        for subresource in SUBRESOURCES {
            let what = format!("{loosening} by namespaces{subresource}");
            for answer in change(&tenant, namespace, subresource, &loosening).await? {
                forbidden(answer, &words, &what)?;
            }
            for answer in change(&unlocker, namespace, subresource, &loosening).await? {
                taken(answer, &what)?;
            }
        }
    }
    for free in [
        json!({"annotations": {LOCK: "yes"}}),
        json!({"annotations": {"example.com/a": "b"}}),
        json!({"labels": {"example.com/a": "c", "app": "x"}}),
    ] {
        for subresource in SUBRESOURCES {
            for answer in change(&tenant, namespace, subresource, &free).await? {
                taken(answer, &format!("{free} by namespaces{subresource}"))?;
            }
        }
    }
    ensure!(taken(tenant.get(&at).await?, "reading")? == before);
    Ok(())
}

/// Taking the exclusion off binds the groups to the settings again: that is free, setting it again is not.
#[tokio::test(flavor = "multi_thread")]
async fn an_exclusion_ends_without_the_verb() -> Result<()> {
    let namespace = "rights-excluded";
    let testbed = policed(namespace).await?;
    let tenant = keeper(testbed, "tenant@rights-excluded").await?;
    let at = format!("/api/v1/namespaces/{namespace}");
    let excluded = json!({"metadata": {"annotations": {EXCLUDED: "true"}}});
    taken(
        Person::admin(testbed).ask("PATCH", &at, &excluded).await?,
        "the administrator",
    )?;
    let other = json!({"metadata": {"annotations": {EXCLUDED: "TRUE"}}});
    forbidden(tenant.ask("PATCH", &at, &other).await?, &[LACKS], "another value")?;
    let included = json!({"metadata": {"annotations": {EXCLUDED: null}}});
    taken(tenant.ask("PATCH", &at, &included).await?, "included")?;
    forbidden(tenant.ask("PATCH", &at, &excluded).await?, &[LACKS], "excluded again")
}

/// A new namespace chooses its labels and its lock, since it has no groups; out of the settings it does not get.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_namespace_chooses_its_labels_but_no_exclusion() -> Result<()> {
    let testbed = policed("rights-new-namespace").await?;
    let tenant = keeper(testbed, "tenant@rights-new-namespace").await?;
    let namespace = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {TIER: "dev"}, "annotations": annotations},
        })
    };
    let all = "/api/v1/namespaces";
    let excluded = namespace("rights-new-excluded", json!({EXCLUDED: "true"}));
    let words = [tenant.name.as_str(), LACKS, "rights-new-excluded"];
    forbidden(tenant.ask("POST", all, &excluded).await?, &words, "excluded from birth")?;
    let labelled = namespace("rights-new-labelled", json!({LOCK: "true"}));
    taken(tenant.ask("POST", all, &labelled).await?, "labelled from birth")?;
    ensure!(
        !tenant
            .can(Some("rights-new-labelled"), "unlock", OURS, "instancegroups")
            .await?
    );
    Ok(())
}
