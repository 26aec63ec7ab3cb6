//! The testbed: a real Kubernetes control plane and a simulated AWS, started and stopped as one thing.
//!
//! Owns what `make demo`, the integration tests and the benchmarks run on. It must not know the operator:
//! nothing here depends on the crate `sluice`, and verdicts come from the API server's audit log
//! ([`Testbed::audit`]) and the recorded AWS calls ([`Aws::calls`]), not from what the operator says.
//!
//! ```ignore
//! let testbed = Testbed::start("rollout").await?;            // or `testbed::shared().await?`
//! let seed = testbed.aws().seed("demo", "1.33").await?;
//! let nodes = NodeSimulator::start(testbed.admin(), testbed.aws(), NodeOptions::default())?;
//! testbed.kubectl(&["get", "nodes"]).await?.success()?;
//! testbed.until(Duration::from_secs(10), "a node", async || ...).await?;
//! testbed.stop().await?;
//! ```
//!
//! With [`TestbedOptions::workloads`] pods live, too: [`Workload`] makes a Deployment with its budget, [`Availability`]
//! records how many of its pods were Ready, and [`Testbed::evictions`] tells how evictions were answered.
//!
//! Every part is a child of this process with its log in [`Testbed::folder`]. A [`watchdog`] ends the parts and
//! removes the folder however this process ends; with `SLUICE_KEEP` set the folder stays.
#![allow(
    dead_code,
    reason = "the demo, the tests and the benchmarks each use their own part of this"
)]
#![allow(
    missing_docs,
    reason = "no library: each file says what it owns, and names say the rest"
)]
#![allow(
    clippy::missing_errors_doc,
    reason = "every error is an anyhow one that ends the test"
)]
#![allow(
    clippy::print_stderr,
    reason = "the output of tests and of the demo is where a broken testbed is reported"
)]

pub mod api_server;
pub mod audit;
pub mod availability;
pub mod aws;
pub mod aws_administration;
pub mod aws_conduct;
pub mod aws_fault;
pub mod command_line;
pub mod control_plane;
pub mod credentials;
pub mod deployment;
pub mod installation;
pub mod kubelets;
pub mod node_objects;
pub mod nodes;
pub mod operator;
pub mod options;
pub mod ports;
pub mod process;
pub mod shared;
pub mod tools;
pub mod wait;
pub mod watchdog;
pub mod workloads;

#[allow(unused_imports, reason = "not every binary uses every one")]
pub use self::{
    audit::{AuditPosition, Eviction},
    availability::Availability,
    aws::Aws,
    aws_administration::{Call, Seed, SimulatedInstance},
    aws_conduct::{NodeFate, Shortage, Timing, Transition},
    aws_fault::Fault,
    command_line::Output,
    deployment::Workload,
    installation::{Installation, OperatorBuilder},
    nodes::{NodeOptions, NodeSimulator},
    operator::Operator,
    options::TestbedOptions,
    process::Process,
    shared::{shared, shared_in_turns, shared_with_chart, shared_with_workloads},
};

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;

use self::control_plane::ControlPlane;
use self::credentials::Credentials;
use self::tools::Tools;
use self::watchdog::{Watchdog, locked};
use self::workloads::Workloads;

/// One control plane, one simulated AWS, and whatever was started beside them.
pub struct Testbed {
    folder: PathBuf,
    tools: Tools,
    credentials: Credentials,
    control_plane: ControlPlane,
    /// With [`TestbedOptions::workloads`] only.
    workloads: Option<Workloads>,
    aws: Aws,
    /// What tests started here; ended first.
    guests: Mutex<Vec<Weak<Process>>>,
    watchdog: Arc<Watchdog>,
}

impl Testbed {
    /// Start with the defaults. The name only tells folders apart.
    pub async fn start(name: &str) -> Result<Self> {
        Self::start_with(name, TestbedOptions::default()).await
    }

