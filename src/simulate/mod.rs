//! `sluice simulate`: replays releases through settings, offline.
//!
//! Owns the command: files in, a report out. Must not decide anything; `plan::simulation` does, with the operator's own code.

mod input;
mod report;
mod svg;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use jiff::Timestamp;

use crate::cli::{SimulateArguments, SimulationFormat};
use crate::plan::settings::{self, Settings};
use crate::plan::simulation::replay;
use report::Report;

/// Replays and writes the report.
///
/// # Errors
/// A file that cannot be read or has mistakes; a report that cannot be written.
pub fn run(arguments: &SimulateArguments, out: &mut impl Write) -> anyhow::Result<()> {
    let settings = settings(&arguments.settings)?;
    let groups = input::groups(&arguments.groups)?;
    let releases = input::releases(&arguments.releases)?;
    let (Some(first), Some(last)) = (releases.first(), releases.last()) else {
        bail!("{}: there is no release", arguments.releases.display());
    };
    let from = time(arguments.from.as_deref())?.unwrap_or(first.at);
    let until = match time(arguments.to.as_deref())? {
        Some(until) => until,
        None => last.at.saturating_add(jiff::SignedDuration::from_hours(30 * 24))?,
    };
    let cap = arguments.max_concurrent_rollouts;
    let mut outcomes = replay(&settings, cap, &groups, &releases, until);
    outcomes.retain(|outcome| outcome.finished.is_none_or(|finished| finished >= from));
    let report = Report {
        groups: &groups,
        releases: &releases,
        outcomes: &outcomes,
        from,
        until,
    };
    let text = match arguments.output {
        SimulationFormat::Text => report.text(),
        SimulationFormat::Json => report.json()?,
        SimulationFormat::Svg => svg::draw(&report),
    };
    out.write_all(text.as_bytes()).context("writing the report")
}

/// The settings of a `ConfigMap` manifest, or the bare text of its key `upgrades`.
fn settings(path: &Path) -> anyhow::Result<Settings> {
    let text = input::text(path)?;
    let upgrades = input::upgrades(&text).unwrap_or(text);
    settings::read(&upgrades).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}, key upgrades:\n{}", path.display(), lines.join("\n"))
    })
}

/// A time, or a date, which stands for its midnight in UTC.
fn time(text: Option<&str>) -> anyhow::Result<Option<Timestamp>> {
    let Some(text) = text else { return Ok(None) };
    let midnight = format!("{text}T00:00:00Z");
    let time = text.parse().or_else(|_| midnight.parse());
    Ok(Some(time.with_context(|| {
        format!("{text:?} is no time; write 2026-01-31 or 2026-01-31T18:00:00Z")
    })?))
}
