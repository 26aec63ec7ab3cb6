//! `sluice settings check`: what a text of settings means, before it is in force.
//!
//! Owns what is read and how it is printed. Must not judge; `plan::settings` does, in the words that the operator uses.

mod live;
mod manifest;

use std::io::{Read as _, Write};

use anyhow::Context as _;
use jiff::Timestamp;

use crate::cli::CheckSettingsArguments;
use crate::plan::settings::{check, read_with_lines, summary};
use live::Groups;

/// Checks a file and prints what it says. Answers whether it would be taken.
///
/// # Errors
/// When the file or the cluster cannot be read.
pub async fn check_file(
    arguments: &CheckSettingsArguments,
    now: Timestamp,
    mut output: impl Write,
) -> anyhow::Result<bool> {
    let file = if arguments.file == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read from standard input")?;
        text
    } else {
        std::fs::read_to_string(&arguments.file).with_context(|| format!("cannot read {}", arguments.file))?
    };
    let groups = if arguments.live {
        Some(live::groups(arguments.kubeconfig.as_deref()).await?)
    } else {
        None
    };
    report(&arguments.file, &file, groups.as_ref(), now, &mut output)
}

fn report(
    name: &str,
    file: &str,
    groups: Option<&Groups>,
    now: Timestamp,
    output: &mut impl Write,
) -> anyhow::Result<bool> {
    let found = match manifest::find(file) {
        Ok(found) => found,
        Err(why) => {
            writeln!(output, "{name}: {why}")?;
            return Ok(false);
        }
    };
    let (settings, lines) = match read_with_lines(&found.text) {
        Ok(read) => read,
        Err(mistakes) => {
            for mistake in mistakes {
                let field = if mistake.field.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", mistake.field)
                };
                writeln!(
                    output,
                    "{name}:{}: {field}{}",
                    found.line(mistake.line),
                    mistake.message
                )?;
            }
            return Ok(false);
        }
    };
    let labels = groups.map(Groups::labels);
    for warning in check(&settings, &lines, now, labels.as_deref()) {
        let line = found.line(warning.line);
        writeln!(output, "{name}:{line}: warning: {}: {}", warning.field, warning.message)?;
    }
    for sentence in summary(&settings, now, labels.as_deref()) {
        writeln!(output, "{sentence}")?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn printed(file: &str, groups: Option<&Groups>) -> (bool, String) {
        let mut output = Vec::new();
        let now = "2026-12-01T12:00:00Z".parse().unwrap();
        let good = report("a.yaml", file, groups, now, &mut output).unwrap();
        (good, String::from_utf8(output).unwrap())
    }

    #[test]
    fn mistakes_are_told_with_the_lines_of_the_file() {
        let file = "kind: ConfigMap\ndata:\n  upgrades: |\n    locks: maybe\n    schedules:\n    - name: prod\n      match: {}\n      image: {after: soon}\n";
        let (good, text) = printed(file, None);
        assert!(!good);
        assert_eq!(
            text,
            "a.yaml:4: locks: holds a text; write a list\n\
             a.yaml:8: schedules[0].image.after: \"soon\" is no duration; write whole numbers with s, m, h, d or w, as 48h or 1d12h\n"
        );
        let (good, text) = printed("locks: [", None);
        assert!(!good && text.starts_with("a.yaml:1: this is no YAML"), "{text}");
        let (good, text) = printed("kind: ConfigMap\n", None);
        assert!(!good && text.starts_with("a.yaml: there is no ConfigMap"), "{text}");
    }

    #[test]
    fn warnings_stop_nothing_and_the_rest_is_told_in_sentences() {
        let text = include_str!("../../examples/settings/tiers.yaml");
        let (good, text) = printed(text, None);
        assert!(good);
        assert_eq!(
            text,
            "lock: every group (nothing rolls unasked)\n\
             freeze: off\n\
             rollouts at the same time: 10\n\
             schedule dev: groups in namespaces with tier=dev; new images at once; all else by hand; nodes at any time\n\
             schedule staging: groups in namespaces with tier=staging; new images 2d after AWS published them; all else by \
             hand; nodes at any time\n\
             schedule prod: groups in namespaces with tier=prod; new images 7d after AWS published them, once a group of \
             staging has run them for 1d; all else by hand; at most 2 rollouts at the same time; nodes only at 02:00, on \
             Monday, Tuesday, Wednesday, and Thursday, for 4h (Europe/Berlin); not from 2026-12-20 to 2027-01-02 (UTC; \
             year-end); next window 2026-12-02 02:00 Europe/Berlin\n\
             groups that no schedule is for: a person decides\n"
        );
        let over = "freeze:\n  enabled: true\n  until: 2026-12-01T00:00:00Z\n";
        let (taken, text) = printed(over, None);
        assert!(
            taken && text.starts_with("a.yaml:3: warning: freeze.until: is over"),
            "{text}"
        );
    }

    #[test]
    fn with_a_cluster_groups_are_counted() {
        let groups = Groups::of(&[("dev", "a"), ("dev", "b"), ("shop", "c")]);
        let file = "locks:\n- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: dev}}\nschedules:\n- name: x\n  match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}\n";
        let (good, text) = printed(file, Some(&groups));
        assert!(good);
        assert!(text.contains("holds 2 of 3 groups"), "{text}");
        assert!(
            text.contains("schedule x: groups in namespaces with kubernetes.io/metadata.name=shop (1 here)"),
            "{text}"
        );
    }
}
