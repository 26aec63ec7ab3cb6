//! Drains of single nodes: each kind of pod, each answer to an eviction.

use jiff::{SignedDuration, Timestamp};

use super::limits;
use super::toy::pod;
use crate::api::Reason;
use crate::plan::facts::workload::{Budget, EvictionAnswer, EvictionKind, Pod, PodKind};
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::rollout::Limits;
use crate::plan::rollout::drain::{after, drain, longer_grace, obstacle};

fn now() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    after(now(), SignedDuration::from_secs(-seconds))
}

fn any() -> Limits {
    limits("1", 3)
}

fn budget(name: &str, room: i32, never: bool) -> Budget {
    Budget {
        name: name.to_owned(),
        disruptions_allowed: room,
        never,
    }
}

fn owned() -> Pod {
    Pod {
        ready: true,
        ..pod("app-1", PodKind::Owned)
    }
}

fn answered(kind: EvictionKind, seconds: i64) -> Pod {
    Pod {
        answer: Some(EvictionAnswer { at: ago(seconds), kind }),
        ..owned()
    }
}

#[test]
fn what_a_drain_leaves_alone() {
    for (kind, left_alone) in [
        (PodKind::Daemon, true),
        (PodKind::Mirror, true),
        (PodKind::Finished, true),
        (PodKind::Owned, false),
        (PodKind::Bare, false),
    ] {
        let step = drain(&[pod("app-1", kind)], true, &any(), now());
        assert_eq!(step.drained, left_alone, "{kind:?}");
    }
    assert!(drain(&[], true, &any(), now()).drained);
}

#[test]
fn a_bare_pod_is_only_evicted_where_the_strategy_says_so() {
    let pods = [pod("app-1", PodKind::Bare)];
    let step = drain(&pods, true, &any(), now());
    assert!(step.evict.is_empty() && step.obstacles[0].reason == Reason::BarePod);
    assert_eq!(obstacle(&pods, true, &any(), now()).unwrap().reason, Reason::BarePod);
    let allowed = Limits {
        delete_bare_pods: true,
        ..any()
    };
    assert_eq!(drain(&pods, true, &allowed, now()).evict, [pods[0].id.clone()]);
    assert_eq!(obstacle(&pods, true, &allowed, now()), None);
}

#[test]
fn each_answer_has_its_own_wait() {
    let failure = Failure {
        class: FailureClass::Denied,
        action: "kubernetes:create pods/eviction".to_owned(),
        code: None,
        message: "no right".to_owned(),
    };
    let text = || "words".to_owned();
    for (kind, reason) in [
        (EvictionKind::Accepted, Reason::PodEnding),
        (EvictionKind::Gone, Reason::PodEnding),
        (EvictionKind::Budget(text()), Reason::PodDisruptionBudget),
        (EvictionKind::Throttled, Reason::Throttled),
        (EvictionKind::SeveralBudgets(text()), Reason::SeveralBudgets),
        (EvictionKind::NamespaceTerminating, Reason::PodEnding),
        (EvictionKind::Failed(failure), Reason::EvictionFailed),
    ] {
        let mut pod = answered(kind.clone(), 2);
        pod.budgets = vec![budget("a", 0, false), budget("b", 0, false)];
        let step = drain(&[pod.clone()], true, &any(), now());
        assert!(step.evict.is_empty() && !step.drained, "{kind:?}");
        assert_eq!(step.obstacles[0].reason, reason, "{kind:?}");
        assert_eq!(
            step.look_at,
            Some(after(now(), SignedDuration::from_secs(8))),
            "{kind:?}"
        );
        pod.answer = Some(EvictionAnswer { at: ago(10), kind });
        assert_eq!(
            drain(&[pod], true, &any(), now()).evict.len(),
            1,
            "asked again after a while"
        );
    }
}

#[test]
fn a_refused_pod_is_asked_again_as_soon_as_there_is_room() {
    let refused = |room: i32, seconds: i64| Pod {
        budgets: vec![budget("web", room, false)],
        ..answered(EvictionKind::Budget("no".to_owned()), seconds)
    };
    for (room, seconds, asks) in [(0, 1, false), (0, 9, false), (0, 10, true), (1, 0, false), (1, 1, true)] {
        let step = drain(&[refused(room, seconds)], true, &any(), now());
        assert_eq!(!step.evict.is_empty(), asks, "room {room}, asked {seconds} s ago");
    }
    let message = &drain(&[refused(0, 1)], true, &any(), now()).obstacles[0].message;
    assert!(message.contains("PodDisruptionBudget shop/web"), "{message}");
    let mended = Pod {
        budgets: vec![budget("web", 1, false)],
        ..answered(EvictionKind::SeveralBudgets("two".to_owned()), 1)
    };
    assert_eq!(drain(&[mended], true, &any(), now()).evict.len(), 1);
}

