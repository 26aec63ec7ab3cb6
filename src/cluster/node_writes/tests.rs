//! Tables of the patches on Nodes.
//!
//! Owns the cases of the pure part; the writes themselves are tested on a real API server.

use super::*;

const AT: &str = "2026-11-30T10:00:00Z";
const LATER: &str = "2026-11-30T11:00:00Z";
const ROLLOUT: &str = annotation::ROLLOUT;
const SAFE: &str = annotation::SCALE_DOWN_DISABLED;
const EXCLUDE: &str = label::EXCLUDE_FROM_LOAD_BALANCERS;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Node with something of its own in each place that a patch touches.
fn node(annotations: Value, labels: Value, spec: Value) -> Node {
    let mut node = json!({
        "metadata": { "name": "n", "annotations": { "theirs": "a" }, "labels": { "theirs": "l" } },
        "spec": { "providerID": "aws:///us-west-2a/i-0abc", "podCIDR": "10.0.0.0/24" },
    });
    for (place, more) in [
        ("/metadata/annotations", annotations),
        ("/metadata/labels", labels),
        ("/spec", spec),
    ] {
        let all = node.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        all.extend(more.as_object().unwrap().clone());
    }
    serde_json::from_value(node).unwrap()
}

fn plain() -> Node {
    node(json!({}), json!({}), json!({}))
}

fn note(state: &str, since: &str, more: Value) -> String {
    let mut note = more;
    note["target"] = json!("f1");
    note["state"] = json!(state);
    note["since"] = json!(since);
    // In the order of the record's fields.
    json!(serde_json::from_value::<NodeRecord>(note).unwrap()).to_string()
}

fn take(since: &str) -> NodeEdit {
    NodeEdit::Take {
        target: "f1".to_owned(),
        since: at(since),
    }
}

fn join(since: &str) -> NodeEdit {
    NodeEdit::Join {
        target: "f1".to_owned(),
        since: at(since),
    }
}

const RELEASE: NodeEdit = NodeEdit::Release { keep: None };

/// The Node after a patch, by the rules of a merge patch.
fn patched(node: &Node, patch: &Value) -> Node {
    fn merge(into: &mut Value, patch: &Value) {
        let Some(patch) = patch.as_object() else {
            *into = patch.clone();
            return;
        };
        if !into.is_object() {
            *into = json!({});
        }
        for (key, value) in patch {
            if value.is_null() {
                into.as_object_mut().unwrap().remove(key);
            } else {
                merge(&mut into[key], value);
            }
        }
    }
    let mut value = serde_json::to_value(node).unwrap();
    merge(&mut value, patch);
    serde_json::from_value(value).unwrap()
}

#[test]
fn taking_notes_as_ours_only_what_was_not_so_before() {
    let cases = [
        (plain(), json!({ "cordoned": true, "excluded": true }), true, true),
        (
            node(json!({}), json!({}), json!({ "unschedulable": true })),
            json!({ "excluded": true }),
            false,
            true,
        ),
        (
            node(json!({}), json!({ EXCLUDE: "" }), json!({})),
            json!({ "cordoned": true }),
            true,
            false,
        ),
        (
            node(json!({}), json!({ EXCLUDE: "false" }), json!({})),
            json!({ "cordoned": true }),
            true,
            false,
        ),
        (
            node(json!({}), json!({ EXCLUDE: "true" }), json!({ "unschedulable": true })),
            json!({}),
            false,
            false,
        ),
    ];
    for (node, ours, cordons, excludes) in cases {
        let mut wanted = json!({ "metadata": { "annotations": { ROLLOUT: note("Draining", AT, ours) } } });
        if cordons {
            wanted["spec"] = json!({ "unschedulable": true });
        }
        if excludes {
            wanted["metadata"]["labels"] = json!({ EXCLUDE: "true" });
        }
        assert_eq!(change(&node, &take(AT)), Some(wanted));
    }
}

#[test]
fn taking_again_changes_nothing_and_keeps_the_time() {
    let node = plain();
    let taken = patched(&node, &change(&node, &take(AT)).unwrap());
    assert_eq!(change(&taken, &take(LATER)), None);
}

