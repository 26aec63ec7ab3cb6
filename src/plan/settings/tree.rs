//! The text of settings as a tree that knows its lines.
//!
//! Owns the way from YAML to values with their line and path, and the mistakes found on it. Must not know any field; the
//! readers do. The YAML itself is read by a library, within its limits on depth, aliases and size.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{
    DuplicateKeyPolicy, Error, MergeKeyPolicy, MessageFormatter, Options, Spanned, UserMessageFormatter,
};

use super::SettingsError;

/// More than people write, less than hurts: bytes of the text, values in it (aliases counted as often as they are used), and
/// how deep they nest.
const LARGEST_TEXT: usize = 256 * 1024;
const MOST_VALUES: usize = 20_000;
const DEEPEST: usize = 24;

/// Keys that may have nothing behind them: a text that is not there is an empty one, and on locks there are words of their own.
const MAY_BE_BLANK: &[&str] = &["reason", "until", "locks"];

/// A value of the text.
#[derive(Clone, Debug)]
enum Value {
    Nothing,
    Flag(bool),
    Number(i64),
    Fraction,
    Text(String),
    List(Vec<Spanned<Value>>),
    Map(Vec<(Spanned<String>, Spanned<Value>)>),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Flag(_) => "true or false",
            Self::Number(_) | Self::Fraction => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Fraction, Value::Number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Fraction)
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<SettingsError>);

impl Mistakes {
    /// All, in the order of lines.
    pub fn in_order(mut self) -> Vec<SettingsError> {
        self.0.sort();
        self.0.dedup();
        self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A value with its place in the text.
#[derive(Clone, Debug)]
pub struct Item {
    value: Value,
    /// Line of the text, from 1.
    pub line: usize,
    /// Path, as `schedules[1].image`.
    pub path: String,
}

impl Item {
    /// The whole text.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let error = |line: usize, message: String| SettingsError {
            line,
            field: String::new(),
            message,
        };
        if text.len() > LARGEST_TEXT {
            return Err(error(1, format!("the text is longer than {} KiB", LARGEST_TEXT / 1024)));
        }
        match serde_saphyr::from_str_with_options::<Spanned<Value>>(text, options()) {
            Ok(root) => Ok(Self {
                value: root.value,
                line: line(root.referenced),
                path: String::new(),
            }),
            Err(found) => Err(error(found.location().map_or(1, line), words(&found))),
        }
    }

