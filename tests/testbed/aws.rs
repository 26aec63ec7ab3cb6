//! Owns the simulated AWS's process, how others reach it, and how its administration is asked.
//!
//! It must not know what the administration can do; that is [`super::aws_administration`].

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_autoscaling::config::{Credentials, SharedCredentialsProvider};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::process::Process;
use super::tools;
use super::watchdog::Watchdog;

pub const REGION: &str = "us-west-2";
pub const ACCOUNT_ID: &str = "123456789012";

const START: Duration = Duration::from_mins(2);
const ANSWER: Duration = Duration::from_secs(30);

/// A handle; clones speak to the same simulation.
#[derive(Clone)]
pub struct Aws {
    endpoint: String,
    http: reqwest::Client,
    process: Arc<Process>,
}

impl Aws {
    pub async fn start(folder: &Path, python: &Path, watchdog: &Arc<Watchdog>) -> Result<Self> {
        let mut command = Command::new(python);
        command
            .args([
                "-m",
                "simulated_aws",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--exit-with-stdin",
            ])
            .env("PYTHONPATH", tools::source_folder().join("aws"))
            .current_dir(folder);
        let process = Process::spawn("the simulated AWS", &mut command, &folder.join("aws.log"), watchdog)?;
        let address = process.until(START, "the simulated AWS's address", async || {
            let log = process.log()?;
            Ok(log
                .lines()
                .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned)))
        });
        let endpoint = format!("http://{}", address.await?);
        // No kept connections: they would belong to the runtime of whichever test opened them.
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(ANSWER)
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self {
            endpoint,
            http,
            process,
        })
    }

    pub async fn stop(&self) -> Result<()> {
        self.process.close_stdin();
        if self.process.ended(Duration::from_secs(5)).await.is_err() {
            self.process.kill().await?;
        }
        Ok(())
    }

    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// What `AWS_ENDPOINT_URL` has to be.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The same simulation over connections that stay open, for one runtime only.
    pub fn with_kept_connections(&self) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER).build()?;
        Ok(Self { http, ..self.clone() })
    }

    /// How a process under test reaches this AWS, and no other.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", self.endpoint.as_str()),
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", "testbed"),
            ("AWS_SECRET_ACCESS_KEY", "testbed"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// For the SDK's clients in a test: `aws_sdk_autoscaling::Client::new(&aws.sdk_config())`.
    pub fn sdk_config(&self) -> SdkConfig {
        let credentials = Credentials::new("testbed", "testbed", None, None, "testbed");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .endpoint_url(&self.endpoint)
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .build()
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.ask(Method::GET, path, None).await
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T> {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(super) async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Value>) -> Result<T> {
        self.process.alive()?;
        let shown = format!("{method} {path} of the simulated AWS");
        let mut request = self
            .http
            .request(method, format!("{}/_simulation{path}", self.endpoint));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.with_context(|| format!("no answer to {shown}"))?;
        let status = response.status();
        let text = response
            .text()
            .await
            .with_context(|| format!("half an answer to {shown}"))?;
        if !status.is_success() {
            bail!("{shown} was refused ({status}): {text}");
        }
        serde_json::from_str(&text).with_context(|| format!("{shown} answered something else: {text}"))
    }
}
