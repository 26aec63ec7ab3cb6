//! What is seen of pods, and for how long it counts.
//!
//! Owns the cases that need no API server.

use serde_json::{Value, json};

use super::*;
use crate::plan::facts::workload::{Budget, PodKind};

fn pod(name: &str, more: &Value) -> Pod {
    fn extend(into: &mut Value, more: &Value) {
        match (into, more) {
            (Value::Object(into), Value::Object(more)) => {
                for (key, value) in more {
                    extend(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            (into, more) => *into = more.clone(),
        }
    }
    let mut pod = json!({
        "metadata": { "namespace": "team", "name": name, "uid": format!("uid-{name}"), "labels": { "app": "web" },
                      "annotations": { "checksum": "c" },
                      "managedFields": [{ "manager": "m" }] },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }], "terminationGracePeriodSeconds": 45 },
        "status": { "phase": "Running", "podIP": "10.0.0.1", "conditions": [
            { "type": "ContainersReady", "status": "True" }, { "type": "Ready", "status": "True", "message": "m" } ] },
    });
    extend(&mut pod, more);
    serde_json::from_value(pod).unwrap()
}

fn owner(kind: &str, controller: bool) -> Value {
    json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": controller } ] } })
}

#[test]
fn kinds_by_who_would_make_it_anew() {
    let finished = |phase: &str| json!({ "status": { "phase": phase } });
    let mirror = json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "h" }, "ownerReferences": [
        { "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true } ] } });
    for (name, more, kind) in [
        ("replicas", owner("ReplicaSet", true), PodKind::Owned),
        ("custom", owner("GameServer", true), PodKind::Owned),
        ("daemon", owner("DaemonSet", true), PodKind::Daemon),
        ("owned-only", owner("ConfigMap", false), PodKind::Bare),
        ("alone", json!({}), PodKind::Bare),
        ("mirror", mirror, PodKind::Mirror),
        ("done", finished("Succeeded"), PodKind::Finished),
        ("broken", finished("Failed"), PodKind::Finished),
        ("waiting", finished("Pending"), PodKind::Bare),
    ] {
        let whole = pod(name, &more);
        let mut trimmed = whole.clone();
        trim(&mut trimmed);
        let seen = SeenPod::of(&trimmed).unwrap();
        assert_eq!(seen.kind, kind, "{name}");
        assert_eq!(Some(seen), SeenPod::of(&whole), "{name}: trimming loses something");
        let text = serde_json::to_string(&trimmed).unwrap();
        for dropped in ["checksum", "managedFields", "podIP", "ContainersReady", "image"] {
            assert!(!text.contains(dropped), "{name}: {dropped} in {text}");
        }
    }
}

#[test]
fn a_pod_that_is_being_deleted_says_when_its_grace_ends() {
    let seen = SeenPod::of(&pod("web", &json!({}))).unwrap();
    assert_eq!((seen.ready, seen.ends_at, seen.grace_seconds), (true, None, 45));
    let ending = json!({
        "metadata": { "deletionTimestamp": "2026-11-30T10:00:45Z", "deletionGracePeriodSeconds": 45 },
        "spec": { "terminationGracePeriodSeconds": null },
        "status": { "conditions": [{ "type": "Ready", "status": "False" }] },
    });
    let seen = SeenPod::of(&pod("web", &ending)).unwrap();
    let end = "2026-11-30T10:00:45Z".parse().unwrap();
    assert_eq!((seen.ready, seen.ends_at, seen.grace_seconds), (false, Some(end), 30));
}

#[test]
fn a_fact_names_the_budgets_that_select_it() {
    let budgets = BudgetIndex::default();
    for (name, app) in [("web", "web"), ("api", "api")] {
        let object = json!({ "metadata": { "namespace": "team", "name": name },
                             "spec": { "selector": { "matchLabels": { "app": app } } } });
        budgets.touched(&serde_json::from_value(object).unwrap(), false);
    }
    let fact = SeenPod::of(&pod("web", &json!({}))).unwrap().fact(&budgets);
    let web = Budget {
        name: "web".to_owned(),
        disruptions_allowed: 0,
        never: false,
    };
    assert_eq!((fact.budgets, fact.answer), (vec![web], None));
}

fn names(pods: &NodePods) -> Option<Vec<String>> {
    let all = pods.all();
    all.found()
        .map(|all| all.iter().map(|pod| pod.id.name.clone()).collect())
}

#[test]
fn nothing_is_known_before_the_first_list_is_complete() {
    let pods = NodePods::default();
    assert!(!pods.touched(&pod("a", &json!({})), false));
    assert_eq!(names(&pods), None);
    assert!(pods.replace([]));
    assert_eq!(names(&pods), Some(Vec::new()));
}

#[test]
fn only_a_different_fact_is_a_change() {
    let pods = NodePods::default();
    assert!(pods.replace([&pod("a", &json!({}))]));
    assert!(!pods.replace([&pod("a", &json!({}))]));
    let other_version = json!({ "metadata": { "resourceVersion": "9" }, "status": { "podIP": "10.0.0.2" } });
    assert!(!pods.touched(&pod("a", &other_version), false));
    assert!(pods.touched(&pod("a", &json!({ "metadata": { "labels": { "x": "y" } } })), false));
    assert!(pods.touched(&pod("b", &json!({})), false));
    // The same name again is another pod; the end of the first one must not take the second along.
    assert!(pods.touched(&pod("a", &json!({ "metadata": { "uid": "other" } })), false));
    assert!(pods.touched(&pod("a", &json!({})), true));
    assert!(!pods.touched(&pod("a", &json!({})), true));
    assert_eq!(names(&pods), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert!(pods.replace([&pod("b", &json!({}))]));
    assert_eq!(names(&pods), Some(vec!["b".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_counts_for_a_while_and_its_end_is_told() {
    let pods = NodePods::default();
    pods.replace([&pod("a", &json!({}))]);
    let (reporter, state) = watch::channel(WatchState::Following);
    let told = Mutex::new(0);
    let count = || *told.lock().unwrap();
    let health = note_health(&pods, state, || *told.lock().unwrap() += 1);
    let story = async {
        let look = async || {
            // `join` takes turns in who comes first, so that one round is not enough for the other half to look.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        let settle = async |seconds| {
            look().await;
            tokio::time::advance(Duration::from_secs(seconds)).await;
            look().await;
        };
        reporter.send_replace(WatchState::Failing("refused".to_owned()));
        settle(20).await;
        assert!(names(&pods).is_some() && count() == 0);
        // Another reason does not make it count for longer.
        reporter.send_replace(WatchState::Failing("reset".to_owned()));
        settle(11).await;
        assert!(matches!(pods.all(), Fact::Unknown(failure) if failure.message == "reset"));
        assert_eq!(count(), 1);
        reporter.send_replace(WatchState::Failing("refused".to_owned()));
        settle(100).await;
        assert_eq!(count(), 1, "it is told once");
        reporter.send_replace(WatchState::Following);
        settle(0).await;
        assert!(names(&pods).is_some() && count() == 2);
        drop(reporter);
    };
    tokio::join!(health, story);
}
