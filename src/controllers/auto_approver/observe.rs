//! Observe: everything that the answer to one request rests on.
//!
//! Owns which stores are read. Must not change anything; what was not learned counts as not there, which never brings an
//! approval forward.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::context::Context;
use super::group_of;
use crate::api::{InstanceGroup, InstanceGroupUpgradeRequest};
use crate::clock;
use crate::cluster::stores::find;
use crate::plan::approval::{Evidence, Question};
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
        now: clock::now(),
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
        evidence.soak = context.soaking.longest(&soak.schedule, image);
    }
    evidence
}
