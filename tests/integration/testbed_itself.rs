//! Proves the testbed before anything is judged on it. It must not need the operator.

mod cluster;
mod conduct;
mod groups;
mod lifecycle;
mod simulation;
mod workloads;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use crate::testbed::Testbed;

const SOON: Duration = Duration::from_secs(30);

async fn gone<K>(testbed: &Testbed, api: &Api<K>, name: &str) -> Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let what = format!("{name} to be gone");
    testbed
        .until(SOON, &what, async || {
            Ok(api.get_opt(name).await?.is_none().then_some(()))
        })
        .await
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}
