//! Deciding on a request needs the verb approve.
//!
//! Owns each field of the decision block, in each way of writing it. Names are in `names`, other fields in `forgeries`.

use anyhow::{Result, ensure};
use serde_json::json;

use super::ground::{opened, policed, request};
use super::people::{GROUPS, OPERATOR, OURS, Person, REQUESTS, Rule, forbidden, path, taken};

const LACKS: &str = "lacks the verb approve on instancegroupupgraderequests.instancemgr.keikoproj.io";

/// Every change of the decision block that a person might write.
fn decisions() -> Vec<serde_json::Value> {
    vec![
        json!({"approved": true}),
        json!({"denied": true}),
        json!({"cancelled": true}),
        json!({"urgent": true}),
        json!({"decisionReason": "why"}),
        json!({"approved": true, "approvedBy": ""}),
        json!({"approved": true, "decisionReason": "why"}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_without_the_verb_approve() -> Result<()> {
    let namespace = "rights-decide";
    let testbed = policed(namespace).await?;
    let bob = Person::writer(testbed, namespace, "bob").await?;
    let alice = Person::writer(testbed, namespace, "alice").await?;
    let alice = alice.given(testbed, Some(namespace), "sluice-approver").await?;
    for (index, decision) in decisions().into_iter().enumerate() {
        let name = format!("r{index}");
        let before = opened(testbed, namespace, &name, Some("Pending")).await?;
        let at = format!("{}/{name}", path(REQUESTS, namespace));
        let patch = json!({"spec": decision});
        let what = format!("bob: {decision}");
        let words = [bob.name.as_str(), LACKS, namespace, &name, "sluice-approver"];
        forbidden(bob.ask("PATCH", &at, &patch).await?, &words, &what)?;
        let mut whole = before.clone();
        for (field, value) in decision.as_object().into_iter().flatten() {
            whole["spec"][field] = value.clone();
        }
        forbidden(bob.ask("PUT", &at, &whole).await?, &words, &what)?;
        let mut applied = request(&name);
        applied["spec"] = whole["spec"].clone();
        let apply = format!("{at}?fieldManager=bob&force=true");
        let answer = bob
            .send("PATCH", &apply, "application/apply-patch+yaml", &applied)
            .await?;
        forbidden(answer, &words, &what)?;
        ensure!(
            taken(bob.get(&at).await?, "reading")? == before,
            "{what}: refused and changed"
        );
        taken(alice.ask("PATCH", &at, &patch).await?, &format!("alice: {decision}"))?;
    }
    Ok(())
}

/// Taking an approval back is a decision like the others, and so is a patch that removes the field.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_withdrawn_only_with_the_verb_approve() -> Result<()> {
    let namespace = "rights-withdraw";
    let testbed = policed(namespace).await?;
    let bob = Person::writer(testbed, namespace, "bob").await?;
    let alice = Person::named(testbed, "alice@rights-withdraw").await?;
    let alice = alice.given(testbed, Some(namespace), "sluice-approver").await?;
    opened(testbed, namespace, "r", Some("Pending")).await?;
    let at = format!("{}/r", path(REQUESTS, namespace));
    taken(
        alice.ask("PATCH", &at, &json!({"spec": {"approved": true}})).await?,
        "alice",
    )?;
    for withdrawal in [json!(false), json!(null)] {
        let patch = json!({"spec": {"approved": withdrawal}});
        forbidden(bob.ask("PATCH", &at, &patch).await?, &[LACKS], "bob withdraws")?;
    }
    // What changes nothing of the decision is the writer's.
    for free in [
        json!({"spec": {"approved": true}}),
        json!({"metadata": {"annotations": {"example.com/ticket": "1"}, "labels": {"example.com/ticket": "1"}}}),
    ] {
        taken(bob.ask("PATCH", &at, &free).await?, "bob writes something else")?;
    }
    taken(
        alice.ask("PATCH", &at, &json!({"spec": {"approved": null}})).await?,
        "alice withdraws",
    )?;
    Ok(())
}

/// `resourceNames` in a role: the verb on one request, and on no other.
#[tokio::test(flavor = "multi_thread")]
async fn approve_can_be_given_on_one_request() -> Result<()> {
    let namespace = "rights-one";
    let testbed = policed(namespace).await?;
    let carol = Person::writer(testbed, namespace, "carol").await?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "one"},
        "rules": [{"apiGroups": [OURS], "resources": [REQUESTS], "resourceNames": ["mine"], "verbs": ["approve"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
        "subjects": [carol.subject()],
    });
    for (plural, object) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}");
        taken(Person::admin(testbed).ask("POST", &path, &object).await?, plural)?;
    }
    let approval = json!({"spec": {"approved": true}});
    for name in ["mine", "other"] {
        opened(testbed, namespace, name, Some("Pending")).await?;
    }
    let all = path(REQUESTS, namespace);
    testbed
        .until(
            std::time::Duration::from_secs(30),
            "the one right to count",
            async || {
                let mine = carol.ask("PATCH", &format!("{all}/mine"), &approval).await?;
                Ok(Some(taken(mine, "carol on hers")?))
            },
        )
        .await?;
    let other = carol.ask("PATCH", &format!("{all}/other"), &approval).await?;
    forbidden(other, &[LACKS, "rights-one/other"], "carol on the other")?;
    // A deletion of all of them comes without a name; each is judged by its own all the same.
    let denial = json!({"spec": {"denied": true}});
    taken(
        Person::admin(testbed)
            .ask("PATCH", &format!("{all}/other"), &denial)
            .await?,
        "a denial",
    )?;
    let selected = format!("{all}?labelSelector=instancemgr.keikoproj.io/tier=prod");
    let answer = carol.ask("DELETE", &selected, &json!(null)).await?;
    forbidden(answer, &[LACKS, "rights-one/other"], "carol deletes all")?;
    Ok(())
}

