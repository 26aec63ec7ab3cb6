//! What is understood and yet hardly meant: schedules that nothing comes to, windows that never open, locks that are over.
//!
//! Owns the warnings; they stop nothing. Must not read text or a clock.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::{GroupLabels, ImageRule, Lines, Rule, Schedule, Scope, Selector, Settings};
use crate::api::duration::format_duration;
use crate::plan::windows::{self, Standing};

/// Something that is hardly meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Line of the text, from 1.
    pub line: usize,
    /// Path of the field.
    pub field: String,
    /// What follows from it.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.field, self.message)
    }
}

/// All warnings, in the order of lines. With the groups of a cluster, also those about who is there.
#[must_use]
pub fn check(settings: &Settings, lines: &Lines, now: Timestamp, groups: Option<&[GroupLabels<'_>]>) -> Vec<Warning> {
    let mut check = Check {
        settings,
        lines,
        now,
        groups,
        warnings: Vec::new(),
    };
    check.locks();
    check.schedules();
    check.warnings.sort();
    check.warnings
}

/// How many groups each schedule is for: those that no earlier one takes.
#[must_use]
pub fn groups_of(settings: &Settings, schedule: &Schedule, groups: &[GroupLabels<'_>]) -> usize {
    let chosen = |labels: &&GroupLabels<'_>| {
        let first = settings.schedule(labels);
        first.is_some_and(|first| std::ptr::eq(first, schedule))
    };
    groups.iter().filter(chosen).count()
}

struct Check<'a> {
    settings: &'a Settings,
    lines: &'a Lines,
    now: Timestamp,
    groups: Option<&'a [GroupLabels<'a>]>,
    warnings: Vec<Warning>,
}

impl Check<'_> {
    fn warn(&mut self, field: String, message: String) {
        self.warnings.push(Warning {
            line: self.lines.of(&field),
            field,
            message,
        });
    }

    fn locks(&mut self) {
        for (index, rule) in self.settings.locks.iter().flatten().enumerate() {
            if rule.until.is_some_and(|until| until <= self.now) {
                let message = "is over: this lock holds nothing any more".to_owned();
                self.warn(format!("locks[{index}].until"), message);
            } else if self
                .groups
                .is_some_and(|groups| !groups.iter().any(|labels| rule.locks(labels)))
            {
                self.warn(format!("locks[{index}]"), "holds no group of this cluster".to_owned());
            }
        }
        let freeze = &self.settings.freeze;
        if freeze.enabled && !freeze.holds(self.now) {
            let message = "is over: the freeze holds nothing any more".to_owned();
            self.warn("freeze.until".to_owned(), message);
        }
    }

    fn schedules(&mut self) {
        let fleet = self.settings.max_concurrent_rollouts;
        for (index, schedule) in self.settings.schedules.iter().enumerate() {
            let field = |key: &str| format!("schedules[{index}].{key}");
            if let Some(why) = self.idle(schedule) {
                self.warn(field("match"), why);
            }
            if self.never_opens(schedule) {
                let by_itself = if decides(schedule) {
                    "also what is approved by itself"
                } else {
                    "what is approved"
                };
                let message = format!("no window ever opens from now on; {by_itself} waits for good");
                self.warn(field("windows"), message);
            }
            if let Some((all, own)) = fleet
                .zip(schedule.max_concurrent_rollouts)
                .filter(|(all, own)| own > all)
            {
                let message = format!("{own} are never reached: the whole fleet has {all}");
                self.warn(field("maxConcurrentRollouts"), message);
            }
            if let Some(image) = &schedule.image {
                self.soak(index, schedule, image);
            }
        }
    }

    fn soak(&mut self, index: usize, schedule: &Schedule, image: &ImageRule) {
        let Some(soak) = &image.soak else { return };
        let Some(proving) = self.settings.schedule_named(&soak.schedule) else {
            return;
        };
        let field = format!("schedules[{index}].image.soak.schedule");
        let name = &proving.name;
        if self.waits_for_itself(schedule) {
            let message = format!("{name} waits for proof by this schedule, and this one for proof by {name}");
            self.warn(field, message);
            return;
        }
        if let Some(why) = self.idle(proving) {
            self.warn(field, format!("{name} can prove nothing: {why}"));
        } else if self.never_opens(proving) {
            self.warn(
                field,
                format!("{name} can prove nothing: no window of it ever opens from now on"),
            );
        }
        let before = proving.image.as_ref().map_or(SignedDuration::ZERO, |image| image.after);
        let earliest = before.saturating_add(soak.lasts);
        if image.after < earliest {
            let message = format!(
                "{} are not what counts: {name} takes an image after {} and proves it for {}",
                length(image.after),
                length(before),
                length(soak.lasts)
            );
            self.warn(format!("schedules[{index}].image.after"), message);
        }
    }

    /// Why a schedule is for no group, if so.
    fn idle(&self, schedule: &Schedule) -> Option<String> {
        let earlier = self
            .settings
            .schedules
            .iter()
            .take_while(|other| !std::ptr::eq(*other, schedule));
        if let Some(wider) = { earlier }.find(|other| contains(&other.scope, &schedule.scope)) {
            return Some(format!(
                "schedule {} comes first and takes every group of it",
                wider.name
            ));
        }
        let groups = self.groups?;
        if groups_of(self.settings, schedule, groups) > 0 {
            return None;
        }
        let matched = groups.iter().filter(|labels| schedule.scope.contains(labels)).count();
        Some(match matched {
            0 => "no group of this cluster matches".to_owned(),
            1 => "an earlier schedule takes the only group that matches".to_owned(),
            many => format!("earlier schedules take all {many} groups that match"),
        })
    }

    fn never_opens(&self, schedule: &Schedule) -> bool {
        let standing = windows::standing(&schedule.windows, self.now);
        matches!(standing, Standing::Closed { opens: None, .. })
    }

    /// Whether the proofs that a schedule waits for wait for it, by way of others perhaps.
    fn waits_for_itself(&self, schedule: &Schedule) -> bool {
        let mut next = schedule;
        for _ in &self.settings.schedules {
            let soak = next.image.as_ref().and_then(|image| image.soak.as_ref());
            let Some(proving) = soak.and_then(|soak| self.settings.schedule_named(&soak.schedule)) else {
                return false;
            };
            if std::ptr::eq(proving, schedule) {
                return true;
            }
            next = proving;
        }
        false
    }
}

