//! What loosens the gate of a group needs the verb unlock (case D31).
//!
//! Owns the group itself. Its namespace and the settings have files of their own.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::{LOCK, group, made, make_namespace, policed};
use super::people::{GROUPS, OURS, Person, forbidden, path, taken};
use crate::testbed::Testbed;

const LACKS: &str = "lacks the verb unlock on instancegroups.instancemgr.keikoproj.io";

/// Somebody who may write groups, and one who may unlock them as well.
async fn tenant_and_unlocker(testbed: &Testbed, namespace: &str) -> Result<[Person; 2]> {
    let tenant = Person::writer(testbed, namespace, "tenant").await?;
    let unlocker = Person::named(testbed, &format!("unlocker@{namespace}")).await?;
    let unlocker = unlocker.given(testbed, Some(namespace), "sluice-editor").await?;
    Ok([
        tenant,
        unlocker.given(testbed, Some(namespace), "sluice-unlocker").await?,
    ])
}

fn annotated(name: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {name: value.into()}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_not_taken_off_without_the_verb_unlock() -> Result<()> {
    let namespace = "rights-unlock";
    let testbed = policed(namespace).await?;
    let [tenant, unlocker] = tenant_and_unlocker(testbed, namespace).await?;
    // A doubtful value locks, so that turning it off is unlocking.
    for (index, locking) in ["true", "yes", "", "1", "True", " false"].into_iter().enumerate() {
        let name = format!("g{index}");
        let before = made(testbed, namespace, &name, json!({"annotations": {LOCK: locking}})).await?;
        let at = format!("{}/{name}", path(GROUPS, namespace));
        let loosenings = [
            annotated(LOCK, "false"),
            annotated(LOCK, "False"),
            annotated(LOCK, Value::Null),
            json!({"metadata": {"annotations": null}}),
        ];
        for loosening in &loosenings {
            let what = format!("{locking:?}: {loosening}");
            let words = [
                tenant.name.as_str(),
                LACKS,
                namespace,
                &name,
                "sluice-unlocker",
                "may not unlock",
            ];
            forbidden(tenant.ask("PATCH", &at, loosening).await?, &words, &what)?;
        }
        let mut whole = before.clone();
        whole["metadata"]["annotations"] = json!({});
        forbidden(tenant.ask("PUT", &at, &whole).await?, &[LACKS], "the whole")?;
        ensure!(
            taken(tenant.get(&at).await?, "reading")? == before,
            "{locking:?}: refused and changed"
        );
        // Another way to say the same, and all else of the group.
        for free in [annotated(LOCK, "TRUE"), json!({"spec": {"eks": {"maxSize": 9}}})] {
            taken(tenant.ask("PATCH", &at, &free).await?, &format!("{free}"))?;
        }
        taken(
            unlocker.ask("PATCH", &at, &loosenings[index % 4]).await?,
            "the unlocker",
        )?;
    }
    Ok(())
}

/// The quick brake is for everyone who may write the group.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_put_on_without_any_verb() -> Result<()> {
    let namespace = "rights-lock";
    let testbed = policed(namespace).await?;
    let [tenant, _] = tenant_and_unlocker(testbed, namespace).await?;
    for (name, metadata) in [("bare", json!({})), ("off", json!({"annotations": {LOCK: "false"}}))] {
        made(testbed, namespace, name, metadata).await?;
        let at = format!("{}/{name}", path(GROUPS, namespace));
        if name == "off" {
            taken(
                tenant.ask("PATCH", &at, &annotated(LOCK, Value::Null)).await?,
                "off is as good as absent",
            )?;
        }
        taken(tenant.ask("PATCH", &at, &annotated(LOCK, "true")).await?, name)?;
        forbidden(
            tenant.ask("PATCH", &at, &annotated(LOCK, "false")).await?,
            &[LACKS],
            name,
        )?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn our_labels_and_the_tightening_annotations_need_the_verb_unlock() -> Result<()> {
    let namespace = "rights-relabel";
    let testbed = policed(namespace).await?;
    let [tenant, unlocker] = tenant_and_unlocker(testbed, namespace).await?;
    let (tier, delay, approval, retry) = (
        "instancemgr.keikoproj.io/tier",
        "instancemgr.keikoproj.io/upgrade-delay",
        "instancemgr.keikoproj.io/approval",
        "instancemgr.keikoproj.io/retry-upgrade",
    );
    let metadata = json!({
        "labels": {tier: "prod", "example.com/team": "blue"},
        "annotations": {delay: "7d", approval: "manual"},
    });
    let before = made(testbed, namespace, "workers", metadata).await?;
    let at = format!("{}/workers", path(GROUPS, namespace));
    let labelled = |name: &str, value: Value| json!({"metadata": {"labels": {name: value}}});
    for change in [
        labelled(tier, json!("dev")),
        labelled(tier, Value::Null),
        labelled("instancemgr.keikoproj.io/added", json!("x")),
        labelled("instancemgr.keikoproj.io/empty", json!("")),
        json!({"metadata": {"labels": null}}),
        annotated(delay, "1h"),
        annotated(delay, "8d"),
        annotated(delay, Value::Null),
        annotated(approval, "auto"),
        annotated(approval, Value::Null),
        annotated(retry, "sha256:b"),
        annotated(retry, ""),
    ] {
        forbidden(
            tenant.ask("PATCH", &at, &change).await?,
            &[&tenant.name, LACKS],
            &format!("{change}"),
        )?;
        let dry = format!("{at}?dryRun=All");
        taken(
            unlocker.ask("PATCH", &dry, &change).await?,
            &format!("the unlocker: {change}"),
        )?;
    }
    ensure!(taken(tenant.get(&at).await?, "reading")? == before);
    for free in [
        labelled("example.com/team", json!("red")),
        labelled("instancemgr.keikoproj.io.example.com/tier", json!("x")),
        annotated("instancemgr.keikoproj.io/os-family", "amazonlinux2023"),
        annotated("example.com/ticket", "1"),
    ] {
        taken(tenant.ask("PATCH", &at, &free).await?, &format!("{free}"))?;
    }
    Ok(())
}

/// The operator lifts a block once and takes the annotation off; so may anybody, and nobody puts it on unasked.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_asked_for_with_the_verb_unlock_and_ends_without() -> Result<()> {
    let namespace = "rights-retry";
    let testbed = policed(namespace).await?;
    let [tenant, unlocker] = tenant_and_unlocker(testbed, namespace).await?;
    let operator = Person::operator(testbed).await?;
    made(testbed, namespace, "workers", json!({})).await?;
    let at = format!("{}/workers", path(GROUPS, namespace));
    let retry = "instancemgr.keikoproj.io/retry-upgrade";
    for remover in [&operator, &tenant] {
        taken(
            unlocker.ask("PATCH", &at, &annotated(retry, "sha256:b")).await?,
            "the unlocker",
        )?;
        forbidden(
            tenant.ask("PATCH", &at, &annotated(retry, "sha256:c")).await?,
            &[LACKS],
            "another",
        )?;
        // While it is there, other writes of the tenant go on.
        taken(
            tenant.ask("PATCH", &at, &annotated("example.com/x", "y")).await?,
            "another annotation",
        )?;
        taken(
            remover.ask("PATCH", &at, &annotated(retry, Value::Null)).await?,
            &remover.name,
        )?;
    }
    let mut born = group("born");
    born["metadata"]["annotations"] = json!({retry: "sha256:b"});
    forbidden(
        tenant.ask("POST", &path(GROUPS, namespace), &born).await?,
        &[LACKS],
        "born with it",
    )
}

/// A new group chooses its labels and may be as tight as it likes: nothing of it runs yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_chooses_its_own_labels() -> Result<()> {
    let namespace = "rights-new-group";
    let testbed = policed(namespace).await?;
    let [tenant, _] = tenant_and_unlocker(testbed, namespace).await?;
    let mut new = group("new");
    new["metadata"]["labels"] = json!({"instancemgr.keikoproj.io/tier": "dev"});
    new["metadata"]["annotations"] = json!({
        LOCK: "true", "instancemgr.keikoproj.io/upgrade-delay": "2d", "instancemgr.keikoproj.io/approval": "manual",
    });
    taken(tenant.ask("POST", &path(GROUPS, namespace), &new).await?, "a new group")?;
    // With that it has chosen: it cannot be made anew with others.
    let at = format!("{}/new", path(GROUPS, namespace));
    forbidden(tenant.ask("DELETE", &at, &Value::Null).await?, &[LACKS], "once more")
}

