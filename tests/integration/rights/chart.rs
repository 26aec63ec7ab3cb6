//! What the chart makes of its values, without a cluster.
//!
//! Owns the rendered manifests. That they work is shown on real servers.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::testbed::installation::chart;
use crate::testbed::{Testbed, shared};

const KIND: &str = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";

/// All objects of a release `sluice` in namespace `team`.
async fn rendered(testbed: &Testbed, version: &str, more: &[&str]) -> Result<Vec<Value>> {
    let (chart, version) = (chart(), format!("--kube-version={version}"));
    let mut arguments = vec!["template", "sluice", &chart, "--namespace=team", &version];
    arguments.extend(more);
    let text = testbed.helm(&arguments).await?.success()?;
    Ok(serde_saphyr::from_multiple(&text)?)
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn arguments(objects: &[Value]) -> Result<Vec<&str>> {
    let deployment = of_kind(objects, "Deployment").pop().context("a Deployment")?;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
    Ok(arguments.into_iter().flatten().filter_map(Value::as_str).collect())
}

/// Whether the operator's role has a verb on a resource.
fn operator_may(objects: &[Value], verb: &str, resource: &str) -> bool {
    let all = of_kind(objects, "ClusterRole").into_iter();
    let mut of_the_operator = all.filter(|role| role["metadata"]["name"] == "sluice-operator");
    let holds = |list: &Value, item: &str| list.as_array().is_some_and(|list| list.iter().any(|it| it == item));
    of_the_operator.any(|role| {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules
            .into_iter()
            .any(|rule| holds(&rule["verbs"], verb) && holds(&rule["resources"], resource))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_stamped_where_the_server_can() -> Result<()> {
    let testbed = shared().await?;
    let (always, never) = (
        "--set=admissionPolicies.stampNames=always",
        "--set=admissionPolicies.stampNames=never",
    );
    let off = "--set=admissionPolicies.enabled=false";
    for (version, more, stamps) in [
        ("1.33.0", &[][..], false),
        ("1.35.4", &[KIND], false),
        ("1.36.0", &[KIND], true),
        ("1.36.1-eks-3025e55", &[KIND], true),
        ("1.37.0", &[KIND], true),
        // A server that does not serve the kind; and helm template, which asks no server.
        ("1.36.0", &[], false),
        ("1.36.0", &[always], true),
        ("1.36.0", &[KIND, never], false),
        ("1.36.0", &[KIND, off], false),
        ("1.36.0", &[always, off], false),
    ] {
        let objects = rendered(testbed, version, more).await?;
        let what = format!("{version} {more:?}");
        for kind in ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"] {
            ensure!(of_kind(&objects, kind).len() == usize::from(stamps), "{what}: {kind}");
        }
        // The operator looks for the policies exactly where they are, and may.
        let arguments = arguments(&objects)?;
        for (flag, resource) in [
            ("--request-policy-name=sluice-requests", "validatingadmissionpolicies"),
            (
                "--request-policy-name=sluice-requests",
                "validatingadmissionpolicybindings",
            ),
            ("--stamping-policy-name=sluice-stamp", "mutatingadmissionpolicies"),
            ("--stamping-policy-name=sluice-stamp", "mutatingadmissionpolicybindings"),
        ] {
            ensure!(arguments.contains(&flag) == stamps, "{what}: {arguments:?}");
            ensure!(operator_may(&objects, "get", resource) == stamps, "{what}: {resource}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_approve_exactly_while_the_auto_approver_runs() -> Result<()> {
    let testbed = shared().await?;
    for (more, controllers, approves) in [
        (&[][..], "*", true),
        (&["--set=autoApprover.enabled=false"], "*,-auto-approver", false),
        (&["--set=controllers={*,-auto-approver}"], "*,-auto-approver", false),
        (&["--set=controllers={-auto-approver,*}"], "-auto-approver,*", true),
        (
            &[
                "--set=controllers={-auto-approver,*}",
                "--set=autoApprover.enabled=false",
            ],
            "*,-auto-approver",
            false,
        ),
        (&["--set=controllers={instance-group}"], "instance-group", false),
        (
            &["--set=controllers={instance-group,auto-approver}"],
            "instance-group,auto-approver",
            true,
        ),
        // Also without the policies, so that turning them on takes effect.
        (
            &[
                "--set=autoApprover.enabled=false",
                "--set=admissionPolicies.enabled=false",
            ],
            "*,-auto-approver",
            false,
        ),
    ] {
        let objects = rendered(testbed, "1.36.0", more).await?;
        let flag = format!("--controllers={controllers}");
        ensure!(
            arguments(&objects)?.contains(&flag.as_str()),
            "{more:?}: {:?}",
            arguments(&objects)?
        );
        ensure!(
            operator_may(&objects, "approve", "instancegroupupgraderequests") == approves,
            "{more:?}: approve"
        );
        ensure!(!operator_may(&objects, "unlock", "instancegroups"), "{more:?}: unlock");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_policy_is_bound_and_refuses_in_words() -> Result<()> {
    let testbed = shared().await?;
    let objects = rendered(testbed, "1.36.0", &[KIND, "--set=configNamespace=settings"]).await?;
    let policies = of_kind(&objects, "ValidatingAdmissionPolicy");
    ensure!(policies.len() == 4, "{} policies", policies.len());
    for policy in policies {
        let (name, spec) = (&policy["metadata"]["name"], &policy["spec"]);
        ensure!(spec["failurePolicy"] == "Fail", "{name}");
        for validation in spec["validations"].as_array().into_iter().flatten() {
            ensure!(
                validation["reason"] == "Forbidden" && validation["message"].is_string(),
                "{name}: {validation}"
            );
        }
        let bindings = of_kind(&objects, "ValidatingAdmissionPolicyBinding");
        let bound = bindings.iter().find(|binding| binding["spec"]["policyName"] == *name);
        let bound = bound.with_context(|| format!("{name} is not bound"))?;
        ensure!(
            bound["metadata"]["name"] == *name && bound["spec"]["validationActions"][0] == "Deny",
            "{bound}"
        );
    }
    let none = rendered(testbed, "1.36.0", &[KIND, "--set=admissionPolicies.enabled=false"]).await?;
    ensure!(none.iter().all(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        !kind.contains("AdmissionPolicy")
    }));
    Ok(())
}
