//! Owns the control plane as a whole: etcd, the API server and the controllers, in order up and in order down.
//!
//! It must not put anything into the cluster.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::{Api, Client, Config};

use super::api_server::ApiServer;
use super::audit::AuditLog;
use super::credentials::{ADMIN, CONTROLLER_MANAGER, Credentials};
use super::options::TestbedOptions;
use super::process::Process;
use super::tools::Tools;
use super::watchdog::{Watchdog, locked};
use super::{ports, wait};

/// Generous: the machine may be building something at the same time.
const START: Duration = Duration::from_mins(2);
const PATIENCE: Duration = Duration::from_secs(5);
/// It waits a minute for watches that are still open; then their connections break, which clients must bear anyway.
const API_SERVER_PATIENCE: Duration = Duration::from_secs(2);

pub struct ControlPlane {
    etcd: Arc<Process>,
    api_server: Mutex<Arc<Process>>,
    controller_manager: Arc<Process>,
    launch: ApiServer,
    audit_log: AuditLog,
    kubeconfig: PathBuf,
    admin: Config,
}

impl ControlPlane {
    pub async fn start(
        folder: &Path,
        tools: &Tools,
        credentials: &Credentials,
        options: &TestbedOptions,
        watchdog: &Arc<Watchdog>,
    ) -> Result<Self> {
        let (etcd, etcd_port) = start_etcd(folder, tools, watchdog).await?;
        let audit_log = AuditLog::prepare(folder, options.audit_reads)?;
        let launch = ApiServer::new(folder, tools, credentials, options, &audit_log, etcd_port)?;
        let api_server = launch.spawn(watchdog)?;
        credentials.write_kubeconfigs(&launch.server, &launch.authority)?;
        let kubeconfig = credentials.kubeconfig(ADMIN);
        let admin = launch.serving(&kubeconfig, &api_server).await?;
        let controller_manager = start_controller_manager(folder, tools, credentials, options, &launch, watchdog)?;
        let plane = Self {
            etcd,
            api_server: Mutex::new(api_server),
            controller_manager,
            launch,
            audit_log,
            kubeconfig,
            admin,
        };
        plane.controllers_working().await?;
        Ok(plane)
    }

    pub fn admin(&self) -> Client {
        #[expect(
            clippy::expect_used,
            reason = "the same configuration made the client that saw the server ready"
        )]
        Client::try_from(self.admin.clone()).expect("a client from the administrator's configuration")
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.launch.server
    }

    /// The certificates that clients have to trust.
    pub fn authority(&self) -> &Path {
        &self.launch.authority
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub fn audit_log(&self) -> &AuditLog {
        &self.audit_log
    }

    pub fn etcd(&self) -> &Arc<Process> {
        &self.etcd
    }

    pub fn api_server(&self) -> Arc<Process> {
        Arc::clone(&locked(&self.api_server))
    }

    pub fn controller_manager(&self) -> &Arc<Process> {
        &self.controller_manager
    }

    /// An error if a part has ended by itself.
    pub fn health(&self) -> Result<()> {
        self.etcd.not_crashed()?;
        self.api_server().not_crashed()?;
        self.controller_manager.not_crashed()
    }

    /// Start it again after [`Self::end_api_server`]: the same port, the same data, the same keys.
    pub async fn start_api_server(&self) -> Result<()> {
        let next = self.launch.spawn(self.etcd.watchdog())?;
        *locked(&self.api_server) = Arc::clone(&next);
        self.launch.serving(&self.kubeconfig, &next).await?;
        Ok(())
    }

    pub async fn stop(&self) -> Result<()> {
        self.controller_manager.end(PATIENCE).await?;
        self.end_api_server().await?;
        self.etcd.end(PATIENCE).await
    }

    /// It ends slowly, and its successor or etcd's end must wait until nobody listens any more.
    pub async fn end_api_server(&self) -> Result<()> {
        self.api_server().end(API_SERVER_PATIENCE).await?;
        let port = self.launch.port;
        wait::until(PATIENCE, "the API server's port to close", async || {
            Ok((!ports::is_open(port)).then_some(()))
        })
        .await
    }

    /// Only what the controllers themselves make shows that they work.
    async fn controllers_working(&self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin(), "default");
        let certificates: Api<ConfigMap> = Api::namespaced(self.admin(), "default");
        wait::until(START, "the controllers of kube-controller-manager", async || {
            self.health()?;
            let account = accounts
                .get_opt("default")
                .await
                .context("getting the default service account")?;
            let certificate = certificates
                .get_opt("kube-root-ca.crt")
                .await
                .context("getting the root certificate")?;
            Ok(account.and(certificate).map(drop))
        })
        .await
    }
}

async fn start_etcd(folder: &Path, tools: &Tools, watchdog: &Arc<Watchdog>) -> Result<(Arc<Process>, u16)> {
    let (port, peer_port) = (ports::free_port()?, ports::free_port()?);
    let (client_url, peer_url) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer_port}"),
    );
    let mut command = Command::new(&tools.etcd);
    command
        .arg("--name=testbed")
        .arg(format!("--data-dir={}", folder.join("etcd").display()))
        .arg(format!("--listen-client-urls={client_url}"))
        .arg(format!("--advertise-client-urls={client_url}"))
        .arg(format!("--listen-peer-urls={peer_url}"))
        .arg(format!("--initial-advertise-peer-urls={peer_url}"))
        .arg(format!("--initial-cluster=testbed={peer_url}"))
        // The data is worth nothing after a crash.
        .arg("--unsafe-no-fsync")
        .arg("--log-level=warn");
    let etcd = Process::spawn("etcd", &mut command, &folder.join("etcd.log"), watchdog)?;
    etcd.until(START, "etcd's port", async || Ok(ports::is_open(port).then_some(())))
        .await?;
    Ok((etcd, port))
}

fn start_controller_manager(
    folder: &Path,
    tools: &Tools,
    credentials: &Credentials,
    options: &TestbedOptions,
    launch: &ApiServer,
    watchdog: &Arc<Watchdog>,
) -> Result<Arc<Process>> {
    let mut command = Command::new(&tools.kube_controller_manager);
    command
        .arg(format!(
            "--kubeconfig={}",
            credentials.kubeconfig(CONTROLLER_MANAGER).display()
        ))
        .arg(format!("--controllers={}", options.controllers.join(",")))
        .arg("--use-service-account-credentials=true")
        .arg(format!("--root-ca-file={}", launch.authority.display()))
        .arg("--leader-elect=false")
        // Its own brake makes tests wait.
        .args(["--kube-api-qps=200", "--kube-api-burst=400"])
        // Nobody reads its metrics, and a port less is a collision less.
        .arg("--secure-port=0");
    Process::spawn(
        "kube-controller-manager",
        &mut command,
        &folder.join("kube-controller-manager.log"),
        watchdog,
    )
}
