//! Observe: everything that the answer to one request rests on.
//!
//! Owns which stores are read. Must not change anything; what was not learned counts as not there, which never brings an
//! approval forward.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::context::Context;
use super::group_of;
use crate::api::{InstanceGroup, InstanceGroupUpgradeRequest};
use crate::clock;
use crate::cluster::stores::find;
use crate::plan::approval::{Evidence, Question, Soaking};
use crate::plan::evidence::{Soaked, counted};
use crate::plan::settings::{GroupLabels, InForce, Schedule};

/// What was seen.
pub struct Observed {
    /// The time that counts.
    pub now: Timestamp,
    group: InstanceGroup,
    namespace_labels: BTreeMap<String, String>,
    group_labels: BTreeMap<String, String>,
    settings: Arc<InForce>,
    evidence: Evidence,
}

impl Observed {
    /// The question for the policy.
    #[must_use]
    pub fn question<'a>(&'a self, request: &'a InstanceGroupUpgradeRequest) -> Question<'a> {
        Question {
            now: self.now,
            request,
            group: &self.group,
            labels: GroupLabels {
                namespace: &self.namespace_labels,
                group: &self.group_labels,
            },
            settings: &self.settings,
            evidence: self.evidence,
        }
    }
}

/// Looks at everything for one request. `None` = its group is not there, so there is nothing to approve.
pub fn observe(context: &Context, request: &InstanceGroupUpgradeRequest) -> Option<Observed> {
    let group = group_of(context, request)?;
    let namespace = find(&context.namespaces, None, &request.namespace()?)?;
    let namespace_labels = namespace.metadata.labels.clone().unwrap_or_default();
    let group_labels = group.metadata.labels.clone().unwrap_or_default();
    let settings = context.settings.now();
    let labels = GroupLabels {
        namespace: &namespace_labels,
        group: &group_labels,
    };
    let evidence = evidence(context, request, &settings, labels);
    Some(Observed {
        now: counted(clock::now(), context.server_clock.skew()),
        evidence,
        group,
        namespace_labels,
        group_labels,
        settings,
    })
}

/// The schedule for a group.
pub fn schedule_of<'a>(context: &Context, settings: &'a InForce, group: &InstanceGroup) -> Option<&'a Schedule> {
    let namespace = find(&context.namespaces, None, &group.namespace()?)?;
    let unlabelled = BTreeMap::new();
    let labels = GroupLabels {
        namespace: namespace.metadata.labels.as_ref().unwrap_or(&unlabelled),
        group: group.labels(),
    };
    settings.binding()?.schedule(&labels)
}

fn evidence(
    context: &Context,
    request: &InstanceGroupUpgradeRequest,
    settings: &InForce,
    labels: GroupLabels<'_>,
) -> Evidence {
    let mut evidence = Evidence::default();
    let schedule = settings.sound().and_then(|settings| settings.schedule(&labels));
    let soak = schedule.and_then(|schedule| schedule.image.as_ref()?.soak.as_ref());
    if let (Some(soak), Some(image)) = (soak, request.spec.target.image_id.as_deref()) {
        let lasts = context.soaking.longest(&soak.schedule, image);
        let ended = context.proofs.longest(&soak.schedule, image);
        evidence.soak = best(lasts, ended, soak.lasts);
    }
    let target = &request.spec.target;
    let history = target
        .ssm
        .as_ref()
        .and_then(|ssm| context.catalogue.history(&ssm.parameter));
    if let (Some(history), Some(image)) = (history, target.image_id.as_deref())
        && let Some(seen) = history.of(image)
    {
        evidence.first_seen = Some(seen.first_seen);
        evidence.last_modified = seen.aged_from;
    }
    evidence
}

/// Of a span that lasts and one that ended, the one that is or will be proof first.
fn best(lasts: Option<Soaking>, ended: Option<Soaked>, wanted: SignedDuration) -> Option<Soaking> {
    let ended = ended.filter(|span| span.until.duration_since(span.since) >= wanted);
    let ended = ended.map(|span| Soaking {
        since: span.since,
        until: Some(span.until),
    });
    [lasts, ended].into_iter().flatten().min_by_key(|span| span.since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_proof_counts() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let lasts = |since: i64| {
            Some(Soaking {
                since: at(since),
                until: None,
            })
        };
        let ended = |since: i64, until: i64| {
            Some(Soaked {
                group: "team/workers".to_owned(),
                since: at(since),
                until: at(until),
            })
        };
        let wanted = SignedDuration::from_secs(10);
        for (lasting, over, since) in [
            (None, None, None),
            (lasts(5), None, Some(5)),
            (lasts(5), ended(1, 20), Some(1)),
            (lasts(5), ended(1, 8), Some(5)),
            (None, ended(1, 8), None),
            (lasts(0), ended(1, 20), Some(0)),
        ] {
            assert_eq!(best(lasting, over, wanted).map(|span| span.since), since.map(at));
        }
    }
}
