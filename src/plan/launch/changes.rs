//! What differs between two sets of launch inputs, for the person who approves.
//!
//! Owns the list in `spec.target.changes`. User data appears as digest and line count only. Must not judge whether
//! a difference matters: the fingerprint does.

use serde_json::Value;

use super::inputs::LaunchInputs;
use crate::api::upgrade_request::TargetChange;

/// Longest value shown, in characters; an approver needs to see what kind of change it is, not a whole list.
const SHOWN: usize = 256;

/// The changes from one set of inputs to another, by field.
#[must_use]
pub fn changes(from: &LaunchInputs, to: &LaunchInputs) -> Vec<TargetChange> {
    let (Ok(Value::Object(before)), Ok(Value::Object(after))) = (serde_json::to_value(from), serde_json::to_value(to))
    else {
        return Vec::new();
    };
    let mut list = Vec::new();
    for (field, new) in &after {
        let old = before.get(field).unwrap_or(&Value::Null);
        if field == "user_data" {
            if from.user_data != to.user_data {
                list.push(TargetChange {
                    path: "userData".to_owned(),
                    from: Some(from.user_data_summary()),
                    to: Some(to.user_data_summary()),
                });
            }
        } else {
            compare(&camel_case(field), old, new, &mut list);
        }
    }
    list
}

/// Adds what differs below `path`: objects field by field, everything else as a whole.
fn compare(path: &str, old: &Value, new: &Value, list: &mut Vec<TargetChange>) {
    if old == new {
        return;
    }
    if let (Value::Object(before), Value::Object(after)) = (old, new) {
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let below = format!("{path}.{}", camel_case(key));
            compare(
                &below,
                before.get(key).unwrap_or(&Value::Null),
                after.get(key).unwrap_or(&Value::Null),
                list,
            );
        }
        return;
    }
    list.push(TargetChange {
        path: path.to_owned(),
        from: shown(old),
        to: shown(new),
    });
}

/// A value as people read it; `None` for nothing.
fn shown(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= SHOWN {
        return Some(text);
    }
    Some(text.chars().take(SHOWN - 1).chain(['…']).collect())
}

/// A field's name as the manifest spells such names.
fn camel_case(field: &str) -> String {
    let mut words = field.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::test_world::inputs;
    use pretty_assertions::assert_eq;

    fn row(path: &str, from: Option<&str>, to: Option<&str>) -> TargetChange {
        TargetChange {
            path: path.to_owned(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        }
    }

    #[test]
    fn equal_inputs_have_no_changes() {
        assert_eq!(changes(&inputs("ami-1"), &inputs("ami-1")), []);
    }

    #[test]
    fn each_field_is_named_with_both_values() {
        let from = inputs("ami-1");
        let mut to = inputs("ami-2");
        to.key_name = Some("ops".to_owned());
        to.metadata.http_put_hop_limit = Some(2);
        to.security_group_ids.insert("sg-9".to_owned());
        assert_eq!(
            changes(&from, &to),
            [
                row("imageId", Some("ami-1"), Some("ami-2")),
                row("keyName", None, Some("ops")),
                row("metadata.httpPutHopLimit", None, Some("2")),
                row("securityGroupIds", Some(r#"["sg-1"]"#), Some(r#"["sg-1","sg-9"]"#)),
            ]
        );
    }

    #[test]
    fn user_data_is_never_shown() {
        let mut from = inputs("ami-1");
        from.user_data = "password=old\n".to_owned();
        let mut to = from.clone();
        to.user_data = "password=new\nline\n".to_owned();
        let list = changes(&from, &to);
        assert_eq!(list.len(), 1);
        let shown = format!("{list:?}");
        assert!(
            shown.contains("(1 lines)") && shown.contains("(2 lines)") && !shown.contains("password"),
            "{shown}"
        );
        assert!(!format!("{from:?}").contains("password"));
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(shown(&Value::String("x".repeat(SHOWN))), Some("x".repeat(SHOWN)));
        let cut = shown(&Value::String("x".repeat(SHOWN + 1))).unwrap();
        assert_eq!(cut.chars().count(), SHOWN);
        assert!(cut.ends_with('…'));
    }
}
