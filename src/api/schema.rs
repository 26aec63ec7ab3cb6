//! Adjustments between Rust types and the structural schema that the API server enforces.
//!
//! Owns what derives cannot say: optional fields are absent rather than null, maps and foreign
//! types carry size limits, conditions written before this operator are still read. It must not
//! hold rules of one kind only; those stand beside their fields.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::Rule;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads an optional text and takes the empty one as absent.
///
/// # Errors
///
/// Fails when the value is neither null nor text.
pub(crate) fn filled<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

/// Something that holds, does not hold, or cannot be told.
// Only `type` is demanded: conditions written before this operator hold a type and a status and
// nothing else.
#[derive(JsonSchema, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredCondition {
    /// What the condition speaks of.
    #[serde(rename = "type")]
    type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// When the status changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<Time>,
    /// Generation of the object that the condition speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
}

/// Reads conditions, also those that lack everything but a type. A missing time is taken as the
/// beginning of 1970.
///
/// # Errors
///
/// Fails when the value is not a list of conditions.
pub(crate) fn stored_conditions<'de, D>(deserializer: D) -> Result<Vec<Condition>, D::Error>
where
    D: Deserializer<'de>,
{
    let stored = Option::<Vec<StoredCondition>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(stored.into_iter().map(Condition::from).collect())
}

impl From<StoredCondition> for Condition {
    fn from(stored: StoredCondition) -> Self {
        Self {
            last_transition_time: stored.last_transition_time.unwrap_or(Time(Timestamp::UNIX_EPOCH)),
            message: stored.message.unwrap_or_default(),
            observed_generation: stored.observed_generation,
            reason: stored.reason.unwrap_or_default(),
            status: stored.status.unwrap_or_default(),
            type_: stored.type_,
        }
    }
}

/// A rule over several fields, written with `@` for the object. An update passes also when the
/// stored object breaks the rule already: the API server by itself lets only an untouched object
/// pass, and then a group that breaks one rule could not be edited anywhere near.
pub(crate) fn unless_stored(rule: &str, message: &str) -> Rule {
    let (new, old) = (rule.replace('@', "self"), rule.replace('@', "old"));
    Rule::new(format!("({new}) || oldSelf.optMap(old, !({old})).orValue(false)"))
        .message(message)
        .optional_old_self(true)
}

/// Makes optional fields absent rather than null, through the whole schema. The API server then
/// refuses an explicit null, and rules need not tell null from absent.
pub(crate) fn absent_not_null(schema: &mut Schema) {
    transform_subschemas(&mut absent_not_null, schema);
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("nullable");
    if object.contains_key("x-kubernetes-int-or-string") {
        // Said in so many words: what runs after this takes silence for consent.
        object.insert("nullable".to_owned(), false.into());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// Limits a map, or each map of a list, to a number of entries and a length of their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapLimit {
    /// Most entries.
    pub(crate) entries: u32,
    /// Most characters of a value.
    pub(crate) value: u32,
}

impl Transform for MapLimit {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        if let Some(values) = object.get_mut("additionalProperties").and_then(Value::as_object_mut) {
            values.insert("maxLength".to_owned(), self.value.into());
            object.insert("maxProperties".to_owned(), self.entries.into());
        }
    }
}

/// Limits every text within a schema that comes from another crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLimit(pub(crate) u32);

impl Transform for TextLimit {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        let is_text = object.get("type").is_some_and(|name| name == "string");
        if is_text && !object.contains_key("format") {
            object.entry("maxLength").or_insert_with(|| self.0.into());
        }
    }
}
