//! The manifests of `examples/rights`, applied as they are.
//!
//! Owns namespace `team` of the testbed. `docs/rights.md` tells of the same files.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::ground::policed;
use super::people::{GROUPS, OURS, Person, REQUESTS};
use crate::testbed::installation::HOME;

const SOON: Duration = Duration::from_secs(30);
const TEAM: &str = "team";

/// Who may do what after all files were applied: user, verb, resource, namespace, and whether.
const RIGHTS: [(&str, &str, &str, &str, bool); 16] = [
    ("anna@example.com", "approve", REQUESTS, TEAM, true),
    ("anna@example.com", "patch", REQUESTS, TEAM, true),
    ("anna@example.com", "approve", REQUESTS, HOME, false),
    ("anna@example.com", "unlock", GROUPS, TEAM, false),
    (
        "ben@example.com",
        "approve",
        "instancegroupupgraderequests:workers-0123456789",
        TEAM,
        true,
    ),
    (
        "ben@example.com",
        "patch",
        "instancegroupupgraderequests:workers-0123456789",
        TEAM,
        true,
    ),
    (
        "ben@example.com",
        "approve",
        "instancegroupupgraderequests:workers-9876543210",
        TEAM,
        false,
    ),
    ("ben@example.com", "approve", REQUESTS, TEAM, false),
    ("carla@example.com", "unlock", GROUPS, TEAM, true),
    ("carla@example.com", "unlock", GROUPS, HOME, true),
    ("carla@example.com", "update", "configmaps:instance-manager", HOME, true),
    ("carla@example.com", "approve", REQUESTS, TEAM, false),
    ("system:serviceaccount:team:gitops", "create", GROUPS, TEAM, true),
    ("system:serviceaccount:team:gitops", "unlock", GROUPS, TEAM, false),
    ("system:serviceaccount:team:gitops", "approve", REQUESTS, TEAM, false),
    ("system:serviceaccount:team:gitops", "patch", REQUESTS, TEAM, false),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_give_what_they_say() -> Result<()> {
    let testbed = policed(TEAM).await?;
    let folder = format!("{}/examples/rights", env!("CARGO_MANIFEST_DIR"));
    let applied = testbed.kubectl(&["apply", "-f", &folder]).await?.success()?;
    let files = std::fs::read_dir(&folder).context("the examples")?.count();
    ensure!(
        files == 4 && applied.lines().count() >= files,
        "{files} files: {applied}"
    );
    for (user, verb, resource, namespace, expected) in RIGHTS {
        let person = Person::named(testbed, user).await?;
        let group = if resource.starts_with("configmaps") { "" } else { OURS };
        testbed
            .until(SOON, &format!("{user} {verb} {resource} in {namespace}"), async || {
                let may = person.can(Some(namespace), verb, group, resource).await?;
                ensure!(may == expected, "it is {may}");
                Ok(Some(()))
            })
            .await?;
    }
    Ok(())
}