#[test]
fn taking_a_joined_node_keeps_its_protection_as_ours() {
    let protected = json!({ "protected": true });
    let joined = node(
        json!({ ROLLOUT: note("Joined", AT, protected), SAFE: "true" }),
        json!({}),
        json!({}),
    );
    let patch = change(&joined, &take(LATER)).unwrap();
    let all = json!({ "cordoned": true, "excluded": true, "protected": true });
    assert_eq!(
        patch["metadata"]["annotations"],
        json!({ ROLLOUT: note("Draining", LATER, all) })
    );
    // And so releasing undoes all three.
    let taken = patched(&joined, &patch);
    assert_eq!(
        change(&taken, &RELEASE),
        Some(json!({
            "metadata": { "annotations": { ROLLOUT: null, SAFE: null }, "labels": { EXCLUDE: null } },
            "spec": { "unschedulable": null },
        }))
    );
}

#[test]
fn taking_again_what_a_person_uncordoned_cordons_it_again() {
    let ours = json!({ "cordoned": true, "excluded": true });
    let uncordoned = node(
        json!({ ROLLOUT: note("Draining", AT, ours) }),
        json!({ EXCLUDE: "true" }),
        json!({}),
    );
    assert_eq!(
        change(&uncordoned, &take(LATER)),
        Some(json!({ "spec": { "unschedulable": true } }))
    );
}

#[test]
fn releasing_undoes_exactly_what_is_ours() {
    let all = || {
        (
            json!({ SAFE: "true" }),
            json!({ EXCLUDE: "true" }),
            json!({ "unschedulable": true }),
        )
    };
    for (ours, undone) in [
        (json!({}), json!({ "metadata": { "annotations": { ROLLOUT: null } } })),
        (
            json!({ "cordoned": true }),
            json!({ "metadata": { "annotations": { ROLLOUT: null } }, "spec": { "unschedulable": null } }),
        ),
        (
            json!({ "excluded": true }),
            json!({ "metadata": { "annotations": { ROLLOUT: null }, "labels": { EXCLUDE: null } } }),
        ),
        (
            json!({ "protected": true }),
            json!({ "metadata": { "annotations": { ROLLOUT: null, SAFE: null } } }),
        ),
    ] {
        let (mut annotations, labels, spec) = all();
        annotations[ROLLOUT] = json!(note("Draining", AT, ours));
        assert_eq!(change(&node(annotations, labels, spec), &RELEASE), Some(undone));
    }
    // Without a record nothing is ours, whatever the node looks like.
    let (annotations, labels, spec) = all();
    assert_eq!(change(&node(annotations, labels, spec), &RELEASE), None);
}

#[test]
fn what_a_person_cordoned_before_stays_cordoned() {
    let cordoned = node(json!({}), json!({}), json!({ "unschedulable": true }));
    let taken = patched(&cordoned, &change(&cordoned, &take(AT)).unwrap());
    let released = patched(&taken, &change(&taken, &RELEASE).unwrap());
    assert_eq!(released, cordoned);
}

#[test]
fn releasing_with_another_record_keeps_the_taint() {
    let ours = json!({ "cordoned": true, "excluded": true });
    let taken = node(
        json!({ ROLLOUT: note("Draining", AT, ours) }),
        json!({ EXCLUDE: "true" }),
        json!({ "unschedulable": true, "taints": [
            { "key": label::TAINT_UPGRADING, "effect": "PreferNoSchedule" },
            { "key": "theirs", "value": "v", "effect": "NoExecute", "timeAdded": AT },
        ] }),
    );
    let keep = NodeEdit::Release {
        keep: Some(NodeRecord::new("f1", NodeState::GaveUp, at(LATER))),
    };
    assert_eq!(
        change(&taken, &keep),
        Some(json!({
            "metadata": { "annotations": { ROLLOUT: note("GaveUp", LATER, json!({})) }, "labels": { EXCLUDE: null } },
            "spec": { "unschedulable": null },
        }))
    );
    let patch = change(&taken, &RELEASE).unwrap();
    let theirs = json!([{ "key": "theirs", "value": "v", "effect": "NoExecute", "timeAdded": AT }]);
    assert_eq!(patch["spec"], json!({ "unschedulable": null, "taints": theirs }));
}