/// Whether a schedule approves anything by itself. A rollback of AWS, which all do unless told otherwise, is rare.
fn decides(schedule: &Schedule) -> bool {
    let rules = [schedule.spec, schedule.kubernetes_version, schedule.adoption];
    schedule.image.is_some() || rules.iter().any(|rule| *rule != Rule::Manual)
}

fn length(length: SignedDuration) -> String {
    format_duration(length.unsigned_abs())
}

/// Whether one scope surely has every group of another: it asks for nothing that the other does not ask for.
fn contains(wide: &Scope, narrow: &Scope) -> bool {
    let all = |wide: &Selector, narrow: &Selector| {
        let mut wanted = wide.requirements.iter();
        wanted.all(|requirement| narrow.requirements.contains(requirement))
    };
    all(&wide.namespace, &narrow.namespace) && all(&wide.group, &narrow.group)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::plan::settings::read_with_lines;

    fn warnings(text: &str, tiers: Option<&[&str]>) -> Vec<String> {
        let (settings, lines) = read_with_lines(text).unwrap();
        let namespace = BTreeMap::new();
        let labels: Vec<BTreeMap<String, String>> = tiers
            .unwrap_or_default()
            .iter()
            .map(|tier| BTreeMap::from([("instancemgr.keikoproj.io/tier".to_owned(), (*tier).to_owned())]))
            .collect();
        let groups: Vec<GroupLabels<'_>> = labels
            .iter()
            .map(|group| GroupLabels {
                namespace: &namespace,
                group,
            })
            .collect();
        let now = "2026-12-01T00:00:00Z".parse().unwrap();
        let found = check(&settings, &lines, now, tiers.map(|_| groups.as_slice()));
        found.iter().map(ToString::to_string).collect()
    }

    /// A schedule for a tier in the flow style, on one line.
    fn tier(name: &str, rest: &str) -> String {
        format!(
            "- {{name: {name}, match: {{groupSelector: {{matchLabels: {{instancemgr.keikoproj.io/tier: {name}}}}}}}{rest}}}\n"
        )
    }

    fn schedules(of: &[String]) -> String {
        format!("schedules:\n{}", of.concat())
    }

    #[test]
    fn sound_settings_give_no_warning() {
        let text = schedules(&[
            tier("dev", ", image: {after: 0s}"),
            tier("staging", ""),
            tier(
                "prod",
                ", image: {after: 7d, soak: {schedule: staging, for: 7d}}, windows: [{kind: allow, schedule: 0 2 29 2 *, duration: 1h}]",
            ),
        ]);
        let text = format!(
            "locks: [{{until: 2026-12-01T00:00:01Z}}]\nfreeze: {{enabled: true}}\nmaxConcurrentRollouts: 2\n{text}"
        );
        assert_eq!(warnings(&text, None), Vec::<String>::new());
        assert_eq!(warnings(&text, Some(&["dev", "staging", "prod"])), Vec::<String>::new());
    }

    #[test]
    fn what_is_over_is_named() {
        let text =
            "locks:\n- {}\n- until: 2026-12-01T00:00:00Z\nfreeze:\n  enabled: true\n  until: 2026-11-30T00:00:00Z\n";
        assert_eq!(
            warnings(text, None),
            [
                "line 3: locks[1].until: is over: this lock holds nothing any more",
                "line 6: freeze.until: is over: the freeze holds nothing any more",
            ]
        );
    }

    #[test]
    fn a_schedule_that_nothing_comes_to_is_named() {
        let text = schedules(&["- {name: all, match: {}}\n".to_owned(), tier("prod", "")]);
        let shadowed = "line 3: schedules[1].match: schedule all comes first and takes every group of it";
        assert_eq!(warnings(&text, None), [shadowed]);
        // The same in other words: more is asked for than before.
        let narrow = "- {name: b, match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: x}}, groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: a}}}}\n";
        let text = schedules(&[tier("a", ""), narrow.to_owned()]);
        assert_eq!(
            warnings(&text, None),
            ["line 3: schedules[1].match: schedule a comes first and takes every group of it"]
        );
        let text = schedules(&[narrow.to_owned(), tier("a", "")]);
        assert_eq!(warnings(&text, None), Vec::<String>::new());
    }

    #[test]
    fn with_a_cluster_those_without_a_group_are_named() {
        let some = "- {name: some, match: {groupSelector: {matchExpressions: [{key: instancemgr.keikoproj.io/tier, operator: In, values: [a, b]}]}}}\n";
        let lock = "locks:\n- groupSelector: {matchLabels: {instancemgr.keikoproj.io/tier: x}}\n";
        let text = format!(
            "{lock}{}",
            schedules(&[some.to_owned(), tier("a", ""), tier("b", ""), tier("c", "")])
        );
        assert_eq!(warnings(&text, None), Vec::<String>::new());
        assert_eq!(
            warnings(&text, Some(&["a", "a", "b"])),
            [
                "line 2: locks[0]: holds no group of this cluster",
                "line 5: schedules[1].match: earlier schedules take all 2 groups that match",
                "line 6: schedules[2].match: an earlier schedule takes the only group that matches",
                "line 7: schedules[3].match: no group of this cluster matches",
            ]
        );
    }

    #[test]
    fn windows_that_never_open_are_named() {
        let past = ", windows: [{kind: allow, from: 2020-01-01, to: 2020-01-02}]";
        let covered = ", image: {after: 0s}, windows: [{kind: allow, schedule: 0 2 * * *, duration: 1h}, {kind: deny, schedule: 0 0 * * *, duration: 24h}]";
        let text = schedules(&[tier("a", past), tier("b", covered)]);
        assert_eq!(
            warnings(&text, None),
            [
                "line 2: schedules[0].windows: no window ever opens from now on; what is approved waits for good",
                "line 3: schedules[1].windows: no window ever opens from now on; also what is approved by itself waits for good",
            ]
        );
    }

    #[test]
    fn proof_that_cannot_come_in_time_is_named() {
        let soak = |of: &str, after: &str| format!(", image: {{after: {after}, soak: {{schedule: {of}, for: 2d}}}}");
        let never = ", image: {after: 2d}, windows: [{kind: allow, from: 2020-01-01, to: 2020-01-02}]";
        let text = schedules(&[tier("a", &soak("b", "3d")), tier("b", never)]);
        assert_eq!(
            warnings(&text, None),
            [
                "line 2: schedules[0].image.after: 3d are not what counts: b takes an image after 2d and proves it for 2d",
                "line 2: schedules[0].image.soak.schedule: b can prove nothing: no window of it ever opens from now on",
                "line 3: schedules[1].windows: no window ever opens from now on; also what is approved by itself waits for good",
            ]
        );
        let circle = schedules(&[
            tier("a", &soak("b", "9d")),
            tier("b", &soak("c", "9d")),
            tier("c", &soak("a", "9d")),
        ]);
        assert_eq!(warnings(&circle, None).len(), 3);
        assert!(warnings(&circle, None)[0].contains("b waits for proof by this schedule"));
        let empty = schedules(&[tier("a", &soak("b", "9d")), tier("b", "")]);
        assert_eq!(
            warnings(&empty, Some(&["a"])),
            [
                "line 2: schedules[0].image.soak.schedule: b can prove nothing: no group of this cluster matches",
                "line 3: schedules[1].match: no group of this cluster matches",
            ]
        );
    }

    #[test]
    fn a_cap_above_that_of_the_fleet_is_named() {
        let text = format!(
            "maxConcurrentRollouts: 2\n{}",
            schedules(&[tier("a", ", maxConcurrentRollouts: 3")])
        );
        assert_eq!(
            warnings(&text, None),
            ["line 3: schedules[0].maxConcurrentRollouts: 3 are never reached: the whole fleet has 2"]
        );
    }
}
