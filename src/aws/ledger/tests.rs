//! Tests of the ledger, with paused time.

use pretty_assertions::assert_eq;

use super::*;
use crate::plan::facts::TemplateVersion;

fn group(name: &str) -> Touched {
    Touched::Group(name.into())
}

#[tokio::test(start_paused = true)]
async fn dirty_from_begin_until_a_read_after_the_end() {
    let ledger = WriteLedger::default();
    let before = ledger.moment().sequence;
    let write = ledger.begin(vec![group("a")]);
    let during = ledger.moment().sequence;
    assert!(ledger.dirty(&group("a"), before) && ledger.dirty(&group("a"), during));
    write.end(None);
    assert!(ledger.dirty(&group("a"), during));
    let after = ledger.moment().sequence;
    assert!(!ledger.dirty(&group("a"), after) && !ledger.dirty(&group("b"), before));
}

#[tokio::test(start_paused = true)]
async fn a_create_lags_for_a_minute_unless_it_was_refused() {
    let ledger = WriteLedger::default();
    ledger.begin_create(vec![group("made")]).end(None);
    drop(ledger.begin_create(vec![group("given up")]));
    ledger
        .begin_create(vec![group("there")])
        .end(Some(FailureClass::AlreadyExists));
    ledger
        .begin_create(vec![group("refused")])
        .end(Some(FailureClass::Denied));
    for name in ["made", "given up", "there"] {
        assert!(ledger.made_recently(&group(name)), "{name}");
    }
    assert!(!ledger.made_recently(&group("refused")));
    ledger.begin_delete(vec![group("made")]).end(None);
    assert!(!ledger.made_recently(&group("made")));
    tokio::time::advance(LAG).await;
    assert!(!ledger.made_recently(&group("there")));
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_under_one_spelling_is_gone_under_all() {
    let ledger = WriteLedger::default();
    let (name, id) = (Touched::Template("one".into()), Touched::Template("lt-1".into()));
    let mut write = ledger.begin_create(vec![name.clone()]);
    write.also(id.clone());
    write.end(None);
    assert!(ledger.made_recently(&name) && ledger.made_recently(&id));
    ledger.begin_delete(vec![id.clone()]).end(None);
    assert!(!ledger.made_recently(&name));
    drop(ledger.begin_create(vec![name.clone()]));
    ledger.shown(&template(1, &[1], true));
    ledger.begin_delete(vec![id]).end(None);
    assert!(!ledger.made_recently(&name));
}

fn template(default_version: i64, numbers: &[i64], complete: bool) -> LaunchTemplate {
    let version = |number: &i64| {
        let version = TemplateVersion {
            number: *number,
            description: String::new(),
            image_id: String::new(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            inputs: None,
        };
        (*number, version)
    };
    let versions = numbers.iter().map(version).collect();
    LaunchTemplate {
        id: "lt-1".into(),
        name: "one".into(),
        default_version,
        versions,
        complete,
    }
}

#[tokio::test(start_paused = true)]
async fn versions_are_awaited_until_deleted() {
    let ledger = WriteLedger::default();
    ledger.version_made("lt-1", 3);
    ledger.version_made("lt-1", 2);
    assert!(ledger.missing_in(&template(1, &[1, 2], true)).is_some());
    assert_eq!(ledger.missing_in(&template(1, &[1], false)), None);
    assert_eq!(ledger.missing_in(&template(1, &[1, 2, 3], true)), None);
    ledger.versions_deleted("lt-1", &[3]);
    assert_eq!(ledger.missing_in(&template(1, &[1, 2], true)), None);
}

#[tokio::test(start_paused = true)]
async fn a_default_is_awaited_for_a_minute() {
    let ledger = WriteLedger::default();
    ledger.default_set("lt-1", 2);
    assert!(ledger.missing_in(&template(1, &[1], false)).is_some());
    assert_eq!(ledger.missing_in(&template(2, &[2], false)), None);
    tokio::time::advance(LAG).await;
    assert_eq!(ledger.missing_in(&template(1, &[1], false)), None);
}
