//! Owns kube-apiserver: its flags, its start, now and again, and when it counts as serving.
//!
//! It must not end it; the order of ending is the control plane's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::http::Request;
use kube::{Client, Config};

use super::audit::AuditLog;
use super::credentials::{self, Credentials};
use super::options::TestbedOptions;
use super::ports;
use super::process::Process;
use super::tools::Tools;
use super::watchdog::Watchdog;

const START: Duration = Duration::from_mins(2);

/// All that it takes to start it.
pub struct ApiServer {
    program: PathBuf,
    arguments: Vec<String>,
    pub port: u16,
    /// Its address.
    pub server: String,
    /// The certificates that clients have to trust.
    pub authority: PathBuf,
    log: PathBuf,
}

impl ApiServer {
    pub fn new(
        folder: &Path,
        tools: &Tools,
        credentials: &Credentials,
        options: &TestbedOptions,
        audit_log: &AuditLog,
        etcd_port: u16,
    ) -> Result<Self> {
        let port = ports::free_port()?;
        let certificates = folder.join("apiserver");
        let key = certificates.join("apiserver.key");
        let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            // The server makes a certificate of its own there; its key also signs service account tokens.
            file("cert-dir", &certificates),
            file("service-account-key-file", &key),
            file("service-account-signing-key-file", &key),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            file("token-auth-file", &credentials.token_file()),
            "--authorization-mode=RBAC".into(),
            file("audit-policy-file", &audit_log.policy),
            file("audit-log-path", &audit_log.path),
            // Never rotate: readers hold positions in the file.
            "--audit-log-maxsize=100000".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            // A loopback address cannot be an endpoint, and nothing in here is a pod that needs one.
            "--endpoint-reconciler-type=none".into(),
            "--profiling=false".into(),
        ];
        arguments.extend(options.api_server_flags.iter().cloned());
        Ok(Self {
            program: tools.kube_apiserver.clone(),
            arguments,
            port,
            server: format!("https://127.0.0.1:{port}"),
            authority: certificates.join("apiserver.crt"),
            log: folder.join("kube-apiserver.log"),
        })
    }

    pub fn spawn(&self, watchdog: &Arc<Watchdog>) -> Result<Arc<Process>> {
        Process::spawn(
            "kube-apiserver",
            Command::new(&self.program).args(&self.arguments),
            &self.log,
            watchdog,
        )
    }

    /// Wait until it serves, and answer how the administrator reaches it.
    pub async fn serving(&self, kubeconfig: &Path, process: &Process) -> Result<Config> {
        let config = process
            .until(START, "the API server's certificate", async || {
                let written = std::fs::read_to_string(&self.authority).unwrap_or_default();
                // The last of two: the one that clients trust.
                if written.matches("END CERTIFICATE").count() < 2 {
                    bail!("no certificate yet");
                }
                Ok(Some(credentials::config_from(kubeconfig).await?))
            })
            .await?;
        let mut impatient = config.clone();
        impatient.default_retry = false;
        let client = Client::try_from(impatient).context("making the first client")?;
        process
            .until(START, "the API server to be ready", async || {
                let asked = client.request_text(Request::get("/readyz").body(Vec::new())?);
                match tokio::time::timeout(Duration::from_secs(5), asked).await {
                    Ok(Ok(_)) => Ok(Some(())),
                    Ok(Err(problem)) => Err(problem.into()),
                    Err(_) => bail!("no answer within 5 s"),
                }
            })
            .await?;
        Ok(config)
    }
}
