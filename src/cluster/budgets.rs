//! `PodDisruptionBudget`s, as facts.
//!
//! Owns which pods a budget selects, what it allows, and what of it is kept in memory. Must not write budgets, and must not
//! judge whether a pod can go.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt as _};

use crate::plan::facts::workload::Budget;

/// A budget and whom it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    selector: Selector,
    budget: Budget,
}

impl Seen {
    /// `None` for a budget that selects no pod: without a selector, or with one that cannot be read. The API server passes
    /// over both. An empty selector selects every pod of the namespace (policy/v1).
    fn of(object: &PodDisruptionBudget) -> Option<Self> {
        let spec = object.spec.as_ref()?;
        let selector = Selector::try_from(spec.selector.clone()?).ok()?;
        // Numbers of an earlier spec say nothing about this one; until they are new, the API server refuses (429).
        let current = object.status.as_ref().filter(|status| {
            status.observed_generation.unwrap_or_default() >= object.metadata.generation.unwrap_or_default()
        });
        Some(Self {
            selector,
            budget: Budget {
                name: object.metadata.name.clone()?,
                disruptions_allowed: current.map_or(0, |status| status.disruptions_allowed),
                never: allows_none(spec) || current.is_some_and(needs_all),
            },
        })
    }
}

/// Whether the spec alone says that no pod may ever go.
fn allows_none(spec: &PodDisruptionBudgetSpec) -> bool {
    match &spec.max_unavailable {
        Some(IntOrString::Int(number)) => *number == 0,
        Some(IntOrString::String(percent)) => percent.trim_end_matches('%').parse() == Ok(0),
        None => false,
    }
}

/// Whether as many pods have to be healthy as there are.
fn needs_all(status: &PodDisruptionBudgetStatus) -> bool {
    status.expected_pods > 0 && status.desired_healthy >= status.expected_pods
}

/// Cuts a budget down to what is read of it, before it is stored.
pub fn trim(object: &mut PodDisruptionBudget) {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    object.metadata.labels = None;
    if let Some(status) = &mut object.status {
        status.conditions = None;
        status.disrupted_pods = None;
    }
}

/// All budgets, by namespace.
#[derive(Debug, Default)]
pub struct BudgetIndex {
    by_namespace: Mutex<HashMap<String, BTreeMap<String, Seen>>>,
}

impl BudgetIndex {
    /// Takes in a budget that came, changed or went. Returns whether anything that a fact holds is different.
    pub fn touched(&self, object: &PodDisruptionBudget, gone: bool) -> bool {
        let (Some(namespace), Some(name)) = (&object.metadata.namespace, &object.metadata.name) else {
            return false;
        };
        let mut index = self.lock();
        let after = Seen::of(object).filter(|_| !gone);
        let budgets = index.entry(namespace.clone()).or_default();
        let before = match &after {
            Some(seen) => budgets.insert(name.clone(), seen.clone()),
            None => budgets.remove(name),
        };
        if budgets.is_empty() {
            index.remove(namespace);
        }
        before != after
    }