#[test]
fn avoiding_adds_one_taint_and_keeps_the_others() {
    let ours = json!({ "key": label::TAINT_UPGRADING, "effect": "PreferNoSchedule" });
    let theirs = json!({ "key": "theirs", "value": "v", "effect": "NoSchedule" });
    assert_eq!(
        change(&plain(), &NodeEdit::Avoid),
        Some(json!({ "spec": { "taints": [ours] } }))
    );
    let tainted = node(json!({}), json!({}), json!({ "taints": [theirs] }));
    let patch = change(&tainted, &NodeEdit::Avoid).unwrap();
    assert_eq!(patch, json!({ "spec": { "taints": [theirs, ours] } }));
    let avoided = patched(&tainted, &patch);
    assert_eq!(change(&avoided, &NodeEdit::Avoid), None);
    assert_eq!(patched(&avoided, &change(&avoided, &RELEASE).unwrap()), tainted);
    // The last taint goes with its list.
    let only = node(json!({}), json!({}), json!({ "taints": [ours] }));
    assert_eq!(change(&only, &RELEASE), Some(json!({ "spec": { "taints": null } })));
}

#[test]
fn joining_protects_and_notes_it_unless_it_was_so() {
    let fresh = change(&plain(), &join(AT)).unwrap();
    let ours = note("Joined", AT, json!({ "protected": true }));
    assert_eq!(
        fresh,
        json!({ "metadata": { "annotations": { ROLLOUT: ours, SAFE: "true" } } })
    );
    assert_eq!(change(&patched(&plain(), &fresh), &join(LATER)), None);

    // A person's word stays, also the one against it.
    for value in ["true", "false"] {
        let decided = node(json!({ SAFE: value }), json!({}), json!({}));
        let patch = change(&decided, &join(AT)).unwrap();
        let nothing = note("Joined", AT, json!({}));
        assert_eq!(patch, json!({ "metadata": { "annotations": { ROLLOUT: nothing } } }));
        let joined = patched(&decided, &patch);
        assert_eq!(patched(&joined, &change(&joined, &RELEASE).unwrap()), decided);
    }
}

#[test]
fn joining_for_another_target_keeps_the_protection_as_ours() {
    let before = NodeRecord {
        target: "f0".to_owned(),
        protected: true,
        ..NodeRecord::new("f0", NodeState::Joined, at(AT))
    };
    let joined = node(
        json!({ ROLLOUT: json!(before).to_string(), SAFE: "true" }),
        json!({}),
        json!({}),
    );
    let ours = note("Joined", LATER, json!({ "protected": true }));
    assert_eq!(
        change(&joined, &join(LATER)),
        Some(json!({ "metadata": { "annotations": { ROLLOUT: ours } } }))
    );
}

#[test]
fn a_note_that_is_not_ours_tells_nothing() {
    let foreign = node(
        json!({ ROLLOUT: "by hand", SAFE: "true" }),
        json!({}),
        json!({ "unschedulable": true }),
    );
    assert_eq!(
        change(&foreign, &RELEASE),
        Some(json!({ "metadata": { "annotations": { ROLLOUT: null } } }))
    );
    let patch = change(&foreign, &take(AT)).unwrap();
    let ours = note("Draining", AT, json!({ "excluded": true }));
    assert_eq!(patch["metadata"]["annotations"], json!({ ROLLOUT: ours }));
}

#[test]
fn a_node_of_another_instance_is_refused() {
    assert_eq!(is_of_instance(&plain(), "i-0abc"), Ok(()));
    let refused = is_of_instance(&plain(), "i-0abd").unwrap_err();
    assert_eq!(refused.class, FailureClass::NotFound);
    assert_eq!(
        refused.message,
        "node n stands for aws:///us-west-2a/i-0abc, not for i-0abd"
    );
    assert!(is_of_instance(&Node::default(), "i-0abc").is_err());
}
