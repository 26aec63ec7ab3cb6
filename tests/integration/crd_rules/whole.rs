//! The definitions as a whole: established, complete in the tables, good for the examples.
//!
//! Owns nothing but its tests. It must not look at single rules.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;

use super::{GROUPS, REQUESTS, Rule, group_table, make_namespace, prepared, request_table, rules_of, schema_of};

#[tokio::test(flavor = "multi_thread")]
async fn both_definitions_are_established_without_a_complaint() -> Result<()> {
    let testbed = prepared("crd-rules").await?;
    let api: Api<CustomResourceDefinition> = Api::all(testbed.admin());
    for plural in [GROUPS, REQUESTS] {
        let definition = api.get(&format!("{plural}.instancemgr.keikoproj.io")).await?;
        let status = definition.status.context("a status")?;
        let conditions = status.conditions.unwrap_or_default();
        let holding: BTreeSet<_> = conditions
            .iter()
            .filter(|condition| condition.status == "True")
            .map(|condition| condition.type_.as_str())
            .collect();
        assert_eq!(holding, BTreeSet::from(["Established", "NamesAccepted"]), "{plural}");
        assert_eq!(status.stored_versions, Some(vec!["v1alpha1".to_owned()]), "{plural}");
    }
    Ok(())
}

#[test]
fn every_rule_of_the_definitions_has_a_case_that_it_refuses() -> Result<()> {
    let groups = group_table::cases()
        .into_iter()
        .map(|case| (case.rule(), case.refused.len(), case.accepted.len()));
    let requests = request_table::cases()
        .into_iter()
        .map(|case| (case.rule(), case.refused.len(), case.accepted.len()));
    for (plural, table) in [(GROUPS, groups.collect::<Vec<_>>()), (REQUESTS, requests.collect())] {
        let mut tried: Vec<Rule> = Vec::new();
        for (rule, refused, accepted) in table {
            ensure!(refused > 0 && accepted > 0, "{rule:?} is not tried both ways");
            tried.push(rule);
        }
        tried.sort();
        let rules = rules_of(plural)?;
        let untried: Vec<_> = rules.iter().filter(|rule| !tried.contains(rule)).collect();
        let unknown: Vec<_> = tried.iter().filter(|rule| !rules.contains(rule)).collect();
        ensure!(
            untried.is_empty(),
            "{plural} has rules that no case breaks: {untried:#?}"
        );
        ensure!(unknown.is_empty(), "no such rule of {plural}: {unknown:#?}");
    }
    Ok(())
}

#[test]
fn every_rule_of_a_group_names_its_field_in_words() -> Result<()> {
    let schema = schema_of(GROUPS)?;
    for rule in rules_of(GROUPS)? {
        let mut node = &schema;
        let mut names = Vec::new();
        for piece in rule.field.split('.') {
            let name = piece.trim_end_matches("[]");
            names = vec![name];
            node = &node["properties"][name];
            if piece != name {
                node = &node["items"];
            }
        }
        // A rule on an object or a list speaks of what is within.
        for within in [&node["properties"], &node["items"]["properties"]] {
            names.extend(within.as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
        }
        let words = rule.message.split(' ').count();
        assert!(
            words > 3 && names.iter().any(|name| rule.message.contains(name)),
            "{rule:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_can_be_applied() -> Result<()> {
    let testbed = prepared("crd-examples").await?;
    // The namespace that the examples name; nothing stays in it.
    make_namespace(testbed, "team").await?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut applied = 0;
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let file = path.to_str().context("a path in UTF-8")?;
            let arguments = ["apply", "--dry-run=server", "--validate=strict", "-f", file];
            testbed.kubectl(&arguments).await?.success()?;
            applied += 1;
        }
    }
    ensure!(applied > 0, "no examples");
    Ok(())
}
