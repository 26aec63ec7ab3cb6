//! What the definitions say: names, columns, rules, limits, defaults.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::api::{GROUP, VERSION};

/// A definition as JSON.
fn value(crd: &CustomResourceDefinition) -> Value {
    serde_json::to_value(crd).unwrap()
}

/// The group's and the request's definition.
fn both() -> (Value, Value) {
    let all = all();
    let [group, request] = all.as_slice() else {
        panic!("two definitions")
    };
    (value(group), value(request))
}

/// The schema of a kind, or of one of its top-level fields.
fn schema<'a>(crd: &'a Value, pointer: &str) -> &'a Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        .pointer(pointer)
        .unwrap()
}

/// Calls `visit` with the path of every schema node.
fn walk(node: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    let children = node.get("properties").and_then(Value::as_object);
    for (name, child) in children.into_iter().flatten() {
        walk(child, &format!("{path}.{name}"), visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = node.get(key) {
            walk(child, &format!("{path}{mark}"), visit);
        }
    }
}

/// Paths of the nodes that `holds` is true of.
fn paths(node: &Value, holds: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    walk(node, "", &mut |path, node| {
        if holds(node) {
            found.push(path.to_owned());
        }
    });
    found
}

/// Name, path, type and priority of the columns.
fn columns(crd: &Value) -> Vec<String> {
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .unwrap();
    let text = |column: &Value, key: &str| column[key].as_str().unwrap_or_default().to_owned();
    let line = |column: &Value| {
        let wide = if column["priority"] == json!(1) { " wide" } else { "" };
        format!(
            "{}: {} {}{wide}",
            text(column, "name"),
            text(column, "jsonPath"),
            text(column, "type")
        )
    };
    columns.iter().map(line).collect()
}

#[test]
fn names_are_those_of_the_api() {
    let (group, request) = both();
    for crd in [&group, &request] {
        assert_eq!(crd["spec"]["group"], json!(GROUP));
        assert_eq!(crd["spec"]["scope"], json!("Namespaced"));
        assert_eq!(crd["spec"]["names"]["categories"], json!(["instancemgr"]));
        let version = &crd["spec"]["versions"][0];
        assert_eq!(
            (&version["name"], &version["served"], &version["storage"]),
            (&json!(VERSION), &json!(true), &json!(true))
        );
        assert_eq!(version["subresources"], json!({"status": {}}));
        assert_eq!(*schema(crd, "/required"), json!(["spec"]));
    }
    assert_eq!(
        group["metadata"]["name"],
        json!("instancegroups.instancemgr.keikoproj.io")
    );
    assert_eq!(group["spec"]["names"]["shortNames"], json!(["ig"]));
    assert_eq!(
        request["metadata"]["name"],
        json!("instancegroupupgraderequests.instancemgr.keikoproj.io")
    );
    assert_eq!(
        request["spec"]["names"]["shortNames"],
        json!(["upgraderequest", "upgraderequests", "igur"])
    );
    assert_eq!(
        request["spec"]["versions"][0]["selectableFields"],
        json!([{"jsonPath": ".spec.instanceGroupRef.name"}, {"jsonPath": ".status.phase"}])
    );
}

#[test]
fn columns_are_in_order() {
    let (group, request) = both();
    assert_eq!(
        columns(&group),
        [
            "State: .status.currentState string",
            "Min: .status.currentMin integer",
            "Max: .status.currentMax integer",
            "Group Name: .status.activeScalingGroupName string",
            "Provisioner: .status.provisioner string",
            "Strategy: .status.strategy string",
            "Lifecycle: .status.lifecycle string",
            "Locked: .status.lock.locked boolean",
            "Upgrade: .status.upgradeRequest string",
            "Age: .metadata.creationTimestamp date",
            "Message: .status.message string wide",
            "Image: .status.image.current string wide",
            "Pending: .status.image.pending string wide",
        ]
    );
    assert_eq!(
        columns(&request),
        [
            "Group: .spec.instanceGroupRef.name string",
            "Reason: .spec.reason string",
            "From: .spec.from.imageId string",
            "To: .spec.target.imageId string",
            "Phase: .status.phase string",
            "Auto-At: .status.autoApproveAt string",
            "By: .spec.approvedBy string",
            "Progress: .status.progress string",
            "Age: .metadata.creationTimestamp date",
            "Message: .status.message string wide",
            "Policy: .status.policy string wide",
            "From-Name: .spec.from.imageName string wide",
            "To-Name: .spec.target.imageName string wide",
        ]
    );
}

#[test]
fn every_column_points_at_a_field() {
    let (group, request) = both();
    for crd in [&group, &request] {
        for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]
            .as_array()
            .unwrap()
        {
            let path = column["jsonPath"].as_str().unwrap();
            if path.starts_with(".metadata") {
                continue;
            }
            let pointer = path.replace('.', "/properties/");
            let field = schema(crd, &pointer);
            if column["type"] != "date" {
                assert_eq!(field["type"], column["type"], "{path}");
            }
        }
    }
}

