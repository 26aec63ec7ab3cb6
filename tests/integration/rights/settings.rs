//! The fleet's settings, and who may write them.
//!
//! Owns `ConfigMap` `instance-manager` of the testbed: one test, since there is only one. It leaves none behind.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::ground::policed;
use super::people::{Person, forbidden, taken};
use crate::testbed::Testbed;
use crate::testbed::installation::HOME;

const LACKS: &str = "lacks the verb unlock on instancegroups.instancemgr.keikoproj.io";

async fn editor(testbed: &Testbed, namespace: &str, name: &str) -> Result<Person> {
    let verbs = ["get", "list", "create", "update", "patch", "delete", "deletecollection"];
    let person = Person::named(testbed, name).await?;
    person
        .may(testbed, Some(namespace), &[(&verbs, "", &["configmaps"])])
        .await
}

fn settings(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"upgrades": "locks: [{}]"}, "binaryData": {"x": "eA=="},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_are_written_only_with_the_verb_unlock() -> Result<()> {
    let elsewhere = "rights-settings";
    let testbed = policed(elsewhere).await?;
    let editor = editor(testbed, HOME, "editor@settings")
        .await?
        .given(testbed, Some(elsewhere), "sluice-unlocker")
        .await?;
    let unlocker = self::editor(testbed, HOME, "unlocker@settings").await?;
    let unlocker = unlocker.given(testbed, Some(HOME), "sluice-unlocker").await?;
    let all = format!("/api/v1/namespaces/{HOME}/configmaps");
    let at = format!("{all}/instance-manager");
    let words = [
        editor.name.as_str(),
        LACKS,
        "in namespace sluice-system",
        "sluice-unlocker",
        "instance-manager",
    ];

    forbidden(
        editor.ask("POST", &all, &settings("instance-manager")).await?,
        &words,
        "making them",
    )?;
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "instance-manager"}});
    forbidden(editor.ask("POST", &all, &empty).await?, &words, "making them empty")?;
    let apply = format!("{at}?fieldManager=x");
    let manifest = settings("instance-manager");
    let applied = editor
        .send("PATCH", &apply, "application/apply-patch+yaml", &manifest)
        .await?;
    forbidden(applied, &words, "applying them")?;
    let stored = taken(
        unlocker.ask("POST", &all, &settings("instance-manager")).await?,
        "the unlocker",
    )?;

    for change in [
        json!({"data": {"upgrades": "locks: []"}}),
        json!({"data": {"upgrades": null}}),
        json!({"data": {"other": "x"}}),
        json!({"data": null}),
        json!({"binaryData": {"x": "eQ=="}}),
        json!({"binaryData": null}),
        json!({"immutable": true}),
        json!({"data": {"other": "x"}, "metadata": {"labels": {"a": "b"}}}),
    ] {
        let dry = format!("{at}?dryRun=All");
        forbidden(editor.ask("PATCH", &dry, &change).await?, &words, &format!("{change}"))?;
        taken(
            unlocker.ask("PATCH", &dry, &change).await?,
            &format!("the unlocker: {change}"),
        )?;
    }
    // Metadata is free: no tool that labels things gets stuck.
    let labels = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
    taken(editor.ask("PATCH", &at, &labels).await?, "labels")?;
    let mut same = taken(editor.get(&at).await?, "reading")?;
    same["metadata"]["labels"]["a"] = "c".into();
    taken(editor.ask("PUT", &at, &same).await?, "the same data again")?;

    forbidden(editor.ask("DELETE", &at, &Value::Null).await?, &words, "deleting them")?;
    // A collection comes to the policy without a name.
    let chosen = format!("{all}?fieldSelector=metadata.name=instance-manager");
    forbidden(
        editor.ask("DELETE", &chosen, &Value::Null).await?,
        &words,
        "deleting a collection",
    )?;
    let now = taken(editor.get(&at).await?, "reading")?;
    ensure!(
        now["data"] == stored["data"] && now["metadata"]["uid"] == stored["metadata"]["uid"],
        "{now}"
    );

    free_of_the_verb(testbed, &editor, elsewhere).await?;

    // The end of the namespace ends them; the garbage collector, which anybody's owner reference would call, does not.
    for (controller, ends) in [("namespace-controller", true), ("generic-garbage-collector", false)] {
        let controller = Person::named(testbed, &format!("system:serviceaccount:kube-system:{controller}")).await?;
        let answer = controller
            .ask("DELETE", &format!("{at}?dryRun=All"), &Value::Null)
            .await?;
        if ends {
            taken(answer, &controller.name)?;
        } else {
            forbidden(answer, &[&controller.name, LACKS], &controller.name)?;
        }
    }

    let edit = json!({"data": {"upgrades": "locks: []"}});
    // The operator reads them and no more, even with the right to write ConfigMaps.
    let operator = Person::operator(testbed).await?;
    let operator = operator
        .may(testbed, Some(HOME), &[(&["patch"], "", &["configmaps"])])
        .await?;
    forbidden(
        operator.ask("PATCH", &at, &edit).await?,
        &[&operator.name, LACKS],
        "the operator",
    )?;
    taken(unlocker.ask("PATCH", &at, &edit).await?, "the unlocker")?;
    taken(unlocker.ask("DELETE", &at, &Value::Null).await?, "the unlocker")?;
    Ok(())
}

/// Nothing else is looked at: another name there, the same name elsewhere.
async fn free_of_the_verb(testbed: &Testbed, editor: &Person, elsewhere: &str) -> Result<()> {
    let all = format!("/api/v1/namespaces/{HOME}/configmaps");
    taken(editor.ask("POST", &all, &settings("other")).await?, "another ConfigMap")?;
    let edit = json!({"data": {"upgrades": "locks: []"}});
    taken(
        editor.ask("PATCH", &format!("{all}/other"), &edit).await?,
        "another ConfigMap",
    )?;
    taken(
        editor.ask("DELETE", &format!("{all}/other"), &Value::Null).await?,
        "another ConfigMap",
    )?;
    let team = self::editor(testbed, elsewhere, "team@settings").await?;
    let there = format!("/api/v1/namespaces/{elsewhere}/configmaps");
    taken(
        team.ask("POST", &there, &settings("instance-manager")).await?,
        "elsewhere",
    )?;
    taken(
        team.ask("DELETE", &format!("{there}/instance-manager"), &Value::Null)
            .await?,
        "elsewhere",
    )?;
    Ok(())
}
