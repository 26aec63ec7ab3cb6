//! The definitions of both kinds, as objects and as YAML.
//!
//! Owns their order and their text. It must not install them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::{InstanceGroup, InstanceGroupUpgradeRequest};

/// Every definition, in the order of installation.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![InstanceGroup::crd(), InstanceGroupUpgradeRequest::crd()]
}

/// A definition as YAML; the same definition always gives the same text.
///
/// # Errors
///
/// Fails when the definition cannot be serialised, which no definition of [`all`] does.
pub fn to_yaml(crd: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(crd)
}

#[cfg(test)]
mod tests;
