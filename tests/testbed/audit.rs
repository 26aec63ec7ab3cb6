//! Owns the API server's audit log: what is noted, and reading it back.
//!
//! It is a record of what clients did, whatever they say; it must not filter by who they are.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Testbed;

/// A place in the audit log, to read on from.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditPosition(u64);

/// One answered request to evict a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Eviction {
    /// RFC 3339, when the request came.
    pub at: String,
    pub user: String,
    pub namespace: String,
    pub pod: String,
    /// 201 evicted, 429 refused by a budget or throttled, 404 gone.
    pub code: u64,
    /// The reasons of the causes, `DisruptionBudget` for a budget's refusal.
    pub causes: Vec<String>,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct AuditLog {
    pub policy: PathBuf,
    pub path: PathBuf,
}

impl AuditLog {
    pub fn prepare(folder: &Path, reads: bool) -> Result<Self> {
        let log = Self {
            policy: folder.join("audit-policy.json"),
            path: folder.join("audit.log"),
        };
        let policy = serde_json::to_vec_pretty(&policy(reads))?;
        std::fs::write(&log.policy, policy).with_context(|| format!("writing {}", log.policy.display()))?;
        Ok(log)
    }

    fn read_after(&self, position: AuditPosition) -> Result<(Vec<Value>, AuditPosition)> {
        let mut text = String::new();
        match std::fs::File::open(&self.path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(position.0))
                    .context("seeking in the audit log")?;
                file.read_to_string(&mut text).context("reading the audit log")?;
            }
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {}
            Err(problem) => return Err(problem).context("opening the audit log"),
        }
        // The last line may still be in the making.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let events = text[..whole]
            .lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("no audit event: {line}")))
            .collect::<Result<_>>()?;
        Ok((events, AuditPosition(position.0 + whole as u64)))
    }
}

impl Testbed {
    /// All audit events so far. The event of a request can be a moment later than its answer.
    pub fn audit(&self) -> Result<Vec<Value>> {
        self.audit_after(AuditPosition::default())
    }

    pub fn audit_after(&self, position: AuditPosition) -> Result<Vec<Value>> {
        Ok(self.control_plane().audit_log().read_after(position)?.0)
    }

    /// All answers to evictions after a place in the log, in the order of the answers.
    pub fn evictions(&self, position: AuditPosition) -> Result<Vec<Eviction>> {
        let events = self.audit_after(position)?;
        Ok(events.iter().filter_map(Eviction::from_event).collect())
    }

    /// Where the log ends now, for [`Self::audit_after`].
    pub fn audit_position(&self) -> Result<AuditPosition> {
        Ok(self.control_plane().audit_log().read_after(AuditPosition::default())?.1)
    }
}

impl Eviction {
    fn from_event(event: &Value) -> Option<Self> {
        let (object, status) = (&event["objectRef"], &event["responseStatus"]);
        let is_eviction =
            event["verb"] == "create" && object["resource"] == "pods" && object["subresource"] == "eviction";
        let code = status["code"]
            .as_u64()
            .filter(|_| is_eviction && event["stage"] == "ResponseComplete")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = event["responseObject"]["details"]["causes"].as_array();
        Some(Self {
            at: text(&event["requestReceivedTimestamp"]),
            user: text(&event["user"]["username"]),
            namespace: text(&object["namespace"]),
            pod: text(&object["name"]),
            code,
            causes: causes
                .into_iter()
                .flatten()
                .map(|cause| text(&cause["reason"]))
                .collect(),
            message: text(&status["message"]),
        })
    }
}

/// Writes to what the operator touches with the object they left, other writes without it.
fn policy(reads: bool) -> Value {
    let everything = |group: &str| json!({"group": group});
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": true,
        "rules": [
            // The API server's own housekeeping.
            {"level": "None", "users": ["system:apiserver"]},
            {"level": if reads { "Metadata" } else { "None" }, "verbs": ["get", "list", "watch"]},
            // What answers may hold is nobody's business here either.
            {"level": "Metadata", "resources": [
                {"group": "", "resources": ["secrets", "serviceaccounts/token"]},
                everything("authentication.k8s.io"),
                everything("authorization.k8s.io"),
            ]},
            {"level": "RequestResponse", "resources": [
                everything("instancemgr.keikoproj.io"),
                {"group": "", "resources": ["nodes", "nodes/status", "configmaps", "pods/eviction"]},
            ]},
            {"level": "Request", "resources": [
                {"group": "", "resources": ["events", "pods", "pods/status"]},
                everything("events.k8s.io"),
                everything("coordination.k8s.io"),
            ]},
            {"level": "Metadata"},
        ],
    })
}