/// Deleting and making again would take every lock off.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_group_is_not_deleted_without_the_verb_unlock() -> Result<()> {
    let (namespace, locked_namespace) = ("rights-remake", "rights-remake-locked");
    let testbed = policed(namespace).await?;
    make_namespace(testbed, locked_namespace).await?;
    let admin = Person::admin(testbed);
    made(testbed, namespace, "annotated", json!({"annotations": {LOCK: "true"}})).await?;
    made(
        testbed,
        locked_namespace,
        "inside",
        json!({"annotations": {LOCK: "false"}}),
    )
    .await?;
    let lock = annotated(LOCK, "true");
    taken(
        admin
            .ask("PATCH", &format!("/api/v1/namespaces/{locked_namespace}"), &lock)
            .await?,
        "locking",
    )?;
    made(testbed, namespace, "by-settings", json!({})).await?;
    made(testbed, namespace, "open", json!({"annotations": {LOCK: "false"}})).await?;
    for (name, locked) in [("by-settings", true), ("open", false)] {
        let status = json!({"status": {"lock": {"locked": locked, "source": if locked { json!("Settings") } else { json!(null) }}}});
        let at = format!("{}/{name}/status", path(GROUPS, namespace));
        taken(admin.ask("PATCH", &at, &status).await?, "a status")?;
    }
    for (namespace, name, why) in [
        (
            namespace,
            "annotated",
            "its annotation instancemgr.keikoproj.io/lock-upgrades",
        ),
        (locked_namespace, "inside", "of its namespace"),
        (namespace, "by-settings", "what its status.lock names"),
    ] {
        let [tenant, unlocker] = tenant_and_unlocker(testbed, namespace).await?;
        let at = format!("{}/{name}", path(GROUPS, namespace));
        // The policy's view of the namespace comes from a watch.
        testbed
            .until(std::time::Duration::from_secs(30), "a refusal", async || {
                let dry = tenant.ask("DELETE", &format!("{at}?dryRun=All"), &Value::Null).await?;
                forbidden(dry, &[&tenant.name, LACKS, name, why], name)?;
                Ok(Some(()))
            })
            .await?;
        forbidden(tenant.ask("DELETE", &at, &Value::Null).await?, &[LACKS, why], name)?;
        // The operator has no business deleting groups, and no right to.
        let operator = Person::operator(testbed).await?;
        forbidden(
            operator.ask("DELETE", &at, &Value::Null).await?,
            &["cannot delete resource"],
            "the operator",
        )?;
        taken(unlocker.ask("DELETE", &at, &Value::Null).await?, name)?;
    }
    let [tenant, _] = tenant_and_unlocker(testbed, namespace).await?;
    taken(
        tenant
            .ask("DELETE", &format!("{}/open", path(GROUPS, namespace)), &Value::Null)
            .await?,
        "open",
    )?;
    ensure!(!tenant.can(Some(namespace), "unlock", OURS, GROUPS).await?);
    Ok(())
}