    /// Starts over from a complete list.
    pub fn replace<'a>(&self, objects: impl IntoIterator<Item = &'a PodDisruptionBudget>) {
        let mut fresh: HashMap<String, BTreeMap<String, Seen>> = HashMap::new();
        for object in objects {
            if let (Some(namespace), Some(seen)) = (&object.metadata.namespace, Seen::of(object)) {
                let budgets = fresh.entry(namespace.clone()).or_default();
                budgets.insert(seen.budget.name.clone(), seen);
            }
        }
        *self.lock() = fresh;
    }

    /// The budgets that select a pod of these labels, by name.
    #[must_use]
    pub fn of(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Budget> {
        let index = self.lock();
        let budgets = index.get(namespace).into_iter().flat_map(BTreeMap::values);
        budgets
            .filter(|seen| seen.selector.matches(labels))
            .map(|seen| seen.budget.clone())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<String, Seen>>> {
        self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, spec: Value, status: Value) -> PodDisruptionBudget {
        let mut object = json!({
            "metadata": { "namespace": "team", "name": name, "generation": 2, "labels": { "x": "y" } },
        });
        object["spec"] = spec;
        object["status"] = status;
        serde_json::from_value(object).unwrap()
    }

    fn status(allowed: i32, desired: i32, expected: i32, generation: i64) -> Value {
        json!({ "disruptionsAllowed": allowed, "desiredHealthy": desired, "expectedPods": expected, "currentHealthy": expected,
                "observedGeneration": generation, "disruptedPods": { "web-0": "2026-11-30T10:00:00Z" },
                "conditions": [{ "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
                                 "lastTransitionTime": "2026-11-30T10:00:00Z" }] })
    }

    fn names(index: &BudgetIndex, labels: Value) -> Vec<String> {
        let labels = serde_json::from_value(labels).unwrap();
        index
            .of("team", &labels)
            .into_iter()
            .map(|budget| budget.name)
            .collect()
    }

    #[test]
    fn selectors_select_as_in_policy_v1() {
        let index = BudgetIndex::default();
        let any = [
            object(
                "by-label",
                json!({ "selector": { "matchLabels": { "app": "web" } } }),
                json!(null),
            ),
            object(
                "by-words",
                json!({ "selector": { "matchExpressions": [
                    { "key": "app", "operator": "In", "values": ["web", "api"] },
                    { "key": "canary", "operator": "DoesNotExist" },
                ] } }),
                json!(null),
            ),
            object("empty", json!({ "selector": {} }), json!(null)),
            object("none", json!({}), json!(null)),
            object(
                "unreadable",
                json!({ "selector": { "matchExpressions": [{ "key": "app", "operator": "Like" }] } }),
                json!(null),
            ),
        ];
        index.replace(&any);
        for (labels, selecting) in [
            (json!({ "app": "web" }), vec!["by-label", "by-words", "empty"]),
            (json!({ "app": "api" }), vec!["by-words", "empty"]),
            (json!({ "app": "web", "canary": "1" }), vec!["by-label", "empty"]),
            (json!({}), vec!["empty"]),
        ] {
            assert_eq!(names(&index, labels.clone()), selecting, "{labels}");
        }
        assert_eq!(index.of("other", &BTreeMap::new()), []);
    }

    #[test]
    fn what_a_budget_allows_and_whether_it_ever_does() {
        let selector = json!({});
        for (name, spec, status, allowed, never) in [
            ("one", json!({ "minAvailable": 2 }), status(1, 2, 3, 2), 1, false),
            ("not-now", json!({ "minAvailable": 2 }), status(0, 2, 3, 2), 0, false),
            (
                "all-of-them",
                json!({ "minAvailable": "100%" }),
                status(0, 3, 3, 2),
                0,
                true,
            ),
            (
                "more-than-all",
                json!({ "minAvailable": 4 }),
                status(0, 4, 3, 2),
                0,
                true,
            ),
            (
                "no-pods-yet",
                json!({ "minAvailable": 1 }),
                status(0, 1, 0, 2),
                0,
                false,
            ),
            ("zero", json!({ "maxUnavailable": 0 }), status(0, 0, 0, 2), 0, true),
            ("zero-percent", json!({ "maxUnavailable": "0%" }), json!(null), 0, true),
            (
                "ten-percent",
                json!({ "maxUnavailable": "10%" }),
                status(1, 2, 3, 2),
                1,
                false,
            ),
            (
                "of-an-earlier-spec",
                json!({ "minAvailable": 1 }),
                status(1, 3, 3, 1),
                0,
                false,
            ),
            ("fresh", json!({ "minAvailable": 1 }), json!(null), 0, false),
        ] {
            let mut spec = spec;
            spec["selector"] = selector.clone();
            let index = BudgetIndex::default();
            let mut trimmed = object(name, spec, status);
            let whole = Seen::of(&trimmed);
            trim(&mut trimmed);
            assert_eq!(Seen::of(&trimmed), whole, "{name}: trimming loses something");
            assert!(index.touched(&trimmed, false));
            let budget = Budget {
                name: name.to_owned(),
                disruptions_allowed: allowed,
                never,
            };
            assert_eq!(index.of("team", &BTreeMap::new()), [budget]);
        }
    }

    #[test]
    fn the_index_tells_whether_a_fact_changed() {
        let index = BudgetIndex::default();
        let budget = |allowed| {
            object(
                "web",
                json!({ "selector": {}, "minAvailable": 1 }),
                status(allowed, 1, 2, 2),
            )
        };
        assert!(index.touched(&budget(1), false));
        let mut same = budget(1);
        same.metadata.resource_version = Some("9".to_owned());
        assert!(!index.touched(&same, false));
        assert!(index.touched(&budget(0), false));
        assert!(index.touched(&budget(0), true));
        assert!(!index.touched(&budget(0), true));
        assert!(names(&index, json!({})).is_empty());
        // It loses its selector: as good as gone.
        index.replace(&[budget(1)]);
        assert!(index.touched(&object("web", json!({}), json!(null)), false));
        assert!(names(&index, json!({})).is_empty());
    }
}