    pub async fn start_with(name: &str, options: TestbedOptions) -> Result<Self> {
        let tools = Tools::built().await?;
        let folder = watchdog::make_folder(name)?;
        let watchdog = Watchdog::start(&folder)?;
        let credentials = Credentials::write(&folder)?;
        let (control_plane, aws) = tokio::try_join!(
            ControlPlane::start(&folder, &tools, &credentials, &options, &watchdog),
            Aws::start(&folder, &tools.python, &watchdog),
        )
        .with_context(|| format!("starting the testbed {name}"))?;
        let workloads = if options.workloads {
            Some(Workloads::start(&folder, &tools, &credentials, &control_plane, &watchdog).await?)
        } else {
            None
        };
        Ok(Self {
            folder,
            tools,
            credentials,
            control_plane,
            workloads,
            aws,
            guests: Mutex::default(),
            watchdog,
        })
    }

    /// Logs, certificates, kubeconfig files and the audit log. Gone after [`Self::stop`].
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn aws(&self) -> &Aws {
        &self.aws
    }

    /// A new client of the administrator. Each call makes one, because a client dies with the runtime that made it.
    pub fn admin(&self) -> Client {
        self.control_plane.admin()
    }

    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The scheduler and the player of pods, where they were asked for.
    pub fn workloads(&self) -> Result<&Workloads> {
        self.workloads
            .as_ref()
            .context("this testbed was started without workloads")
    }

    /// Simulated nodes that fit this testbed: where pods run, leases are renewed and taints left to their controller.
    pub fn start_nodes(&self, mut options: NodeOptions) -> Result<NodeSimulator> {
        options.workloads = self.workloads.is_some();
        NodeSimulator::start(self.admin(), self.aws(), options)
    }

    /// A port of the loopback address for something that a test starts.
    pub fn free_port() -> Result<u16> {
        ports::free_port()
    }

    /// An error, with the end of the log, as soon as a part has ended by itself.
    pub fn health(&self) -> Result<()> {
        self.control_plane.health()?;
        if let Some(workloads) = &self.workloads {
            workloads.health()?;
        }
        self.aws.process().not_crashed()
    }

    /// [`wait::until`] that gives up at once when a part of the testbed has died.
    pub async fn until<T>(
        &self,
        deadline: Duration,
        what: &str,
        mut probe: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let waiting = wait::until(deadline, what, async || match self.health() {
            Ok(()) => probe().await.map(|seen| seen.map(Ok)),
            Err(crash) => Ok(Some(Err(crash))),
        });
        waiting.await?.with_context(|| format!("while waiting for {what}"))
    }

    /// The API server goes down as on an upgrade and comes back on the same port with the same data.
    pub async fn api_server_restart(&self) -> Result<()> {
        self.api_server_stop().await?;
        self.api_server_start().await
    }

    /// Connections are refused until [`Self::api_server_start`].
    pub async fn api_server_stop(&self) -> Result<()> {
        self.control_plane.end_api_server().await
    }

    pub async fn api_server_start(&self) -> Result<()> {
        self.control_plane.start_api_server().await
    }

    /// The API server stops answering, with its connections left open.
    pub fn api_server_pause(&self) -> Result<()> {
        self.control_plane.api_server().signal("STOP")
    }

    pub fn api_server_resume(&self) -> Result<()> {
        self.control_plane.api_server().signal("CONT")
    }

    /// The process ids of all parts that run now.
    pub fn pids(&self) -> Vec<u32> {
        self.watchdog.watched()
    }

    /// End everything in order: guests, workloads, controllers, API server, etcd once the API server's port is closed, AWS.
    pub async fn stop(self) -> Result<()> {
        let guests = std::mem::take(&mut *locked(&self.guests));
        for guest in guests.iter().filter_map(Weak::upgrade) {
            guest.kill().await?;
        }
        if let Some(workloads) = &self.workloads {
            workloads.stop().await?;
        }
        self.control_plane.stop().await?;
        self.aws.stop().await?;
        self.watchdog.finish();
        Ok(())
    }

    fn register_guest(&self, guest: &Arc<Process>) {
        locked(&self.guests).push(Arc::downgrade(guest));
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.watchdog.finish();
    }
}
