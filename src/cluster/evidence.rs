//! The `ConfigMap` `sluice-images`: what was seen of images, kept where it outlives the process.
//!
//! Owns its form and the two calls. Must not judge what it says. One process writes it, the leader; each key by a patch of its
//! own.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::call::{read, write};
use crate::api::field_manager;
use crate::fence::Fence;
use crate::plan::evidence::{ParameterHistory, SoakRecord};
use crate::plan::facts::{Failure, FailureClass};

/// Name of the `ConfigMap`.
pub const NAME: &str = "sluice-images";
/// Key of the parameters' values over time.
const PARAMETERS: &str = "parameters";
/// Key of the proofs that ended.
const SOAK: &str = "soak";

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Values over time, by parameter.
    pub parameters: BTreeMap<String, ParameterHistory>,
    /// Proofs that ended.
    pub soak: SoakRecord,
}

/// Reads and writes it.
#[derive(Clone)]
pub struct EvidenceKeeper {
    api: Api<ConfigMap>,
    fence: Fence,
}

impl EvidenceKeeper {
    /// Over this client, in the operator's namespace and behind this fence.
    #[must_use]
    pub fn new(client: Client, namespace: &str, fence: Fence) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            fence,
        }
    }

    /// What is kept; nothing at the very first start.
    ///
    /// # Errors
    /// The failure of the call; class Invalid when a part cannot be read: it is left as it is for a person to mend or delete.
    pub async fn load(&self) -> Result<Kept, Failure> {
        let found = match read("kubernetes:get configmaps", self.api.get(NAME)).await {
            Ok(found) => found,
            Err(failure) if failure.class == FailureClass::NotFound => return Ok(Kept::default()),
            Err(failure) => return Err(failure),
        };
        let data = found.data.unwrap_or_default();
        Ok(Kept {
            parameters: part(&data, PARAMETERS)?,
            soak: part(&data, SOAK)?,
        })
    }

    /// Writes what is different from what was kept before.
    ///
    /// # Errors
    /// The failure of a call.
    pub async fn save(&self, before: &Kept, now: &Kept) -> Result<(), Failure> {
        let mut data = BTreeMap::new();
        if before.parameters != now.parameters {
            data.insert(PARAMETERS, text(&now.parameters)?);
        }
        if before.soak != now.soak {
            data.insert(SOAK, text(&now.soak)?);
        }
        if data.is_empty() {
            return Ok(());
        }
        let parameters = PatchParams {
            field_manager: Some(field_manager::OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "data": data }));
        let call = self.api.patch(NAME, &parameters, &patch);
        match write(&self.fence, "kubernetes:patch configmaps", call).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.class == FailureClass::NotFound => self.create(data).await,
            Err(failure) => Err(failure),
        }
    }

    async fn create(&self, data: BTreeMap<&str, String>) -> Result<(), Failure> {
        let parameters = PostParams {
            field_manager: Some(field_manager::OPERATOR.to_owned()),
            ..PostParams::default()
        };
        let data = data.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
        let kept = ConfigMap {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        let call = self.api.create(&parameters, &kept);
        write(&self.fence, "kubernetes:create configmaps", call).await.map(drop)
    }
}

fn part<T: DeserializeOwned + Default>(data: &BTreeMap<String, String>, key: &str) -> Result<T, Failure> {
    let Some(text) = data.get(key) else {
        return Ok(T::default());
    };
    serde_json::from_str(text).map_err(|error| Failure {
        class: FailureClass::Invalid,
        action: "kubernetes:get configmaps".to_owned(),
        code: None,
        message: format!("ConfigMap {NAME}, key {key}, cannot be read: {error}; mend it, or delete it to begin anew"),
    })
}

fn text(part: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(part).map_err(|error| Failure {
        class: FailureClass::Unclassified,
        action: "kubernetes:patch configmaps".to_owned(),
        code: None,
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cannot be read is not overwritten: nothing goes on until a person has looked.
    #[test]
    fn a_part_that_cannot_be_read_is_an_error_and_no_part_is_nothing() {
        let data = BTreeMap::from([
            (PARAMETERS.to_owned(), "{\"/p\": 1}".to_owned()),
            (SOAK.to_owned(), "{}".to_owned()),
        ]);
        let broken = part::<BTreeMap<String, ParameterHistory>>(&data, PARAMETERS).unwrap_err();
        assert!(broken.class == FailureClass::Invalid && broken.message.contains("parameters"));
        assert_eq!(part::<SoakRecord>(&data, SOAK).unwrap(), SoakRecord::default());
        assert_eq!(
            part::<SoakRecord>(&BTreeMap::new(), SOAK).unwrap(),
            SoakRecord::default()
        );
    }
}
