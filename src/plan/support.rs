//! What is not built yet, named by path.
//!
//! Owns the list of fields that this version does not act on. While a group has one of them, nothing
//! but a requested deletion touches AWS: half-understood input must not move machines. Must not judge
//! whether supported fields are valid.

use crate::api::annotation;
use crate::api::instance_group::{EksConfiguration, InstanceGroup, Provisioner, StrategyKind};

/// Paths of everything in the group that this version does not support, in the order of the manifest.
#[must_use]
pub fn unsupported_fields(group: &InstanceGroup) -> Vec<String> {
    let mut paths = unsupported_annotations(group);
    let spec = &group.spec;
    let mut note = |present: bool, path: &str| {
        if present {
            paths.push(path.to_owned());
        }
    };
    note(spec.provisioner_kind() != Some(Provisioner::Eks), "spec.provisioner");
    note(spec.eks_managed.is_some(), "spec.eks-managed");
    note(spec.eks_fargate.is_some(), "spec.eks-fargate");
    note(
        spec.strategy_kind() != Some(StrategyKind::RollingUpdate),
        "spec.strategy.type",
    );
    if let Some(strategy) = &spec.strategy {
        note(strategy.crd.is_some(), "spec.strategy.crd");
    }
    if let Some(eks) = &spec.eks {
        note(eks.warm_pool.is_some(), "spec.eks.warmPool");
        note(eks.type_.as_deref() == Some("LaunchConfiguration"), "spec.eks.type");
        paths.extend(unsupported_configuration(&eks.configuration));
    }
    paths
}

/// The same for `spec.eks.configuration`.
fn unsupported_configuration(configuration: &EksConfiguration) -> Vec<String> {
    let mut paths = Vec::new();
    let mut note = |present: bool, name: &str| {
        if present {
            paths.push(format!("spec.eks.configuration.{name}"));
        }
    };
    // An absent role means that we would have to make one.
    note(
        configuration.role_name.is_none(),
        "roleName (absent: a role made by the operator)",
    );
    note(
        configuration.instance_profile_name.is_none(),
        "instanceProfileName (absent: a profile made by the operator)",
    );
    note(!configuration.managed_policies.is_empty(), "managedPolicies");
    note(!configuration.suspend_processes.is_empty(), "suspendProcesses");
    note(configuration.bootstrap_arguments.is_some(), "bootstrapArguments");
    note(
        configuration
            .bootstrap_options
            .as_ref()
            .is_some_and(|options| options.container_runtime.is_some()),
        "bootstrapOptions.containerRuntime",
    );
    note(configuration.spot_price.is_some(), "spotPrice");
    note(!configuration.metrics_collection.is_empty(), "metricsCollection");
    note(!configuration.lifecycle_hooks.is_empty(), "lifecycleHooks");
    note(configuration.mixed_instances_policy.is_some(), "mixedInstancesPolicy");
    note(
        configuration
            .volumes
            .iter()
            .any(|volume| volume.mount_options.is_some()),
        "volumes[].mountOptions",
    );
    paths
}

/// The same for annotations: the ones that would change what a node is.
fn unsupported_annotations(group: &InstanceGroup) -> Vec<String> {
    let mut paths = Vec::new();
    let mut note = |key: &str, because: &str| paths.push(format!("metadata.annotations[{key}]{because}"));
    let has_node_config = group.has_node_config();
    match group.annotation(annotation::OS_FAMILY) {
        Some(family) if family.eq_ignore_ascii_case("amazonlinux2023") => {}
        None if has_node_config => {}
        Some(_) => note(annotation::OS_FAMILY, " (only amazonlinux2023 can be rendered)"),
        None => note(
            annotation::OS_FAMILY,
            " (absent: Amazon Linux 2, which cannot be rendered; set amazonlinux2023)",
        ),
    }
    for key in [
        annotation::CLUSTER_AUTOSCALER_ENABLED,
        annotation::CUSTOM_NETWORKING_ENABLED,
    ] {
        if group.annotation(key) == Some("true") {
            note(key, "");
        }
    }
    if group.annotation(annotation::DEFAULT_LABELS).is_some() {
        note(annotation::DEFAULT_LABELS, "");
    }
    paths
}
