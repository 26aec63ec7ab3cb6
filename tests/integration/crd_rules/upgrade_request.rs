//! The rules of a request: decisions, and what a request is about.
//!
//! Owns what one person's writes may do. Two people at once are in `approvers`, manifests applied again in
//! `applied_again`. It must not ask who may decide: that is for the admission policies.

use anyhow::Result;
use serde_json::json;

use super::request_table::{
    CANCELLATION, DENIAL, EXCLUSIVE, FROM, FROZEN, NAME_ALONE, STARTED, TERMINAL, base, cases, decisions, forgeries,
};
use super::stored_request::Stored;
use super::{REQUESTS, accepted, merged, patch, path, prepared, refused, try_create};

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_of_a_request_takes_what_keeps_it_and_refuses_what_breaks_it() -> Result<()> {
    let testbed = prepared("rules-request").await?;
    let mut wrong = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        let stored = Stored::new(testbed, "rules-request", &format!("r{index}"), &case.stored, case.phase).await?;
        for edit in &case.accepted {
            if let Err(refusal) = stored.try_decide(edit).await? {
                wrong.push(format!("{}: {edit} was refused: {}", case.message, refusal.text));
            }
        }
        for edit in &case.refused {
            match stored.try_decide(edit).await? {
                Ok(_) => wrong.push(format!("{}: {edit} was accepted", case.message)),
                Err(refusal)
                    if refusal
                        .causes
                        .iter()
                        .any(|(at, text)| at == case.field && text.ends_with(case.message)) => {}
                Err(refusal) => wrong.push(format!(
                    "{}: {edit} was refused with {:?}",
                    case.message, refusal.causes
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn approve_and_deny_exclude_each_other() -> Result<()> {
    let testbed = prepared("rules-exclusive").await?;
    let open = async |name| Stored::new(testbed, "rules-exclusive", name, &json!({}), Some("Pending")).await;
    let both = json!({"approved": true, "denied": true});
    open("at-once").await?.refuses(&both, EXCLUSIVE).await?;
    let approved = open("approved").await?;
    approved.takes(&json!({"approved": true})).await?;
    approved.refuses(&json!({"denied": true}), EXCLUSIVE).await?;
    let denied = open("denied").await?;
    denied.takes(&json!({"denied": true})).await?;
    denied.refuses(&json!({"approved": true}), EXCLUSIVE).await?;
    denied
        .refuses(&json!({"approved": true, "denied": false}), DENIAL)
        .await?;
    let born = merged(base("born", "rules-exclusive"), &json!({"spec": both}));
    refused(
        try_create(&testbed.admin(), REQUESTS, &born).await?,
        EXCLUSIVE,
        "creation with both",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_request_takes_no_decision() -> Result<()> {
    let testbed = prepared("rules-finished").await?;
    for phase in TERMINAL {
        let name = phase.to_lowercase();
        let finished = Stored::new(testbed, "rules-finished", &name, &json!({}), Some(phase)).await?;
        for decision in decisions() {
            finished.refuses(&decision, FROZEN).await?;
        }
        // It can still be labelled, reported on and removed.
        let client = &finished.client;
        let note = json!({"metadata": {"annotations": {"seen": "yes"}, "labels": {"seen": "yes"}}});
        accepted(
            patch(client, REQUESTS, "rules-finished", &name, &note).await?,
            "an annotation",
        )?;
        let status = json!({"status": {"message": "done", "finishedAt": "2026-01-01T00:00:00Z"}});
        accepted(
            patch(client, REQUESTS, "rules-finished", &format!("{name}/status"), &status).await?,
            "a status",
        )?;
        let path = format!("{}/{name}", path(REQUESTS, "rules-finished"));
        accepted(
            super::ask(client, "DELETE", &path, "application/json", &json!({})).await?,
            "a deletion",
        )?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_true_or_false_and_no_text() -> Result<()> {
    let testbed = prepared("rules-boolean").await?;
    let request = Stored::new(testbed, "rules-boolean", "r", &json!({}), Some("Pending")).await?;
    for field in ["approved", "denied", "cancelled", "urgent"] {
        for (value, kind) in [
            (json!("true"), "string"),
            (json!("yes"), "string"),
            (json!(1), "integer"),
        ] {
            let edit = json!({field: value});
            let message = format!(r#"spec.{field} in body must be of type boolean: "{kind}""#);
            request.refuses(&edit, &message).await?;
            let born = merged(base("born", "rules-boolean"), &json!({"spec": edit}));
            refused(
                try_create(&testbed.admin(), REQUESTS, &born).await?,
                &message,
                "at creation",
            )?;
        }
    }
    // What a person sees.
    let typed = [
        "patch",
        "igur",
        "r",
        "-n",
        "rules-boolean",
        "--type=merge",
        "-p",
        r#"{"spec":{"approved":"true"}}"#,
    ];
    let complaint = testbed.kubectl(&typed).await?.failure()?;
    assert!(complaint.contains("spec.approved"), "{complaint}");
    assert!(complaint.contains("must be of type boolean"), "{complaint}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_and_a_cancellation_are_final() -> Result<()> {
    let testbed = prepared("rules-final").await?;
    for phase in [None, Some("Pending"), Some("Approved"), Some("InProgress")] {
        let name = |word: &str| format!("{word}-{}", phase.unwrap_or("new").to_lowercase());
        let denied = Stored::new(testbed, "rules-final", &name("denied"), &json!({"denied": true}), phase).await?;
        denied.refuses(&json!({"denied": false}), DENIAL).await?;
        denied.refuses(&json!({"denied": null}), DENIAL).await?;
        let cancelled = json!({"approved": true, "cancelled": true});
        let cancelled = Stored::new(testbed, "rules-final", &name("cancelled"), &cancelled, phase).await?;
        cancelled.refuses(&json!({"cancelled": false}), CANCELLATION).await?;
        cancelled.refuses(&json!({"cancelled": null}), CANCELLATION).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_can_be_withdrawn_until_the_rollout_starts() -> Result<()> {
    let testbed = prepared("rules-withdrawal").await?;
    let approved = json!({"approved": true, "approvedBy": "alice"});
    for phase in [None, Some("Pending"), Some("Approved")] {
        let name = phase.unwrap_or("new").to_lowercase();
        let request = Stored::new(testbed, "rules-withdrawal", &name, &approved, phase).await?;
        request.takes(&json!({"approved": false, "approvedBy": "bob"})).await?;
        request.takes(&json!({"approved": true, "approvedBy": "alice"})).await?;
        request
            .takes(&json!({"approved": false, "denied": true, "approvedBy": "bob"}))
            .await?;
    }
    let started = Stored::new(testbed, "rules-withdrawal", "started", &approved, Some("InProgress")).await?;
    started.refuses(&json!({"approved": false}), STARTED).await?;
    started
        .refuses(&json!({"approved": false, "denied": true}), STARTED)
        .await?;
    started.refuses(&json!({"denied": true}), EXCLUSIVE).await?;
    started.takes(&json!({"cancelled": true, "approvedBy": "bob"})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn urgency_can_be_turned_on_and_off_until_the_end() -> Result<()> {
    let testbed = prepared("rules-urgent").await?;
    for phase in [None, Some("Pending"), Some("Approved"), Some("InProgress")] {
        let name = phase.unwrap_or("new").to_lowercase();
        let request = Stored::new(testbed, "rules-urgent", &name, &json!({}), phase).await?;
        request.takes(&json!({"urgent": true, "approvedBy": "alice"})).await?;
        request.takes(&json!({"urgent": false, "approvedBy": "bob"})).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_is_about_cannot_change() -> Result<()> {
    let testbed = prepared("rules-about").await?;
    let phases = [
        None,
        Some("Pending"),
        Some("Approved"),
        Some("InProgress"),
        Some("Succeeded"),
    ];
    for (phase, name) in phases
        .into_iter()
        .zip(["new", "pending", "approved", "started", "done"])
    {
        let request = Stored::new(testbed, "rules-about", name, &json!({}), phase).await?;
        for (message, edit) in forgeries() {
            request.refuses(&edit, message).await?;
            // Not along with a decision either.
            let mut along = edit;
            along["approved"] = true.into();
            request.refuses(&along, message).await?;
        }
        for field in ["target", "reason", "instanceGroupRef"] {
            request.refuses(&json!({field: null}), "Required value").await?;
        }
        let sourceless = format!("{name}-without-source");
        let request = Stored::new(testbed, "rules-about", &sourceless, &json!({"from": null}), phase).await?;
        request.refuses(&json!({"from": {"imageId": "ami-1"}}), FROM).await?;
        request.refuses(&json!({"from": {}}), FROM).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_is_not_named_without_a_decision() -> Result<()> {
    let testbed = prepared("rules-name").await?;
    let approved = json!({"approved": true, "approvedBy": "alice"});
    for (name, spec, phase) in [
        ("new", json!({}), None),
        ("pending", json!({}), Some("Pending")),
        ("approved", approved.clone(), Some("Approved")),
        ("started", approved, Some("InProgress")),
        (
            "denied",
            json!({"denied": true, "approvedBy": "alice"}),
            Some("Pending"),
        ),
    ] {
        let request = Stored::new(testbed, "rules-name", name, &spec, phase).await?;
        request.refuses(&json!({"approvedBy": "eve"}), NAME_ALONE).await?;
        request
            .refuses(&json!({"approvedBy": "eve", "decisionReason": "why"}), NAME_ALONE)
            .await?;
        // The decision that stands already is not taken once more.
        let same = merged(spec, &json!({"approvedBy": "eve"}));
        request.refuses(&same, NAME_ALONE).await?;
        request.takes(&json!({"decisionReason": "why"})).await?;
    }
    Ok(())
}