    /// The line of each path.
    pub fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        let mut nobody = Mistakes::default();
        let mut left = vec![self.clone()];
        while let Some(item) = left.pop() {
            lines.0.insert(item.path.clone(), item.line);
            match item.value {
                Value::List(_) => left.extend(item.list(&mut nobody)),
                Value::Map(_) => left.extend(item.entries(&mut nobody).into_iter().map(|(_, item)| item)),
                _ => {}
            }
        }
        lines
    }

    /// What stands under these keys, one within the other; this itself, or what is nearest to it, where nothing does.
    pub fn within(&self, keys: &[&str]) -> Item {
        let mut nobody = Mistakes::default();
        let mut found = self.clone();
        for key in keys {
            let Value::Map(_) = found.value else { break };
            let entries = found.entries(&mut nobody);
            let Some((_, item)) = entries.into_iter().find(|(known, _)| known == key) else {
                break;
            };
            found = item;
        }
        found
    }

    /// Notes a mistake here.
    pub fn mistake(&self, mistakes: &mut Mistakes, message: impl Into<String>) {
        mistakes.0.push(SettingsError {
            line: self.line,
            field: self.path.clone(),
            message: message.into(),
        });
    }

    fn wanted(&self, mistakes: &mut Mistakes, what: &str) {
        self.mistake(mistakes, format!("holds {}; write {what}", self.value.kind()));
    }

    /// Whether nothing stands here.
    pub fn is_nothing(&self) -> bool {
        matches!(self.value, Value::Nothing)
    }

    /// This very word.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.value, Value::Text(text) if text == word)
    }

    /// A text; numbers and the like have to be quoted.
    pub fn text(&self, mistakes: &mut Mistakes) -> Option<String> {
        if let Value::Text(text) = &self.value {
            return Some(text.clone());
        }
        self.wanted(mistakes, "a text, in quotes where it looks like something else");
        None
    }

    /// True or false.
    pub fn flag(&self, mistakes: &mut Mistakes) -> Option<bool> {
        if let Value::Flag(flag) = self.value {
            return Some(flag);
        }
        self.wanted(mistakes, "true or false");
        None
    }

    /// A number from 1.
    pub fn count(&self, mistakes: &mut Mistakes) -> Option<usize> {
        match &self.value {
            Value::Number(number) if *number > 0 => usize::try_from(*number).ok(),
            _ => {
                self.wanted(mistakes, "a number from 1");
                None
            }
        }
    }

    /// A list.
    pub fn list(&self, mistakes: &mut Mistakes) -> Vec<Item> {
        let Value::List(list) = &self.value else {
            self.wanted(mistakes, "a list");
            return Vec::new();
        };
        let items = list.iter().enumerate().map(|(index, item)| Item {
            value: item.value.clone(),
            line: line(item.referenced),
            path: format!("{}[{index}]", self.path),
        });
        items.collect()
    }

    /// A map with any keys.
    pub fn entries(&self, mistakes: &mut Mistakes) -> Vec<(String, Item)> {
        let Value::Map(map) = &self.value else {
            self.wanted(mistakes, "a map");
            return Vec::new();
        };
        let mut seen = BTreeSet::new();
        let mut entries = Vec::new();
        for (key, value) in map {
            let path = if self.path.is_empty() {
                key.value.clone()
            } else {
                format!("{}.{}", self.path, key.value)
            };
            let item = Item {
                value: value.value.clone(),
                line: line(key.referenced),
                path,
            };
            if seen.insert(&key.value) {
                entries.push((key.value.clone(), item));
            } else {
                item.mistake(mistakes, "stands here for the second time; keep one");
            }
        }
        entries
    }

    /// A map with these keys and no others.
    pub fn fields(&self, mistakes: &mut Mistakes, known: &[&str]) -> Fields {
        let mut fields = Vec::new();
        for (key, item) in self.entries(mistakes) {
            if !known.contains(&key.as_str()) {
                item.mistake(
                    mistakes,
                    format!("there is no such key; there are {}", known.join(", ")),
                );
                continue;
            }
            // An entry that lost its value must not widen a selector or drop a window.
            if item.is_nothing() && !MAY_BE_BLANK.contains(&key.as_str()) {
                item.mistake(mistakes, "says nothing; write a value, or leave the key out");
            }
            fields.push((key, item));
        }
        Fields(fields)
    }
}

/// The entries of a map.
pub struct Fields(Vec<(String, Item)>);

impl Fields {
    /// What stands under a key, if anything does.
    pub fn get(&self, key: &str) -> Option<&Item> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, item)| item).filter(|item| !item.is_nothing())
    }

    /// Whether a key is there, also with nothing behind it.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| known == key)
    }
}

/// The line of each path of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The line of a path, or of the nearest one around it.
    #[must_use]
    pub fn of(&self, path: &str) -> usize {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return *line;
            }
            let Some(end) = path.rfind(['.', '[']) else {
                return 1;
            };
            path = &path[..end];
        }
    }
}

/// Limits of the library, and what it leaves to us.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            flow_nesting_limit: DEEPEST,
            max_nodes: MOST_VALUES,
            max_events: 4 * MOST_VALUES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_VALUES,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// What the library found, for somebody who does not know it.
fn words(error: &Error) -> String {
    match error.without_snippet() {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => {
            format!("the text has more than {MOST_VALUES} values, or nests deeper than {DEEPEST}")
        }
        Error::MergeKeyNotAllowed { .. } => "<< is not understood here; write the entries out".to_owned(),
        Error::MultipleDocuments { .. } => "there is a second document; keep one".to_owned(),
        other => format!("this is no YAML: {}", UserMessageFormatter.format_message(other)),
    }
}

fn line(location: serde_saphyr::Location) -> usize {
    usize::try_from(location.line()).unwrap_or(1).max(1)
}
