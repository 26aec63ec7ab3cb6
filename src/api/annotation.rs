//! Keys of the annotations that the operator reads or writes.
//!
//! Owns the names and nothing of their meaning beyond one sentence each.

/// Any value but `false` locks upgrades of the group, or of a namespace's groups.
pub const LOCK_UPGRADES: &str = "instancemgr.keikoproj.io/lock-upgrades";

/// On a group: the fingerprint whose block is to be lifted, once.
pub const RETRY_UPGRADE: &str = "instancemgr.keikoproj.io/retry-upgrade";

/// On a group: a duration that the automatic approval waits at least.
pub const UPGRADE_DELAY: &str = "instancemgr.keikoproj.io/upgrade-delay";

/// On a group: `manual` forbids automatic approval.
pub const APPROVAL: &str = "instancemgr.keikoproj.io/approval";

/// On a group: `true` adds the tags that cluster-autoscaler finds groups by.
pub const CLUSTER_AUTOSCALER_ENABLED: &str = "instancemgr.keikoproj.io/cluster-autoscaler-enabled";

/// On a group: `true` leaves the CNI policy out of the nodes' role.
pub const IRSA_ENABLED: &str = "instancemgr.keikoproj.io/irsa-enabled";

/// On a group: operating system family of the image.
pub const OS_FAMILY: &str = "instancemgr.keikoproj.io/os-family";

/// On a group: `k=v,k2=v2`, in place of the role label that every node gets.
pub const DEFAULT_LABELS: &str = "instancemgr.keikoproj.io/default-labels";

/// On a group: `true` computes the most pods a node takes for custom networking.
pub const CUSTOM_NETWORKING_ENABLED: &str = "instancemgr.keikoproj.io/custom-networking-enabled";

/// On a group: number of pods on the host network, added to that computation.
pub const CUSTOM_NETWORKING_HOST_PODS: &str = "instancemgr.keikoproj.io/custom-networking-host-pods";

/// On a group: `true` counts 16 addresses a slot in that computation.
pub const CUSTOM_NETWORKING_PREFIX_ASSIGNMENT_ENABLED: &str =
    "instancemgr.keikoproj.io/custom-networking-prefix-assignment-enabled";

/// On a namespace: `true` keeps the boundaries, defaults and conditionals away from its groups.
pub const CONFIG_EXCLUDED: &str = "instancemgr.keikoproj.io/config-excluded";

/// On an object made by strategy `crd`: the Auto Scaling group it works on.
pub const UPGRADE_SCOPE: &str = "instancemgr.keikoproj.io/upgrade-scope";

/// On an object made by strategy `crd`: who made it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Value of [`MANAGED_BY`]; kept from the operator that this one takes over from.
pub const MANAGED_BY_VALUE: &str = "instance-manager";

/// Written by `kubectl apply`: the manifest as it was applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// On a node: what a rollout noted about it, as JSON.
pub const ROLLOUT: &str = "instancemgr.keikoproj.io/rollout";

/// On a node: `true` forbids cluster-autoscaler to remove it (a well-known annotation of cluster-autoscaler).
pub const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
