//! Writes on an instance group: status, finalizer, one annotation.
//!
//! Owns the patches. Each is narrow and conditional on the resourceVersion that was read, so a write of somebody else in
//! between makes it fail instead of being lost. Must not decide what to write.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Map, Value, json};

use super::call::write;
use crate::api::instance_group::{InstanceGroup, InstanceGroupStatus};
use crate::api::{INSTANCE_GROUP_FINALIZER, field_manager};
use crate::fence::Fence;
use crate::plan::facts::{Failure, FailureClass};

/// Writes instance groups.
#[derive(Clone)]
pub struct GroupWriter {
    client: Client,
    fence: Fence,
}

impl GroupWriter {
    /// A writer over this client and behind this fence.
    #[must_use]
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    fn api(&self, group: &InstanceGroup) -> Api<InstanceGroup> {
        Api::namespaced(self.client.clone(), group.namespace().as_deref().unwrap_or_default())
    }

    /// Writes the status if it differs; returns the object as written, or `None` if there was nothing to write.
    ///
    /// # Errors
    /// The failure of the call; class Busy when somebody wrote in between.
    pub async fn status(
        &self,
        group: &InstanceGroup,
        status: &InstanceGroupStatus,
    ) -> Result<Option<InstanceGroup>, Failure> {
        let before = serde_json::to_value(&group.status).map_err(|error| unserializable(&error))?;
        let after = serde_json::to_value(status).map_err(|error| unserializable(&error))?;
        let Some(change) = merge_patch(&before, &after) else {
            return Ok(None);
        };
        let patch = json!({ "metadata": { "resourceVersion": group.resource_version() }, "status": change });
        let parameters = PatchParams {
            field_manager: Some(field_manager::INSTANCE_GROUP.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(group);
        let name = group.name_any();
        let written = write(
            &self.fence,
            "kubernetes:patch instancegroups/status",
            api.patch_status(&name, &parameters, &Patch::Merge(&patch)),
        )
        .await?;
        Ok(Some(written))
    }

    /// Adds or removes our finalizer; the others stay as they are.
    ///
    /// # Errors
    /// The failure of the call; class Busy when somebody wrote in between.
    pub async fn finalizer(&self, group: &InstanceGroup, present: bool) -> Result<InstanceGroup, Failure> {
        let mut finalizers = group.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != INSTANCE_GROUP_FINALIZER);
        if present {
            finalizers.push(INSTANCE_GROUP_FINALIZER.to_owned());
        }
        let patch = json!({ "metadata": { "resourceVersion": group.resource_version(), "finalizers": finalizers } });
        self.patch(group, "kubernetes:patch instancegroups (finalizer)", &patch)
            .await
    }

    /// Removes an annotation that still has this value.
    ///
    /// # Errors
    /// The failure of the call; class Busy when somebody wrote in between.
    pub async fn remove_annotation(
        &self,
        group: &InstanceGroup,
        key: &str,
        value: &str,
    ) -> Result<InstanceGroup, Failure> {
        if group.annotation(key) != Some(value) {
            return Ok(group.clone());
        }
        let patch =
            json!({ "metadata": { "resourceVersion": group.resource_version(), "annotations": { key: null } } });
        self.patch(group, "kubernetes:patch instancegroups (annotation)", &patch)
            .await
    }

    async fn patch(&self, group: &InstanceGroup, action: &str, patch: &Value) -> Result<InstanceGroup, Failure> {
        let parameters = PatchParams {
            field_manager: Some(field_manager::INSTANCE_GROUP.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(group);
        let name = group.name_any();
        let patch = Patch::Merge(patch);
        write(&self.fence, action, api.patch(&name, &parameters, &patch)).await
    }
}

fn unserializable(error: &serde_json::Error) -> Failure {
    Failure {
        class: FailureClass::Invalid,
        action: "write status".to_owned(),
        code: None,
        message: error.to_string(),
    }
}

/// The JSON merge patch (RFC 7386) that turns one value into another; `None` if they are equal. Fields that we do not know
/// are in neither, so they stay.
#[must_use]
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        if let Some(change) = merge_patch(old.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_holds_only_what_differs() {
        let before = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1], "f": 4 });
        let after = json!({ "a": 1, "b": { "c": 2, "d": 9 }, "e": [1, 2], "g": { "h": 1 } });
        assert_eq!(
            merge_patch(&before, &after),
            Some(json!({ "b": { "d": 9 }, "e": [1, 2], "f": null, "g": { "h": 1 } }))
        );
        assert_eq!(merge_patch(&before, &before), None);
        assert_eq!(merge_patch(&Value::Null, &json!({ "a": 1 })), Some(json!({ "a": 1 })));
    }
}
