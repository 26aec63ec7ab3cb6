//! The groups of a cluster and their labels, for `sluice settings check --live`.
//!
//! Owns one look at the cluster, with the rights of whoever asks. Must not write.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};

use crate::api::instance_group::InstanceGroup;
use crate::cluster::call;
use crate::manager;
use crate::plan::settings::GroupLabels;

type Labels = BTreeMap<String, String>;

/// Groups with the labels that selectors look at.
#[derive(Debug, Default)]
pub struct Groups {
    namespaces: BTreeMap<String, Labels>,
    /// The namespace and the labels of each.
    all: Vec<(String, Labels)>,
    none: Labels,
}

impl Groups {
    /// What selectors look at. A group whose namespace went away meanwhile has no labels of one.
    pub fn labels(&self) -> Vec<GroupLabels<'_>> {
        let of = |(namespace, group)| GroupLabels {
            namespace: self.namespaces.get::<String>(namespace).unwrap_or(&self.none),
            group,
        };
        self.all
            .iter()
            .map(|(namespace, group)| of((namespace, group)))
            .collect()
    }

    /// Groups of these namespaces and names, without labels but the names of namespaces.
    #[cfg(test)]
    pub fn of(groups: &[(&str, &str)]) -> Self {
        let namespaces = groups.iter().map(|(namespace, _)| {
            let label = ("kubernetes.io/metadata.name".to_owned(), (*namespace).to_owned());
            ((*namespace).to_owned(), Labels::from([label]))
        });
        Self {
            namespaces: namespaces.collect(),
            all: groups
                .iter()
                .map(|(namespace, _)| ((*namespace).to_owned(), Labels::new()))
                .collect(),
            none: Labels::new(),
        }
    }
}

/// Reads them all. Only metadata is asked for: a group that cannot be understood counts, too.
pub async fn groups(kubeconfig: Option<&Path>) -> anyhow::Result<Groups> {
    let client = call::client(manager::config(kubeconfig).await?)?;
    let all = ListParams::default();
    let groups = Api::<InstanceGroup>::all(client.clone());
    let groups = groups
        .list_metadata(&all)
        .await
        .context("cannot list instance groups")?;
    let namespaces = Api::<Namespace>::all(client);
    let namespaces = namespaces.list_metadata(&all).await.context("cannot list namespaces")?;
    Ok(Groups {
        namespaces: namespaces
            .items
            .into_iter()
            .filter_map(|namespace| Some((namespace.metadata.name?, namespace.metadata.labels.unwrap_or_default())))
            .collect(),
        all: groups
            .items
            .into_iter()
            .filter_map(|group| Some((group.metadata.namespace?, group.metadata.labels.unwrap_or_default())))
            .collect(),
        none: Labels::new(),
    })
}
