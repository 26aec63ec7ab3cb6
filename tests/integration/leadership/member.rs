//! One of several operators: under an access key, a token and a way to the API server of its own.
//!
//! Owns what tells its doings from those of the others. Must not judge them.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::operator::relay::Relay;
use crate::testbed::{AuditPosition, Call, Operator, Testbed};

/// Namespace that the chart is installed into; the Lease lives there.
const HOME: &str = "sluice-system";
/// How long the Lease holds, a leader goes on, and a try waits: short, but longer than a busy machine's hiccups.
pub const LEASE: Duration = Duration::from_secs(6);
pub const DEADLINE: Duration = Duration::from_secs(4);
pub const RETRY: Duration = Duration::from_secs(1);

/// An operator.
pub struct Member {
    pub operator: Operator,
    pub relay: Relay,
    /// Its access key at AWS.
    name: String,
    /// The id of its token, as the audit log tells it.
    credential: String,
}

/// The chart's definitions and rights.
pub async fn install(testbed: &Testbed) -> Result<()> {
    testbed.aws().seed("demo", "1.33").await?;
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/sluice");
    let chart = chart.to_str().context("the path of the chart")?;
    let install = ["install", "sluice", chart, "--namespace", HOME, "--create-namespace"];
    testbed.helm(&install).await?.success().map(drop)
}

impl Member {
    /// Starts it; it answers, but need not lead nor be ready.
    pub async fn start(testbed: &Testbed, name: &str) -> Result<Self> {
        let kubeconfig = testbed.kubeconfig_for_service_account(HOME, "sluice").await?;
        let credential = token_id(&kubeconfig)?;
        let (relay, kubeconfig) = Relay::start(&kubeconfig).await?;
        let port = Testbed::free_port()?;
        let address = format!("127.0.0.1:{port}");
        let seconds = |time: Duration| format!("{}s", time.as_secs());
        let (lease, deadline, retry) = (seconds(LEASE), seconds(DEADLINE), seconds(RETRY));
        let arguments = [
            "run",
            "--config-namespace",
            HOME,
            "--metrics-addr",
            &address,
            "--aws-poll-interval",
            "2s",
            "--leader-elect-lease-duration",
            &lease,
            "--leader-elect-renew-deadline",
            &deadline,
            "--leader-elect-retry-period",
            &retry,
        ];
        let environment = [("HOSTNAME", name), ("AWS_ACCESS_KEY_ID", name), ("POD_NAMESPACE", HOME)];
        let binary = Path::new(env!("CARGO_BIN_EXE_sluice"));
        let mut operator = Operator::start(testbed, binary, &arguments, &environment, &kubeconfig)?;
        operator.up(port).await?;
        Ok(Self {
            operator,
            relay,
            name: name.to_owned(),
            credential,
        })
    }

    /// Waits until it reports ready.
    pub async fn ready(&self) -> Result<()> {
        self.operator.answers("/readyz", Duration::from_secs(30)).await
    }

    /// Whether it says that it leads.
    pub async fn leads(&self) -> Result<bool> {
        let (_, metrics) = self.operator.get("/metrics").await?;
        let gauge = metrics.lines().find_map(|line| line.strip_prefix("sluice_leader "));
        Ok(gauge.context("a gauge of leadership")? == "1")
    }

    pub async fn until_leading(&self, testbed: &Testbed, deadline: Duration) -> Result<()> {
        let what = format!("{} to lead", self.name);
        let leads = testbed.until(deadline, &what, async || Ok(self.leads().await?.then_some(())));
        leads.await
    }

    /// The calls of its that change something at AWS, after one in the record.
    pub async fn writes(&self, testbed: &Testbed, after: u64) -> Result<Vec<Call>> {
        let calls = testbed.aws().calls(after).await?;
        let ours = |call: &Call| call.mutating && call.caller.as_deref() == Some(self.name.as_str());
        Ok(calls.into_iter().filter(ours).collect())
    }

    /// Waits for a write of its at AWS.
    pub async fn until_writing(&self, testbed: &Testbed, after: u64, deadline: Duration) -> Result<()> {
        let what = format!("{} to write at AWS", self.name);
        let writing = testbed.until(deadline, &what, async || {
            Ok((!self.writes(testbed, after).await?.is_empty()).then_some(()))
        });
        writing.await
    }

    /// Waits for a write of its that AWS has not answered yet.
    pub async fn until_in_a_pass(&self, testbed: &Testbed, after: u64) -> Result<()> {
        let deadline = Duration::from_secs(30);
        let waiting = testbed.until(deadline, "a write under way", async || {
            let writes = self.writes(testbed, after).await?;
            Ok(writes.iter().any(|call| call.status.is_none()).then_some(()))
        });
        waiting.await
    }

    /// What it wrote, or tried to write, to the API server: when, and what. Of the Lease only what was taken.
    pub fn written(&self, testbed: &Testbed, after: AuditPosition) -> Result<Vec<String>> {
        let reads = ["get", "list", "watch"];
        let events = testbed.audit_after(after)?;
        let written = events.iter().filter(|event| {
            let lease = event["objectRef"]["resource"] == "leases";
            event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0] == self.credential.as_str()
                && !reads.contains(&event["verb"].as_str().unwrap_or_default())
                && !lease
        });
        let told = |event: &Value| {
            let received = event["requestReceivedTimestamp"].as_str().unwrap_or_default();
            format!("{received} {} {}", event["verb"], event["objectRef"])
        };
        Ok(written.map(told).collect())
    }

    /// Asks it to end, as a kubelet does.
    pub async fn end(&self, deadline: Duration) -> Result<ExitStatus> {
        self.operator.terminate(deadline).await
    }
}

/// The id of the token in a kubeconfig, as the API server notes it.
fn token_id(kubeconfig: &Path) -> Result<String> {
    let config: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
    let token = config["users"][0]["user"]["token"].as_str().context("a token")?;
    let claims = token.split('.').nth(1).context("claims")?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    let id = claims["jti"].as_str().context("an id of the token")?;
    ensure!(!id.is_empty());
    Ok(format!("JTI={id}"))
}
