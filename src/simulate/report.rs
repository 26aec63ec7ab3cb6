//! The report of a simulation, as text and as JSON.
//!
//! Owns what people read. Must not compute anything that is not in the outcomes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::plan::simulation::{Group, Outcome, Release};

/// What was replayed, and what came of it.
pub struct Report<'a> {
    pub groups: &'a [Group],
    pub releases: &'a [Release],
    pub outcomes: &'a [Outcome],
    pub from: Timestamp,
    pub until: Timestamp,
}

impl Report<'_> {
    /// One line a group and release, then a summary.
    pub fn text(&self) -> String {
        let mut lines = vec![
            [
                "OPENED",
                "GROUP",
                "IMAGE",
                "APPROVED",
                "BY",
                "STARTED",
                "FINISHED",
                "WAITED FOR",
            ]
            .map(str::to_owned),
        ];
        lines.extend(self.outcomes.iter().map(|outcome| {
            [
                shown(Some(outcome.opened)),
                self.name(outcome),
                outcome.image.clone(),
                shown(outcome.approved),
                outcome.by.clone().unwrap_or_else(|| "-".to_owned()),
                shown(outcome.started),
                match &outcome.dropped {
                    Some(why) => format!("dropped: {why}"),
                    None => shown(outcome.finished),
                },
                if outcome.waited.is_empty() {
                    "-".to_owned()
                } else {
                    outcome.waited.join("; ")
                },
            ]
        }));
        let mut widths = [0; 8];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for line in &lines {
            let cells: Vec<String> = line
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            let _ = writeln!(text, "{}", cells.join("  ").trim_end());
        }
        text.push('\n');
        text.push_str(&self.summary());
        text
    }

    fn name(&self, outcome: &Outcome) -> String {
        let group = self.groups.get(outcome.group);
        group
            .map(|group| format!("{}/{}", group.namespace, group.name))
            .unwrap_or_default()
    }

    /// For each approver: how many, and how long from the opening to the last node.
    fn summary(&self) -> String {
        let mut by: BTreeMap<&str, Vec<SignedDuration>> = BTreeMap::new();
        let (mut open, mut dropped) = (0, 0);
        for outcome in self.outcomes {
            match (outcome.finished, &outcome.dropped) {
                (Some(finished), _) => {
                    let lasted = finished.duration_since(outcome.opened);
                    by.entry(outcome.by.as_deref().unwrap_or("-")).or_default().push(lasted);
                }
                (None, Some(_)) => dropped += 1,
                (None, None) => open += 1,
            }
        }
        let mut text = format!(
            "{} groups, {} releases, {} to {}: {} done, {dropped} dropped, {open} open\n",
            self.groups.len(),
            self.releases.len(),
            shown(Some(self.from)),
            shown(Some(self.until)),
            by.values().map(Vec::len).sum::<usize>(),
        );
        for (name, mut times) in by {
            times.sort();
            let middle = times.get(times.len() / 2).copied().unwrap_or_default();
            let longest = times.last().copied().unwrap_or_default();
            let _ = writeln!(
                text,
                "  {name}: {} done, half of them within {}, all within {}",
                times.len(),
                length(middle),
                length(longest)
            );
        }
        text
    }

    /// Everything, for programs.
    pub fn json(&self) -> anyhow::Result<String> {
        let outcomes: Vec<_> = self
            .outcomes
            .iter()
            .map(|outcome| {
                json!({
                    "group": self.name(outcome), "image": outcome.image, "opened": outcome.opened,
                    "approved": outcome.approved, "by": outcome.by, "started": outcome.started,
                    "finished": outcome.finished, "waitedFor": outcome.waited, "dropped": outcome.dropped,
                })
            })
            .collect();
        let all = json!({ "from": self.from, "to": self.until, "outcomes": outcomes });
        Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
    }
}

/// A time to the minute, in UTC.
pub fn shown(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Days and hours, or hours and minutes.
fn length(length: SignedDuration) -> String {
    let minutes = length.as_mins();
    let (days, hours) = (minutes / 1440, minutes / 60 % 24);
    if days > 0 {
        format!("{days}d{hours}h")
    } else {
        format!("{hours}h{}m", minutes % 60)
    }
}