#[test]
fn only_the_decision_block_has_defaults() {
    let (group, request) = both();
    let has_default = |node: &Value| node.get("default").is_some();
    assert_eq!(paths(schema(&group, ""), has_default), Vec::<String>::new());
    assert_eq!(
        paths(schema(&request, ""), has_default),
        [
            ".spec.approved",
            ".spec.approvedBy",
            ".spec.cancelled",
            ".spec.decisionReason",
            ".spec.denied",
            ".spec.urgent"
        ]
    );
}

#[test]
fn no_field_takes_null() {
    let (group, request) = both();
    for crd in [&group, &request] {
        assert_eq!(
            paths(schema(crd, ""), |node| node.get("nullable") == Some(&json!(true))),
            [".status"]
        );
    }
}

#[test]
fn a_group_has_no_rule_at_its_root() {
    let (group, request) = both();
    assert!(schema(&group, "").get("x-kubernetes-validations").is_none());
    let rules = schema(&request, "/x-kubernetes-validations").as_array().unwrap();
    assert!(
        rules
            .iter()
            .all(|rule| rule["rule"].as_str().unwrap().contains("oldSelf")),
        "root rules speak of a change"
    );
}

#[test]
fn every_rule_has_a_message_and_none_guards_a_status() {
    let (group, request) = both();
    for crd in [&group, &request] {
        walk(schema(crd, ""), "", &mut |path, node| {
            for rule in node
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                assert!(
                    rule["message"].as_str().is_some_and(|message| message.len() > 10),
                    "{path}"
                );
                assert!(!path.starts_with(".status"), "{path}");
                assert!(!rule["rule"].as_str().unwrap().contains('@'), "{path}");
            }
        });
    }
}

#[test]
fn everything_in_a_spec_has_a_limit() {
    let (group, request) = both();
    for crd in [&group, &request] {
        let unlimited = paths(schema(crd, "/properties/spec"), |node| match node["type"].as_str() {
            Some("string") => ["maxLength", "enum", "format"]
                .iter()
                .all(|key| node.get(*key).is_none()),
            Some("array") => node.get("maxItems").is_none(),
            Some("object") => node.get("additionalProperties").is_some() && node.get("maxProperties").is_none(),
            _ => false,
        });
        assert_eq!(unlimited, Vec::<String>::new());
    }
}

#[test]
fn conditions_merge_by_type_and_demand_nothing_else() {
    let (group, request) = both();
    for crd in [&group, &request] {
        let list = schema(crd, "/properties/status/properties/conditions");
        assert_eq!(list["x-kubernetes-list-type"], json!("map"));
        assert_eq!(list["x-kubernetes-list-map-keys"], json!(["type"]));
        assert_eq!(list["items"]["required"], json!(["type"]));
    }
}

#[test]
fn the_yaml_is_the_definition_and_always_the_same() {
    for crd in all() {
        let text = to_yaml(&crd).unwrap();
        assert_eq!(text, to_yaml(&crd).unwrap());
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value(&crd));
    }
}
