//! Writes on upgrade requests.
//!
//! Owns create, status, release and removal. Requests are made by POST, never server-side-applied, and the decision block
//! is never written here. Must not decide what to write.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::DeserializeGuard;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::call::{read, write};
use crate::api::upgrade_request::{InstanceGroupUpgradeRequest, InstanceGroupUpgradeRequestStatus};
use crate::api::{UPGRADE_REQUEST_FINALIZER, field_manager};
use crate::fence::Fence;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::step::RequestRef;

/// Fields of the decision block, as the record of writers calls them.
const DECISIONS: [&str; 4] = ["f:approved", "f:denied", "f:cancelled", "f:urgent"];

/// Drops what no decision reads. Of the record of who wrote which field only the decisions are kept.
pub fn trim(request: &mut DeserializeGuard<InstanceGroupUpgradeRequest>) {
    let entries = request.meta_mut().managed_fields.take().unwrap_or_default();
    let decisions = entries.into_iter().filter_map(|entry| {
        let fields = entry.fields_v1.as_ref()?.0["f:spec"].as_object()?;
        let taken: Map<String, Value> = fields
            .iter()
            .filter(|(field, _)| DECISIONS.contains(&field.as_str()))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect();
        (!taken.is_empty()).then(|| ManagedFieldsEntry {
            manager: entry.manager,
            fields_v1: Some(FieldsV1(json!({ "f:spec": taken }))),
            ..ManagedFieldsEntry::default()
        })
    });
    request.meta_mut().managed_fields = Some(decisions.collect()).filter(|kept: &Vec<_>| !kept.is_empty());
}

/// Writes upgrade requests.
#[derive(Clone)]
pub struct RequestWriter {
    client: Client,
    fence: Fence,
}

impl RequestWriter {
    /// A writer over this client and behind this fence.
    #[must_use]
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    fn api(&self, namespace: &str) -> Api<InstanceGroupUpgradeRequest> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates a request.
    ///
    /// # Errors
    /// The failure of the call; class `AlreadyExists` when the name is taken.
    pub async fn create(&self, request: &InstanceGroupUpgradeRequest) -> Result<InstanceGroupUpgradeRequest, Failure> {
        let parameters = PostParams {
            field_manager: Some(field_manager::INSTANCE_GROUP.to_owned()),
            ..PostParams::default()
        };
        let api = self.api(request.namespace().as_deref().unwrap_or_default());
        write(
            &self.fence,
            "kubernetes:create instancegroupupgraderequests",
            api.create(&parameters, request),
        )
        .await
    }

    /// Puts a status on the resourceVersion that was read: a claim that somebody overtook fails.
    ///
    /// # Errors
    /// The failure of the call; class Busy when somebody wrote in between.
    pub async fn status(
        &self,
        request: &InstanceGroupUpgradeRequest,
        status: &InstanceGroupUpgradeRequestStatus,
    ) -> Result<InstanceGroupUpgradeRequest, Failure> {
        let parameters = PostParams {
            field_manager: Some(field_manager::INSTANCE_GROUP.to_owned()),
            ..PostParams::default()
        };
        let mut next = request.clone();
        next.status = Some(status.clone());
        next.metadata.managed_fields = None;
        let api = self.api(request.namespace().as_deref().unwrap_or_default());
        let name = request.name_any();
        write(
            &self.fence,
            "kubernetes:update instancegroupupgraderequests/status",
            api.replace_status(&name, &parameters, &next),
        )
        .await
    }

    /// Takes our finalizer off, on what was read. Returns the resourceVersion it has then; `None` if it is gone.
    ///
    /// # Errors
    /// The failure of the call; class Busy when somebody wrote in between.
    pub async fn release(&self, namespace: &str, request: &RequestRef) -> Result<Option<String>, Failure> {
        let api = self.api(namespace);
        let current = match read("kubernetes:get instancegroupupgraderequests", api.get(&request.name)).await {
            Ok(current) => current,
            Err(failure) if failure.class == FailureClass::NotFound => return Ok(None),
            Err(failure) => return Err(failure),
        };
        if current.uid().as_deref() != Some(request.uid.as_str()) {
            return Ok(None);
        }
        let mut finalizers = current.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != UPGRADE_REQUEST_FINALIZER);
        let patch = json!({ "metadata": { "resourceVersion": request.resource_version, "finalizers": finalizers } });
        let parameters = PatchParams {
            field_manager: Some(field_manager::INSTANCE_GROUP.to_owned()),
            ..PatchParams::default()
        };
        let action = "kubernetes:patch instancegroupupgraderequests (finalizer)";
        let patch = Patch::Merge(&patch);
        match write(&self.fence, action, api.patch(&request.name, &parameters, &patch)).await {
            Ok(released) => Ok(released.resource_version()),
            Err(failure) if failure.class == FailureClass::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Deletes a request: the finalizer first, then the object with uid and resourceVersion as preconditions, so that a
    /// deletion seen with the finalizer on is always a person's.
    ///
    /// # Errors
    /// The failure of either call; class Busy when somebody wrote in between.
    pub async fn remove(&self, namespace: &str, request: &RequestRef) -> Result<(), Failure> {
        let Some(resource_version) = self.release(namespace, request).await? else {
            return Ok(());
        };
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(request.uid.clone()),
                resource_version: Some(resource_version),
            }),
            ..DeleteParams::default()
        };
        let api = self.api(namespace);
        match write(
            &self.fence,
            "kubernetes:delete instancegroupupgraderequests",
            api.delete(&request.name, &parameters),
        )
        .await
        {
            Ok(_) => Ok(()),
            Err(failure) if failure.class == FailureClass::NotFound => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_writers_only_those_of_decisions_are_kept() {
        let text = r#"{
            "apiVersion": "instancemgr.keikoproj.io/v1alpha1", "kind": "InstanceGroupUpgradeRequest",
            "metadata": { "name": "a", "managedFields": [
                { "manager": "sluice/instance-group", "operation": "Update",
                  "fieldsV1": { "f:metadata": {}, "f:spec": { "f:reason": {}, "f:denied": {} } } },
                { "manager": "kubectl-patch", "operation": "Update", "fieldsV1": { "f:spec": { "f:approved": {} } } },
                { "manager": "sluice/instance-group", "subresource": "status", "fieldsV1": { "f:status": {} } }
            ] },
            "spec": { "instanceGroupRef": { "name": "a", "uid": "u" }, "reason": "ImageDrift", "target": { "fingerprint": "f" } }
        }"#;
        let mut request: DeserializeGuard<InstanceGroupUpgradeRequest> = serde_json::from_str(text).unwrap();
        trim(&mut request);
        let kept = request.meta().managed_fields.clone().unwrap();
        let seen: Vec<_> = kept
            .iter()
            .map(|entry| (entry.manager.as_deref(), &entry.fields_v1.as_ref().unwrap().0))
            .collect();
        assert_eq!(
            seen,
            [
                (Some("sluice/instance-group"), &json!({ "f:spec": { "f:denied": {} } })),
                (Some("kubectl-patch"), &json!({ "f:spec": { "f:approved": {} } })),
            ]
        );
    }
}
