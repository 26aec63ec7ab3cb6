//! The auto-approver's two writes on a request: what it announces, and the approval.
//!
//! Owns their form, so narrow that nothing else of the object can change: a decision that a person took meanwhile makes the
//! approval fail. Must not decide what to write.

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::call::write;
use crate::api::field_manager;
use crate::api::upgrade_request::InstanceGroupUpgradeRequest;
use crate::fence::Fence;
use crate::plan::facts::{Failure, FailureClass};

/// Approves requests.
#[derive(Clone)]
pub struct ApprovalWriter {
    client: Client,
    fence: Fence,
    named: Option<String>,
}

impl ApprovalWriter {
    /// A writer over this client and behind this fence. `named` is the own user name, where the cluster's rules want each
    /// approver to write it; elsewhere the API server does.
    #[must_use]
    pub fn new(client: Client, fence: Fence, named: Option<String>) -> Self {
        Self { client, fence, named }
    }

    fn api(&self, request: &InstanceGroupUpgradeRequest) -> Api<InstanceGroupUpgradeRequest> {
        Api::namespaced(self.client.clone(), request.namespace().as_deref().unwrap_or_default())
    }

    fn parameters() -> PatchParams {
        PatchParams {
            field_manager: Some(field_manager::AUTO_APPROVER.to_owned()),
            ..PatchParams::default()
        }
    }

    /// Says which schedule applies and when it approves. Not on a resourceVersion: the two fields are nobody else's.
    ///
    /// # Errors
    /// The failure of the call; class Busy when it is another object by now.
    pub async fn announce(
        &self,
        request: &InstanceGroupUpgradeRequest,
        policy: &str,
        at: Option<Timestamp>,
    ) -> Result<(), Failure> {
        let patch = json!({
            "metadata": { "uid": request.uid() },
            "status": { "policy": policy, "autoApproveAt": at.map(|at| at.to_string()) },
        });
        let (api, name, parameters) = (self.api(request), request.name_any(), Self::parameters());
        let patch = Patch::Merge(&patch);
        let call = api.patch_status(&name, &parameters, &patch);
        let action = "kubernetes:patch instancegroupupgraderequests/status";
        write(&self.fence, action, call).await.map(drop)
    }

    /// Approves, if it is still the request that was read and nobody has decided (gate rule L14).
    ///
    /// # Errors
    /// The failure of the call; class Busy when somebody decided in between.
    pub async fn approve(&self, request: &InstanceGroupUpgradeRequest) -> Result<(), Failure> {
        let mut steps = vec![
            json!({ "op": "test", "path": "/metadata/uid", "value": request.uid() }),
            json!({ "op": "test", "path": "/spec/approved", "value": false }),
            json!({ "op": "test", "path": "/spec/denied", "value": false }),
            json!({ "op": "test", "path": "/spec/cancelled", "value": false }),
            json!({ "op": "replace", "path": "/spec/approved", "value": true }),
        ];
        if let Some(name) = &self.named {
            steps.push(json!({ "op": "add", "path": "/spec/approvedBy", "value": name }));
        }
        let patch = serde_json::from_value(Value::Array(steps)).map_err(|error| Failure {
            class: FailureClass::Unclassified,
            action: "kubernetes:patch instancegroupupgraderequests".to_owned(),
            code: None,
            message: error.to_string(),
        })?;
        let (api, name, parameters) = (self.api(request), request.name_any(), Self::parameters());
        let patch = Patch::<InstanceGroupUpgradeRequest>::Json(patch);
        let call = api.patch(&name, &parameters, &patch);
        let action = "kubernetes:patch instancegroupupgraderequests (approve)";
        match write(&self.fence, action, call).await {
            Ok(_) => Ok(()),
            // A test that does not hold is answered as an invalid patch.
            Err(failure) if failure.class == FailureClass::Invalid => Err(Failure {
                class: FailureClass::Busy,
                ..failure
            }),
            Err(failure) => Err(failure),
        }
    }
}
