//! The files of a simulation.
//!
//! Owns their form. Must not judge settings; `plan::settings` does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, ensure};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::api::duration::parse_duration;
use crate::plan::simulation::{Group, Release};

/// Groups of a fleet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fleet {
    /// Labels of namespaces, by name.
    #[serde(default)]
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    groups: Vec<GroupEntry>,
}

/// A group, or several alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GroupEntry {
    namespace: String,
    name: String,
    /// That many, called `name-1` and so on.
    count: Option<usize>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// Nodes; 1 if absent.
    nodes: Option<u32>,
    /// How long a node takes, drain and boot; 5m if absent.
    per_node: Option<String>,
    /// Nodes at the same time; 1 if absent.
    at_once: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseEntry {
    at: String,
    image: String,
    withdrawn: Option<String>,
}

/// A file's text.
pub fn text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Key `upgrades` of a `ConfigMap` manifest; none where the text is something else.
pub fn upgrades(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Manifest {
        kind: String,
        data: BTreeMap<String, String>,
    }
    let manifest: Manifest = serde_saphyr::from_str(text).ok()?;
    (manifest.kind == "ConfigMap").then_some(())?;
    manifest.data.get("upgrades").cloned()
}

/// The groups of a file.
pub fn groups(path: &Path) -> anyhow::Result<Vec<Group>> {
    let fleet: Fleet = serde_saphyr::from_str(&text(path)?).with_context(|| path.display().to_string())?;
    let mut groups = Vec::new();
    let mut names = BTreeSet::new();
    for entry in fleet.groups {
        let namespace_labels = labels(&fleet.namespaces, &entry.namespace);
        let of_one = entry.per_node.as_deref().unwrap_or("5m");
        let per_node = parse_duration(of_one).and_then(|length| SignedDuration::try_from(length).ok());
        let per_node = per_node.with_context(|| format!("{}: perNode {of_one:?} is no duration", entry.name))?;
        let (nodes, at_once) = (entry.nodes.unwrap_or(1), entry.at_once.unwrap_or(1).max(1));
        let rounds = i32::try_from(nodes.div_ceil(at_once)).context("so many nodes")?;
        let takes = per_node.checked_mul(rounds).context("so long a rollout")?;
        let all = match entry.count {
            None => vec![entry.name.clone()],
            Some(count) => (1..=count).map(|number| format!("{}-{number}", entry.name)).collect(),
        };
        for name in all {
            let known = !names.insert((entry.namespace.clone(), name.clone()));
            ensure!(!known, "{}: {}/{name} is there twice", path.display(), entry.namespace);
            groups.push(Group {
                namespace: entry.namespace.clone(),
                name,
                namespace_labels: namespace_labels.clone(),
                labels: entry.labels.clone(),
                annotations: entry.annotations.clone(),
                takes,
            });
        }
    }
    Ok(groups)
}

/// A namespace's labels, with the one that the API server puts on each.
fn labels(namespaces: &BTreeMap<String, BTreeMap<String, String>>, name: &str) -> BTreeMap<String, String> {
    let mut labels = namespaces.get(name).cloned().unwrap_or_default();
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.to_owned());
    labels
}

/// The releases of a file, oldest first.
pub fn releases(path: &Path) -> anyhow::Result<Vec<Release>> {
    let entries: Vec<ReleaseEntry> =
        serde_saphyr::from_str(&text(path)?).with_context(|| path.display().to_string())?;
    let time = |text: &str| -> anyhow::Result<Timestamp> {
        text.parse()
            .with_context(|| format!("{}: {text:?} is no time such as 2026-01-31T18:00:00Z", path.display()))
    };
    let mut releases = Vec::new();
    for entry in entries {
        let (at, withdrawn) = (time(&entry.at)?, entry.withdrawn.as_deref().map(time).transpose()?);
        ensure!(
            withdrawn.is_none_or(|withdrawn| withdrawn > at),
            "{}: {} is withdrawn before it is released",
            path.display(),
            entry.image
        );
        releases.push(Release {
            at,
            image: entry.image,
            withdrawn,
        });
    }
    releases.sort_by_key(|release| release.at);
    Ok(releases)
}
