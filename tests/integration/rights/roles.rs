//! The roles that the chart makes, and where Kubernetes adds them to its own.
//!
//! Owns what each role may do. What the policies make of it is in the other files.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::ground::policed;
use super::people::{GROUPS, OURS, Person, REQUESTS};

const SOON: Duration = Duration::from_secs(30);

/// What a role may do with groups and with requests, statuses included.
const ROLES: [(&str, &[&str], &[&str]); 7] = [
    ("sluice-viewer", &["get", "list", "watch"], &["get", "list", "watch"]),
    ("sluice-editor", EDITS, &["get", "list", "watch"]),
    (
        "sluice-approver",
        &["get", "list", "watch"],
        &["get", "list", "watch", "patch", "update", "delete", "approve"],
    ),
    (
        "sluice-unlocker",
        &["get", "list", "watch", "patch", "update", "unlock"],
        &["get", "list", "watch"],
    ),
    // Kubernetes' own, with ours added.
    ("view", &["get", "list", "watch"], &["get", "list", "watch"]),
    ("edit", EDITS, &["get", "list", "watch"]),
    ("admin", EDITS, &["get", "list", "watch"]),
];
const EDITS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "patch",
    "update",
    "delete",
    "deletecollection",
];
const VERBS: [&str; 10] = [
    "get",
    "list",
    "watch",
    "create",
    "patch",
    "update",
    "delete",
    "deletecollection",
    "approve",
    "unlock",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_do_what_it_says_and_no_more() -> Result<()> {
    let namespace = "rights-roles";
    let testbed = policed(namespace).await?;
    for (role, groups, requests) in ROLES {
        let person = Person::named(testbed, &format!("{role}@{namespace}")).await?;
        let person = person.given(testbed, Some(namespace), role).await?;
        testbed
            .until(SOON, &format!("what {role} may do"), async || {
                for (resource, allowed) in [(GROUPS, groups), (REQUESTS, requests)] {
                    for verb in VERBS {
                        let may = person.can(Some(namespace), verb, OURS, resource).await?;
                        ensure!(may == allowed.contains(&verb), "{role}: {verb} {resource} is {may}");
                    }
                    for verb in ["get", "patch", "update"] {
                        let status = format!("{resource}/status");
                        let may = person.can(Some(namespace), verb, OURS, &status).await?;
                        ensure!(!may, "{role} may {verb} {status}");
                    }
                }
                Ok(Some(()))
            })
            .await?;
    }
    Ok(())
}

/// The API server's own reading of the policies: a field that is not there would only show on a request.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_finds_nothing_wrong_with_the_policies() -> Result<()> {
    let testbed = policed("rights-typed").await?;
    let list = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    testbed
        .until(SOON, "all policies to be checked", async || {
            let policies = super::people::taken(Person::admin(testbed).get(list).await?, "policies")?;
            let policies = policies["items"].as_array().cloned().unwrap_or_default();
            ensure!(policies.len() == 4, "{} policies", policies.len());
            for policy in policies {
                let status: &Value = &policy["status"];
                ensure!(status["typeChecking"].is_object(), "not checked: {status}");
                let warnings = &status["typeChecking"]["expressionWarnings"];
                ensure!(warnings.is_null(), "{}: {warnings}", policy["metadata"]["name"]);
            }
            Ok(Some(()))
        })
        .await
}
