//! The wire types: what is stored in the cluster under the group `instancemgr.keikoproj.io`.
//!
//! Owns the two kinds, their schemas, rules and columns, and the names that other programs see:
//! finalizers, annotations, labels, field managers, condition types. It must not import any other
//! layer, and holds no decision.

pub mod annotation;
pub mod conditions;
pub mod crds;
pub mod duration;
pub mod instance_group;
pub mod label;
pub mod node_record;
pub mod reasons;
mod schema;
pub mod upgrade_request;

pub use conditions::{condition, find_condition, remove_condition, set_condition};
pub use duration::parse_duration;
pub use instance_group::{InstanceGroup, InstanceGroupSpec, InstanceGroupStatus};
pub use node_record::{NodeRecord, NodeState};
pub use reasons::{ConditionStatus, ConditionType, Reason};
pub use upgrade_request::{
    InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestSpec, InstanceGroupUpgradeRequestStatus,
};

/// API group of both kinds.
pub const GROUP: &str = "instancemgr.keikoproj.io";

/// API version of both kinds.
pub const VERSION: &str = "v1alpha1";

/// Start of every annotation, label and finalizer name that is ours.
pub const PREFIX: &str = "instancemgr.keikoproj.io/";

/// Finalizer of an instance group; it stays until every AWS resource of the group is gone.
pub const INSTANCE_GROUP_FINALIZER: &str = "finalizer.instancegroups.keikoproj.io";

/// Finalizer of an upgrade request; it makes a person's deletion visible.
pub const UPGRADE_REQUEST_FINALIZER: &str = "instancemgr.keikoproj.io/upgrade-request";

/// Names under which the API server records who wrote a field; one a controller.
pub mod field_manager {
    /// The controller of instance groups.
    pub const INSTANCE_GROUP: &str = "sluice/instance-group";
    /// The controller that approves by schedule.
    pub const AUTO_APPROVER: &str = "sluice/auto-approver";
    /// The controller of `kube-system/aws-auth`.
    pub const AWS_AUTH: &str = "sluice/aws-auth";
    /// The operator outside its controllers: the lease, the image record.
    pub const OPERATOR: &str = "sluice/operator";
}
