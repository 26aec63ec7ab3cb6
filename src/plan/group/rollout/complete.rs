//! The end of a rollout that went well.
//!
//! Owns the passes that make the target the approved one; each can be repeated. Must not judge whether the end is reached.

use crate::api::instance_group::{HistoryEntry, HistoryResult};
use crate::plan::facts::LaunchTemplate;
use crate::plan::group::draft::Draft;
use crate::plan::group::{Standing, records, requests};
use crate::plan::naming::VersionMark;
use crate::plan::step::Action;
use crate::plan::target::Approved;

use super::Rollout;

/// The end of a rollout, in passes that each can be repeated: the default version, the record, the request.
pub fn complete(
    draft: &mut Draft<'_>,
    standing: &Standing<'_>,
    rollout: &Rollout,
    template: &LaunchTemplate,
    version: i64,
) {
    if template.default_version != version {
        draft.act(Action::SetDefaultVersion {
            template_id: template.id.clone(),
            number: version,
        });
        return draft.again();
    }
    let name = rollout
        .request
        .as_ref()
        .and_then(|request| request.metadata.name.clone());
    // A target that comes back has a request of the same name: only an entry since this rollout's start is its own.
    let started_at = rollout
        .request
        .as_ref()
        .and_then(|request| request.status.as_ref()?.started_at.clone());
    let recorded = |entry: &HistoryEntry| {
        entry.request == name && entry.result == HistoryResult::Succeeded && entry.when >= started_at
    };
    let is_approved =
        standing.approved.mark.fingerprint == rollout.fingerprint && standing.approved.version == Some(version);
    if name.is_none() || !is_approved || !draft.status.history.iter().any(recorded) {
        let mark = template
            .versions
            .get(&version)
            .and_then(|found| VersionMark::parse(&found.description));
        let from = standing.approved.clone();
        let approved = Approved {
            mark: mark.unwrap_or_else(|| from.mark.clone()),
            version: Some(version),
            image_id: Some(rollout.image_id.clone()),
        };
        records::remember(draft, &approved);
        draft.status.rollout = None;
        requests::proven(draft, &from, &rollout.key());
        if name.is_none() {
            records::prune(draft, standing, draft.observed.kept_versions);
        }
        let entry = HistoryEntry {
            from: Some(from.mark.fingerprint),
            to: Some(rollout.fingerprint.clone()),
            from_image: from.image_id,
            to_image: Some(rollout.image_id.clone()),
            by: Some(
                rollout
                    .request
                    .as_ref()
                    .map_or_else(|| "unlocked".to_owned(), requests::by),
            ),
            when: Some(draft.time()),
            result: HistoryResult::Succeeded,
            request: name,
            message: None,
        };
        draft.record(entry);
        draft.notice(
            false,
            "UpgradeSucceeded",
            format!("all nodes run image {} (version {version})", rollout.image_id),
        );
        return draft.again();
    }
    if let Some(request) = &rollout.request {
        let message = format!(
            "all {} nodes run image {}",
            standing.scaling_group.desired_capacity, rollout.image_id
        );
        requests::succeed(
            draft,
            request,
            i64::from(standing.scaling_group.desired_capacity),
            &message,
        );
    }
    records::prune(draft, standing, draft.observed.kept_versions);
    records::rest(draft, standing);
    draft.again();
}