/// The verb in one namespace says nothing in another, and a right on groups nothing on requests.
#[tokio::test(flavor = "multi_thread")]
async fn approve_holds_where_it_was_given() -> Result<()> {
    let (here, there) = ("rights-here", "rights-there");
    let testbed = policed(here).await?;
    super::ground::make_namespace(testbed, there).await?;
    let alice = Person::named(testbed, "alice@rights-here").await?;
    let rule: Rule<'_> = (&["patch"], OURS, &[REQUESTS]);
    let alice = alice.given(testbed, Some(here), "sluice-approver").await?;
    let alice = alice
        .may(testbed, Some(there), &[rule, (&["approve"], OURS, &[GROUPS])])
        .await?;
    opened(testbed, there, "r", Some("Pending")).await?;
    let at = format!("{}/r", path(REQUESTS, there));
    let answer = alice.ask("PATCH", &at, &json!({"spec": {"approved": true}})).await?;
    forbidden(answer, &[LACKS, "in namespace rights-there"], "alice elsewhere")
}

/// The chart's default: the auto-approver may decide, as the operator and under its own name.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_decides_while_the_auto_approver_is_on() -> Result<()> {
    let namespace = "rights-auto";
    let testbed = policed(namespace).await?;
    let operator = Person::operator(testbed).await?;
    ensure!(operator.can(Some(namespace), "approve", OURS, REQUESTS).await?);
    ensure!(!operator.can(Some(namespace), "unlock", OURS, GROUPS).await?);
    opened(testbed, namespace, "r", Some("Pending")).await?;
    let at = format!("{}/r", path(REQUESTS, namespace));
    let patch = json!([
        {"op": "test", "path": "/spec/approved", "value": false},
        {"op": "replace", "path": "/spec/approved", "value": true},
    ]);
    let answer = operator
        .send("PATCH", &at, "application/json-patch+json", &patch)
        .await?;
    let approved = taken(answer, "the auto-approver")?;
    ensure!(approved["spec"]["approvedBy"] == OPERATOR, "{}", approved["spec"]);
    Ok(())
}
