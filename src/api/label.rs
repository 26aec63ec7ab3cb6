//! Keys of the labels that the operator puts on requests and nodes.
//!
//! Owns the names and nothing of their meaning beyond one sentence each.

/// On a request: name of its group.
pub const INSTANCE_GROUP: &str = "instancemgr.keikoproj.io/instance-group";

/// On a request: its reason.
pub const REASON: &str = "instancemgr.keikoproj.io/reason";

/// On a request: its target was denied, cancelled or failed before; only a person approves it.
pub const ASKED_AGAIN: &str = "instancemgr.keikoproj.io/asked-again";

/// On a request: image id of its target. On a node: the image it was made from.
pub const IMAGE: &str = "instancemgr.keikoproj.io/image";

/// On a node: `normal`, `spot` or `mixed`.
pub const LIFECYCLE: &str = "instancemgr.keikoproj.io/lifecycle";

/// On a node: its role, the name of the group unless the group says otherwise.
pub const NODE_ROLE: &str = "node.kubernetes.io/role";

/// On a node: the older form of the same, put on after it joined.
pub const KUBERNETES_ROLE: &str = "kubernetes.io/role";

/// On a node: load balancers leave it out (a well-known label of Kubernetes).
pub const EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Key of the taint on nodes that a rollout will take later: new pods had better start elsewhere.
pub const TAINT_UPGRADING: &str = "instancemgr.keikoproj.io/upgrading";
