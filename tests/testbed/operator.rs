//! Owns the operator's process in a test: start, readiness, log, end.
//!
//! It must not know the operator's flags; they come from [`super::installation`].

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Testbed;
use super::process::Process;

const READY: Duration = Duration::from_mins(1);

pub struct Operator {
    process: Arc<Process>,
    port: Option<u16>,
}

impl Operator {
    /// Start the binary with its arguments. It reaches the testbed's AWS and the API server by `kubeconfig`, and
    /// nothing else: no credentials or proxies of the caller.
    pub fn start(
        testbed: &Testbed,
        binary: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
        kubeconfig: &Path,
    ) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let log = testbed
            .folder()
            .join(format!("operator-{}.log", COUNT.fetch_add(1, Ordering::Relaxed)));
        let mut command = Command::new(binary);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", testbed.folder().join("home"))
            .env("KUBECONFIG", kubeconfig)
            // What the chart gives a pod by the downward API.
            .env("POD_NAMESPACE", "sluice-system")
            .env("RUST_BACKTRACE", "1")
            .envs(testbed.aws().environment())
            .envs(environment.iter().copied());
        let process = Process::spawn("the operator", &mut command, &log, &testbed.watchdog)?;
        testbed.register_guest(&process);
        Ok(Self { process, port: None })
    }

    /// Wait for 200 from `/healthz` on this port of the loopback address: it lives, whatever else is missing.
    pub async fn up(&mut self, port: u16) -> Result<()> {
        self.port = Some(port);
        self.answers("/healthz", READY).await
    }

    /// Wait for 200 from `/readyz` on this port.
    pub async fn ready(&mut self, port: u16) -> Result<()> {
        self.port = Some(port);
        self.answers("/readyz", READY).await
    }

    /// Wait for 200 from a path of its admin server.
    pub async fn answers(&self, path: &str, deadline: Duration) -> Result<()> {
        let what = format!("200 from the operator's {path}");
        let good = self.process.until(deadline, &what, async || {
            let (status, text) = self.get(path).await?;
            ensure!(status == 200, "{path} answered {status}: {text}");
            Ok(Some(()))
        });
        good.await
    }

    /// Status and body of a path of its admin server, such as `/metrics`; [`Self::up`] or [`Self::ready`] first.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        let port = self
            .port
            .context("the operator's port is not known before `up` or `ready`")?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(10))
            .build()?;
        let response = http.get(format!("http://127.0.0.1:{port}{path}")).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    /// Puts its clock ahead of the machine's by a length such as `48h`; a build with the feature `testing` only.
    pub async fn put_clock(&self, ahead: &str) -> Result<()> {
        let port = self
            .port
            .context("the operator's port is not known before `up` or `ready`")?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let put = http
            .post(format!("http://127.0.0.1:{port}/testing/clock"))
            .body(ahead.to_owned());
        let answer = put.send().await?;
        ensure!(answer.status().is_success(), "{}", answer.text().await?);
        Ok(())
    }

    /// SIGTERM, and how it ended; an error if it does not end in time.
    pub async fn terminate(&self, deadline: Duration) -> Result<ExitStatus> {
        self.process.terminate(deadline).await
    }

    /// SIGKILL: a crash.
    pub async fn kill(&self) -> Result<ExitStatus> {
        self.process.kill().await
    }

    /// A signal by name: STOP and CONT make it hang and go on.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process.signal(name)
    }

    /// An end that is part of the test, such as a lost lease.
    pub async fn ended(&self, deadline: Duration) -> Result<ExitStatus> {
        self.process.expect_end();
        self.process.ended(deadline).await
    }

    pub fn alive(&self) -> Result<()> {
        self.process.alive()
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn log(&self) -> Result<String> {
        self.process.log()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // A test that failed halfway must not leave an operator at work on a shared testbed.
        if self.process.alive().is_ok() {
            let _ = self.process.signal("KILL");
        }
    }
}
