//! The `spec` of an upgrade request: what would change, and the decision block.
//!
//! Everything outside the decision block is written once, by the operator. The rules at the root
//! are transition rules: they hold for any write that leaves the decision alone, so a stored
//! object can always be read, reported on and deleted.

#![expect(
    clippy::struct_excessive_bools,
    reason = "each switch of the decision block is a field of its own, so that one can be patched"
)]

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::status::InstanceGroupUpgradeRequestStatus;
use super::target::{InstanceGroupRef, UpgradeReason, UpgradeSource, UpgradeTarget};
use crate::api::schema::absent_not_null;

/// One target for a group's nodes, and what was decided about it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "instancemgr.keikoproj.io",
    version = "v1alpha1",
    kind = "InstanceGroupUpgradeRequest",
    plural = "instancegroupupgraderequests",
    singular = "instancegroupupgraderequest",
    shortname = "upgraderequest",
    shortname = "upgraderequests",
    shortname = "igur",
    category = "instancemgr",
    namespaced,
    selectable = ".spec.instanceGroupRef.name",
    selectable = ".status.phase",
    status = "InstanceGroupUpgradeRequestStatus",
    doc = "One target for the nodes of an instance group, waiting for or past its approval.",
    derive = "PartialEq",
    validation = (
        "!(oldSelf.spec.approved && !self.spec.approved) || !has(oldSelf.status) \
         || !has(oldSelf.status.phase) || oldSelf.status.phase in ['Pending', 'Approved']",
        "an approval cannot be withdrawn once the rollout has started; set spec.cancelled instead",
    ),
    validation = (
        "!has(oldSelf.status) || !has(oldSelf.status.phase) \
         || oldSelf.status.phase in ['Pending', 'Approved', 'InProgress'] \
         || (self.spec.approved == oldSelf.spec.approved \
         && self.spec.denied == oldSelf.spec.denied \
         && self.spec.cancelled == oldSelf.spec.cancelled \
         && self.spec.urgent == oldSelf.spec.urgent \
         && self.spec.approvedBy == oldSelf.spec.approvedBy \
         && self.spec.decisionReason == oldSelf.spec.decisionReason)",
        "this request is finished; its decisions are frozen",
    ),
    printcolumn(
        name = "Group",
        type_ = "string",
        json_path = ".spec.instanceGroupRef.name",
        description = "the instance group"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".spec.reason",
        description = "what kind of change it is"
    ),
    printcolumn(
        name = "From",
        type_ = "string",
        json_path = ".spec.from.imageId",
        description = "image that runs"
    ),
    printcolumn(
        name = "To",
        type_ = "string",
        json_path = ".spec.target.imageId",
        description = "image that would run"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "where the request stands"
    ),
    printcolumn(
        name = "Auto-At",
        type_ = "string",
        json_path = ".status.autoApproveAt",
        description = "when it will be approved by schedule"
    ),
    printcolumn(
        name = "By",
        type_ = "string",
        json_path = ".spec.approvedBy",
        description = "who decided last"
    ),
    printcolumn(
        name = "Progress",
        type_ = "string",
        json_path = ".status.progress",
        description = "nodes done of all nodes"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        description = "what is going on or waited for",
        priority = 1
    ),
    printcolumn(
        name = "Policy",
        type_ = "string",
        json_path = ".status.policy",
        description = "the schedule that applies",
        priority = 1
    ),
    printcolumn(
        name = "From-Name",
        type_ = "string",
        json_path = ".spec.from.imageName",
        description = "name of the image that runs",
        priority = 1
    ),
    printcolumn(
        name = "To-Name",
        type_ = "string",
        json_path = ".spec.target.imageName",
        description = "name of the image that would run",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!(self.approved && self.denied)",
    "approved and denied exclude each other",
))]
#[x_kube(validation = (
    "!oldSelf.denied || self.denied",
    "a denial is final; deleting the request lifts it",
))]
#[x_kube(validation = ("!oldSelf.cancelled || self.cancelled", "a cancellation is final"))]
#[x_kube(validation = (
    "self.approvedBy == oldSelf.approvedBy || self.approved != oldSelf.approved \
     || self.denied != oldSelf.denied || self.cancelled != oldSelf.cancelled \
     || self.urgent != oldSelf.urgent",
    "approvedBy changes only together with approved, denied, cancelled or urgent",
))]
#[x_kube(validation = (
    "has(self.from) == has(oldSelf.from) && (!has(self.from) || self.from == oldSelf.from)",
    "from cannot be changed, added or removed",
))]
#[schemars(transform = absent_not_null)]
pub struct InstanceGroupUpgradeRequestSpec {
    /// The group, in the request's namespace.
    #[x_kube(validation = ("self == oldSelf", "instanceGroupRef cannot be changed"))]
    pub instance_group_ref: InstanceGroupRef,
    /// What kind of change this is; it picks the policy.
    #[x_kube(validation = ("self == oldSelf", "reason cannot be changed"))]
    pub reason: UpgradeReason,
    /// What the group runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<UpgradeSource>,
    /// What it would run.
    #[x_kube(validation = (
        "self == oldSelf",
        "target cannot be changed; another target needs another request",
    ))]
    pub target: UpgradeTarget,
    /// True lets the rollout start.
    #[serde(default)]
    pub approved: bool,
    /// True turns the target down for good.
    #[serde(default)]
    pub denied: bool,
    /// True stops the rollout, or keeps it from starting.
    #[serde(default)]
    pub cancelled: bool,
    /// True passes maintenance windows; it does not pass a freeze.
    #[serde(default)]
    pub urgent: bool,
    /// User name of who decided last.
    #[schemars(length(max = 1024))]
    #[serde(default)]
    pub approved_by: String,
    /// Why, in the words of who decided.
    #[schemars(length(max = 1024))]
    #[serde(default)]
    pub decision_reason: String,
}
