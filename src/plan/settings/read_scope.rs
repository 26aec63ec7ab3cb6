//! Reading label selectors.
//!
//! Owns which labels a selector may look at: those with our prefix, and the name of a namespace. Tenants own all others, and
//! could choose their lock and schedule by them.

use super::tree::{Fields, Item, Mistakes};
use super::{Requirement, Scope, Selector};
use crate::api::PREFIX;

/// The label that the API server puts on each namespace itself.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The selectors among the fields of a lock, an exception or a schedule.
pub fn scope(fields: &Fields, mistakes: &mut Mistakes) -> Scope {
    let mut selector_of = |key: &str, namespaces: bool| {
        let item = fields.get(key);
        item.map(|item| selector(item, namespaces, mistakes))
            .unwrap_or_default()
    };
    Scope {
        namespace: selector_of("namespaceSelector", true),
        group: selector_of("groupSelector", false),
    }
}

fn selector(item: &Item, namespaces: bool, mistakes: &mut Mistakes) -> Selector {
    let fields = item.fields(mistakes, &["matchLabels", "matchExpressions"]);
    let mut requirements = Vec::new();
    if let Some(labels) = fields.get("matchLabels") {
        for (key, item) in labels.entries(mistakes) {
            allowed(&item, &key, namespaces, mistakes);
            if let Some(value) = value(&item, mistakes) {
                requirements.push(Requirement::In(key, vec![value]));
            }
        }
    }
    if let Some(expressions) = fields.get("matchExpressions") {
        for expression in expressions.list(mistakes) {
            requirements.extend(requirement(&expression, namespaces, mistakes));
        }
    }
    Selector { requirements }
}

fn requirement(item: &Item, namespaces: bool, mistakes: &mut Mistakes) -> Option<Requirement> {
    let fields = item.fields(mistakes, &["key", "operator", "values"]);
    let Some(key_item) = fields.get("key") else {
        item.mistake(mistakes, "has no key");
        return None;
    };
    let key = key_item.text(mistakes)?;
    allowed(key_item, &key, namespaces, mistakes);
    let values: Option<Vec<String>> = fields.get("values").map(|values| {
        let list = values.list(mistakes);
        list.iter().filter_map(|item| value(item, mistakes)).collect()
    });
    let operator = fields.get("operator").and_then(|operator| operator.text(mistakes));
    let with_values = |mistakes: &mut Mistakes| {
        let values = values.clone().filter(|values| !values.is_empty());
        if values.is_none() {
            item.mistake(mistakes, "needs values, at least one");
        }
        values
    };
    match operator.as_deref() {
        Some("In") => Some(Requirement::In(key, with_values(mistakes)?)),
        Some("NotIn") => Some(Requirement::NotIn(key, with_values(mistakes)?)),
        Some(operator @ ("Exists" | "DoesNotExist")) => {
            if values.is_some_and(|values| !values.is_empty()) {
                item.mistake(mistakes, format!("{operator} takes no values"));
            }
            Some(if operator == "Exists" {
                Requirement::Exists(key)
            } else {
                Requirement::DoesNotExist(key)
            })
        }
        _ => {
            item.mistake(mistakes, "write operator: In, NotIn, Exists or DoesNotExist");
            None
        }
    }
}

/// A value that a label can have; none would ever match what it cannot.
fn value(item: &Item, mistakes: &mut Mistakes) -> Option<String> {
    let value = item.text(mistakes)?;
    if value.is_empty() || is_label(&value) {
        return Some(value);
    }
    item.mistake(
        mistakes,
        format!(
            "no label has the value {value:?}: at most 63 letters, digits, -, _ and ., at the ends letters or digits"
        ),
    );
    None
}

/// Whether labels may have this as a value, or as their name.
fn is_label(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&letter);
    let end = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= 63 && text.starts_with(end) && text.ends_with(end) && text.chars().all(inner)
}

/// Notes a label that a selector may not look at.
fn allowed(item: &Item, key: &str, namespaces: bool, mistakes: &mut Mistakes) {
    let ours = key.strip_prefix(PREFIX).is_some_and(is_label);
    if ours || (namespaces && key == NAMESPACE_NAME) {
        return;
    }
    let also = if namespaces {
        format!(", or {NAMESPACE_NAME}")
    } else {
        String::new()
    };
    item.mistake(
        mistakes,
        format!("tenants may change label {key:?} themselves; use one under {PREFIX}{also}"),
    );
}
