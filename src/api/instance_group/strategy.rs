//! How running nodes are replaced: `spec.strategy`.
//!
//! Owns the wire shape and the meaning of its words. It must not resolve percentages against a
//! group's size.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::schema::filled;

/// How running nodes are replaced when what a new node boots changes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStrategy {
    /// `rollingUpdate`, `crd` or `managed`, in any case; absent means `rollingUpdate`.
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self.lowerAscii() in ['', 'rollingupdate', 'crd', 'managed']",
        "strategy.type must be rollingUpdate, crd or managed",
    ))]
    #[serde(
        default,
        rename = "type",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "filled"
    )]
    pub type_: Option<String>,
    /// Replacement by another controller's object; read when the type is `crd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd: Option<CrdStrategy>,
    /// Replacement by the operator; read when the type is `rollingUpdate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// Replacement of nodes by the operator, some at a time.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// Nodes that may be unavailable at a time, a number or a percentage of the group rounded up;
    /// absent or 0 means 1.
    #[x_kube(validation = (
        "type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^[0-9]{1,9}%$')",
        "rollingUpdate.maxUnavailable must be a number from 0 or a percentage such as 25%",
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// Time that draining one node may take, such as `15m`; absent means 15 minutes.
    #[schemars(length(max = 64))]
    #[x_kube(validation = (
        "self == '' || (self.matches('^([0-9]+[smhdw])+$') && self.matches('[1-9]'))",
        "rollingUpdate.drainTimeout must be a duration above zero such as 90s, 15m or 1h30m",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub drain_timeout: Option<String>,
    /// Time in which a replacement must be Ready, such as `15m`; absent means 15 minutes.
    #[schemars(length(max = 64))]
    #[x_kube(validation = (
        "self == '' || (self.matches('^([0-9]+[smhdw])+$') && self.matches('[1-9]'))",
        "rollingUpdate.readyTimeout must be a duration above zero such as 90s, 15m or 1h30m",
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub ready_timeout: Option<String>,
    /// Whether pods that no controller would make anew may be evicted; absent means no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_bare_pods: Option<bool>,
    /// Whether nodes are drained when the group is deleted; absent means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_on_delete: Option<bool>,
}

/// Replacement of nodes by an object of another controller.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CrdStrategy {
    /// Template of the object to create.
    #[schemars(length(max = 262_144))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub spec: Option<String>,
    /// Plural name of the object's resource, with or without its group.
    #[schemars(length(max = 317))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub crd_name: Option<String>,
    /// `forbid`, `allow` or `replace`, in any case; any other word means `forbid`.
    #[schemars(length(max = 255))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub concurrency_policy: Option<String>,
    /// Attempts after a failure; absent means 3.
    #[schemars(range(min = -1, max = 2_147_483_647_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i64>,
    /// Dotted path of the status field that tells how it went.
    #[schemars(length(max = 1024))]
    #[serde(
        default,
        rename = "statusJSONPath",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "filled"
    )]
    pub status_json_path: Option<String>,
    /// Value of that field that means success, in any case.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub status_success_string: Option<String>,
    /// Value of that field that means failure, in any case.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "filled")]
    pub status_failure_string: Option<String>,
}