#[test]
fn an_ending_pod_is_waited_for_and_on_a_silent_node_only_so_long() {
    let ending = |seconds: i64| Pod {
        ends_at: Some(ago(seconds)),
        ..owned()
    };
    for (seconds, node_ready, drained) in [
        (-5, true, false),
        (5, true, false),
        (3_600, true, false),
        (29, false, false),
        (30, false, true),
    ] {
        let step = drain(&[ending(seconds)], node_ready, &any(), now());
        assert_eq!(
            step.drained, drained,
            "{seconds} s past its end, node ready: {node_ready}"
        );
        assert!(step.evict.is_empty(), "it is on its way already");
        assert!(drained || step.obstacles[0].reason == Reason::PodEnding);
    }
    let early = drain(&[ending(-5)], true, &any(), now());
    assert_eq!(early.look_at, Some(after(now(), SignedDuration::from_secs(5))));
    assert!(early.obstacles[0].message.contains("its grace period ends at"));
    let late = drain(&[ending(0)], true, &any(), now());
    assert!(late.obstacles[0].message.contains("look at its finalizers"));
    let silent = drain(&[ending(10)], false, &any(), now());
    assert_eq!(silent.look_at, Some(after(now(), SignedDuration::from_secs(20))));
}

#[test]
fn a_node_is_not_begun_while_a_budget_forbids_it() {
    let with = |budgets: Vec<Budget>, ready: bool| Pod {
        ready,
        budgets,
        ..owned()
    };
    for (pod, expected) in [
        (with(vec![], true), None),
        (with(vec![budget("web", 1, false)], true), None),
        (with(vec![budget("web", 0, false)], true), Some("lets no pod go now")),
        (with(vec![budget("web", 0, false)], false), None),
        (with(vec![budget("web", 0, true)], true), Some("never lets pod")),
        (with(vec![budget("web", 0, true)], false), Some("never lets pod")),
        (
            with(vec![budget("web", 1, false), budget("all", 1, false)], true),
            Some("several PodDisruptionBudgets (web, all)"),
        ),
    ] {
        let found = obstacle(std::slice::from_ref(&pod), true, &any(), now()).map(|obstacle| obstacle.message);
        match (&found, expected) {
            (None, None) => {}
            (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
            _ => panic!("{pod:?}: {found:?}"),
        }
    }
    let ending = Pod {
        ends_at: Some(now()),
        ..with(vec![budget("web", 0, true)], true)
    };
    assert_eq!(obstacle(&[ending], true, &any(), now()), None, "it goes anyway");
    let daemon = Pod {
        kind: PodKind::Daemon,
        ..with(vec![budget("web", 0, true)], true)
    };
    assert_eq!(obstacle(&[daemon], true, &any(), now()), None, "it is not evicted");
}

/// A node with a pod that never ends is not emptied of its other pods again after each rest.
#[test]
fn a_node_is_not_begun_while_a_pod_on_it_should_have_ended() {
    for (seconds, ready, held) in [
        (29, true, false),
        (30, true, true),
        (30, false, false),
        (-5, true, false),
    ] {
        let pods = [
            owned(),
            Pod {
                ends_at: Some(ago(seconds)),
                ..owned()
            },
        ];
        let found = obstacle(&pods, ready, &any(), now());
        assert_eq!(found.is_some(), held, "{seconds}, {ready}");
        assert!(found.is_none_or(|found| found.reason == Reason::PodEnding && found.message.contains("still there")));
    }
}

#[test]
fn what_never_goes_away_by_itself_is_told_first() {
    let held = Pod {
        budgets: vec![budget("web", 0, false)],
        ..owned()
    };
    let doubly = Pod {
        budgets: vec![budget("a", 1, false), budget("b", 1, false)],
        ..owned()
    };
    let bare = pod("lone", PodKind::Bare);
    let reason = |pods: &[Pod]| obstacle(pods, true, &any(), now()).unwrap().reason;
    assert_eq!(reason(&[held.clone(), bare.clone()]), Reason::BarePod);
    assert_eq!(reason(&[held, bare.clone(), doubly.clone()]), Reason::SeveralBudgets);
    assert_eq!(reason(&[doubly, bare]), Reason::SeveralBudgets);
}

#[test]
fn a_grace_period_longer_than_a_drain_may_take_is_noticed() {
    let with = |seconds: i64| Pod {
        grace_seconds: seconds,
        ..owned()
    };
    assert!(longer_grace(&[with(900)], &any()).is_none());
    assert_eq!(
        longer_grace(&[with(901), with(1_000)], &any()).unwrap().grace_seconds,
        1_000
    );
    let daemon = Pod {
        kind: PodKind::Daemon,
        ..with(5_000)
    };
    assert!(longer_grace(&[daemon], &any()).is_none());
}
