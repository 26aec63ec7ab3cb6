//! Owns running kubectl and helm as a user would, with a deadline.
//!
//! It must not interpret what they print, nor touch the caller's own configuration of them.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::Testbed;

const DEADLINE: Duration = Duration::from_mins(1);

/// What a command answered, good or bad.
#[derive(Clone, Debug)]
pub struct Output {
    pub command: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// What it printed, or an error with what it complained about.
    pub fn success(self) -> Result<String> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        bail!(
            "`{}` failed ({}): {}{}",
            self.command,
            self.status,
            self.stderr,
            self.stdout
        )
    }

    /// What it complained about, or an error if it did not.
    pub fn failure(self) -> Result<String> {
        if self.status.success() {
            bail!("`{}` was expected to fail but printed: {}", self.command, self.stdout);
        }
        Ok(self.stderr)
    }
}

impl Testbed {
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<Output> {
        self.run(&self.tools.kubectl, self.kubeconfig(), arguments, None).await
    }

    pub async fn kubectl_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<Output> {
        self.run(&self.tools.kubectl, kubeconfig, arguments, None).await
    }

    /// For `apply -f -` and its like.
    pub async fn kubectl_stdin(&self, arguments: &[&str], input: &str) -> Result<Output> {
        self.run(&self.tools.kubectl, self.kubeconfig(), arguments, Some(input))
            .await
    }

    pub async fn kubectl_stdin_as(&self, kubeconfig: &Path, arguments: &[&str], input: &str) -> Result<Output> {
        self.run(&self.tools.kubectl, kubeconfig, arguments, Some(input)).await
    }

    pub async fn helm(&self, arguments: &[&str]) -> Result<Output> {
        self.run(&self.tools.helm, self.kubeconfig(), arguments, None).await
    }

    /// Where kubectl is, for what runs it itself.
    pub fn kubectl_path(&self) -> &Path {
        &self.tools.kubectl
    }

    /// The Python that runs the simulated AWS.
    pub fn python_path(&self) -> &Path {
        &self.tools.python
    }

    async fn run(&self, program: &Path, kubeconfig: &Path, arguments: &[&str], input: Option<&str>) -> Result<Output> {
        let name = program.file_name().unwrap_or_default().display();
        let shown = format!("{name} {}", arguments.join(" "));
        let home = self.folder().join("home");
        let mut command = Command::new(program);
        command
            .args(arguments)
            // Nothing of the caller's: no other cluster, no cache, no plugins, no defaults.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("KUBECONFIG", kubeconfig)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let finished = tokio::time::timeout(DEADLINE, async {
            let mut child = command.spawn()?;
            let stdin = child.stdin.take();
            let (written, output) = tokio::join!(
                async {
                    if let (Some(mut stdin), Some(input)) = (stdin, input) {
                        stdin.write_all(input.as_bytes()).await?;
                    }
                    std::io::Result::Ok(())
                },
                child.wait_with_output()
            );
            // A program that ends before it has read everything says why itself.
            drop(written);
            output
        });
        let output = finished
            .await
            .with_context(|| format!("`{shown}` took longer than {DEADLINE:?}"))?;
        let output = output.with_context(|| format!("running `{shown}`"))?;
        Ok(Output {
            command: shown,
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
