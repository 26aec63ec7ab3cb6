//! The report of a simulation as a picture: a line for each group, a bar for each upgrade.
//!
//! Owns the drawing. A pale bar is the wait for approval, a middle one the wait for a turn, a dark one the rollout.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::report::{Report, shown};

/// Groups that are drawn; more would be no picture.
const GROUPS: usize = 200;
const LEFT: f64 = 220.0;
const WIDTH: f64 = 1200.0;
const LINE: f64 = 18.0;
const TOP: f64 = 40.0;

/// Draws it.
pub fn draw(report: &Report<'_>) -> String {
    let groups = report.groups.len().min(GROUPS);
    let span = report.until.duration_since(report.from).as_secs_f64().max(1.0);
    let at = |time: Timestamp| {
        let part = time.duration_since(report.from).as_secs_f64() / span;
        LEFT + part.clamp(0.0, 1.0) * WIDTH
    };
    let line = |group: usize| TOP + LINE * f64::from(u32::try_from(group).unwrap_or(u32::MAX));
    let (width, height) = (LEFT + WIDTH + 20.0, line(groups) + 20.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n"
    );
    for release in report
        .releases
        .iter()
        .filter(|release| release.at >= report.from && release.at <= report.until)
    {
        let (x, colour) = (
            at(release.at),
            if release.withdrawn.is_some() { "#c33" } else { "#bbb" },
        );
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.0}\" y2=\"{:.0}\" stroke=\"{colour}\"><title>{} {}</title></line>",
            TOP - 10.0,
            line(groups),
            escaped(&release.image),
            shown(Some(release.at))
        );
    }
    for (index, group) in report.groups.iter().take(groups).enumerate() {
        let name = escaped(&format!("{}/{}", group.namespace, group.name));
        let _ = writeln!(svg, "<text x=\"4\" y=\"{:.0}\">{name}</text>", line(index) + 12.0);
    }
    let mut bar = |group: usize, from: Timestamp, to: Timestamp, colour: &str, title: &str| {
        let (x, end) = (at(from), at(to));
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"12\" fill=\"{colour}\"><title>{}</title></rect>",
            line(group) + 3.0,
            (end - x).max(1.0),
            escaped(title)
        );
    };
    for outcome in report.outcomes.iter().filter(|outcome| outcome.group < groups) {
        let end = outcome.finished.unwrap_or(report.until);
        let approved = outcome.approved.unwrap_or(if outcome.dropped.is_some() {
            // When it was dropped is not told; a mark at its opening.
            outcome
                .opened
                .saturating_add(SignedDuration::from_hours(1))
                .unwrap_or(end)
        } else {
            end
        });
        let started = outcome
            .started
            .unwrap_or(if outcome.approved.is_some() { end } else { approved });
        let title = format!("{}: {}", outcome.image, outcome.waited.join("; "));
        bar(outcome.group, outcome.opened, approved, "#cfe2f3", &title);
        if started > approved {
            bar(outcome.group, approved, started, "#6fa8dc", &title);
        }
        if outcome.started.is_some() {
            bar(outcome.group, started, end, "#0b5394", &title);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
