//! The rules of a group, one by one, against the API server's dry run.
//!
//! Owns running the table, and the limits that are no rules. It must not store a group.

use anyhow::Result;
use serde_json::{Value, json};

use super::group_table::{base, cases};
use super::{Answer, GROUPS, merged, prepared, try_create};

const NAMESPACE: &str = "rules-group";

async fn tried(client: &kube::Client, edit: &Value) -> Result<Answer> {
    try_create(client, GROUPS, &merged(base("tried", NAMESPACE), edit)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_takes_what_keeps_it_and_refuses_what_breaks_it() -> Result<()> {
    let client = prepared(NAMESPACE).await?.admin();
    let mut wrong = Vec::new();
    for case in cases() {
        for edit in &case.accepted {
            if let Err(refusal) = tried(&client, edit).await? {
                wrong.push(format!("{}: {edit} was refused: {}", case.field, refusal.text));
            }
        }
        for edit in &case.refused {
            match tried(&client, edit).await? {
                Ok(_) => wrong.push(format!("{}: {edit} was accepted", case.field)),
                Err(refusal) if refusal.is_only(case.field, case.message) => {}
                Err(refusal) => wrong.push(format!(
                    "{}: {edit} was refused with {:?} instead of `{}`",
                    case.field, refusal.causes, case.message
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_fleet_defaults_may_supply_can_be_left_out() -> Result<()> {
    let client = prepared(NAMESPACE).await?.admin();
    let mut bare = base("bare", NAMESPACE);
    bare["spec"] = json!({"eks": {"configuration": {"labels": {"a": "b"}, "instanceType": "t2.small"}}});
    for spec in [
        bare["spec"].clone(),
        json!({}),
        json!({"provisioner": "eks", "eks": {"configuration": {}}}),
    ] {
        bare["spec"] = spec;
        super::accepted(try_create(&client, GROUPS, &bare).await?, &bare["spec"].to_string())?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_schema_name_the_field() -> Result<()> {
    let client = prepared(NAMESPACE).await?.admin();
    let configuration = |edit: Value| json!({"spec": {"eks": {"configuration": edit}}});
    let many: Vec<_> = (0..51).map(|index| json!({"key": format!("k{index}")})).collect();
    let volume = |size: i64| json!({"name": "/dev/xvda", "type": "gp3", "size": size});
    let cases = [
        ("spec.eks.minSize", json!({"spec": {"eks": {"minSize": -1}}})),
        ("spec.eks.minSize", json!({"spec": {"eks": {"minSize": 1_i64 << 40}}})),
        (
            "spec.eks.configuration",
            json!({"spec": {"eks": {"configuration": null}}}),
        ),
        (
            "spec.eks.warmPool.maxSize",
            json!({"spec": {"eks": {"warmPool": {"maxSize": -2}}}}),
        ),
        (
            "spec.eks.configuration.volumes[].size",
            configuration(json!({"volumes": [volume(-1)]})),
        ),
        (
            "spec.eks.configuration.volumes[].size",
            configuration(json!({"volumes": [{"name": "x", "type": "gp2"}]})),
        ),
        (
            "spec.eks.configuration.metadataOptions.httpPutHopLimit",
            configuration(json!({"metadataOptions": {"httpPutHopLimit": 65}})),
        ),
        (
            "spec.eks.configuration.metadataOptions.httpPutHopLimit",
            configuration(json!({"metadataOptions": {"httpPutHopLimit": 0}})),
        ),
        (
            "spec.eks.configuration.taints[].effect",
            configuration(json!({"taints": [{"key": "a"}]})),
        ),
        ("spec.eks.configuration.tags", configuration(json!({"tags": many}))),
        (
            "spec.eks.configuration.tags[].key",
            configuration(json!({"tags": [{"key": "k".repeat(129)}]})),
        ),
        (
            "spec.eks.configuration.lifecycleHooks[].name",
            configuration(json!({"lifecycleHooks": [{"lifecycle": "Launch"}]})),
        ),
        (
            "spec.eks.configuration.mixedInstancesPolicy.instanceTypes[].type",
            configuration(json!({"mixedInstancesPolicy": {"instanceTypes": [{"weight": 1}]}})),
        ),
        (
            "spec.eks.configuration.mixedInstancesPolicy.baseCapacity",
            configuration(json!({"mixedInstancesPolicy": {"instancePool": "SubFamilyFlexible", "baseCapacity": -1}})),
        ),
        (
            "spec.eks-fargate.selectors",
            json!({"spec": {"eks-fargate": {"clusterName": "demo", "selectors": []}}}),
        ),
        (
            "spec.eks-managed.minSize",
            json!({"spec": {"eks-managed": {"maxSize": 1, "configuration": {}}}}),
        ),
    ];
    let mut wrong = Vec::new();
    for (field, edit) in cases {
        match tried(&client, &edit).await? {
            // Rules are not judged on an object that breaks the schema; the API server says so in a second entry.
            Err(refusal) if refusal.causes.first().is_some_and(|(at, _)| at == field) => {}
            Err(refusal) => wrong.push(format!("{field}: {edit} was refused with {:?}", refusal.causes)),
            Ok(_) => wrong.push(format!("{field}: {edit} was accepted")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_does_not_exist_is_told_by_name() -> Result<()> {
    let client = prepared(NAMESPACE).await?.admin();
    let misspelt = json!({"spec": {"eks": {"configuration": {"instancetype": "m5.large"}}}});
    let Err(refusal) = tried(&client, &misspelt).await? else {
        panic!("a misspelt field was accepted")
    };
    assert!(
        refusal.says(r#"unknown field "spec.eks.configuration.instancetype""#),
        "{refusal:?}"
    );
    Ok(())
}
