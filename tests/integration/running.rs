//! A running operator under the chart's own rights, with nodes that join.
//!
//! Owns starting it, once for the shared testbed or for an own one. Must not know what the tests want of it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::OnceCell;

use crate::testbed::{NodeOptions, NodeSimulator, Operator, Testbed, shared};

/// Namespace that the chart is installed into.
pub const HOME: &str = "sluice-system";

/// The operator and its nodes; they stop when it is dropped.
pub struct Running {
    pub operator: Operator,
    pub nodes: NodeSimulator,
}

impl Running {
    /// Installs the chart and starts the operator with short intervals.
    pub async fn start(testbed: &Testbed) -> Result<Self> {
        Self::start_with(testbed, &["--aws-poll-interval", "2s", "--image-poll-interval", "1s"]).await
    }

    /// The same with these arguments after `run`.
    pub async fn start_with(testbed: &Testbed, arguments: &[&str]) -> Result<Self> {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/sluice");
        let chart = chart.to_str().context("the path of the chart")?;
        testbed
            .helm(&[
                "upgrade",
                "--install",
                "sluice",
                chart,
                "--namespace",
                HOME,
                "--create-namespace",
            ])
            .await?
            .success()?;
        let port = Testbed::free_port()?;
        let address = format!("127.0.0.1:{port}");
        let kubeconfig = testbed.kubeconfig_for_service_account(HOME, "sluice").await?;
        let mut all = vec![
            "run",
            "--config-namespace",
            HOME,
            "--metrics-addr",
            &address,
            "--log-level",
            "sluice=debug,info,kube_runtime=warn",
        ];
        all.extend(arguments);
        let mut operator = Operator::start(testbed, Path::new(env!("CARGO_BIN_EXE_sluice")), &all, &[], &kubeconfig)?;
        operator.ready(port).await?;
        let options = NodeOptions {
            delay: Duration::from_millis(200),
            // Groups of other tests have simulators of their own.
            group_prefix: "demo-".to_owned(),
            ..NodeOptions::default()
        };
        let nodes = NodeSimulator::start(testbed.admin(), testbed.aws(), options)?;
        Ok(Self { operator, nodes })
    }
}

/// The shared testbed with one operator on it.
pub async fn shared_operator() -> Result<&'static Testbed> {
    static STARTED: OnceCell<()> = OnceCell::const_new();
    let testbed = shared().await?;
    STARTED
        .get_or_try_init(|| async {
            // It lives on a runtime of its own, as long as the process: the runtime of the first test ends with it.
            let (answer, answered) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => runtime.block_on(async move {
                        let started = Running::start(testbed).await;
                        let (running, result) = match started {
                            Ok(running) => (Some(running), Ok(())),
                            Err(error) => (None, Err(error)),
                        };
                        let _ = answer.send(result);
                        std::future::pending::<()>().await;
                        drop(running);
                    }),
                    Err(error) => drop(answer.send(Err(error.into()))),
                }
            });
            answered.await.context("the operator's thread ended")?
        })
        .await?;
    Ok(testbed)
}
