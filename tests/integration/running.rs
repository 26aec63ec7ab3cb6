//! A running operator under the chart's own rights, with nodes that join.
//!
//! Owns starting it, once for a shared testbed or for an own one. Must not know what the tests want of it.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::OnceCell;

use crate::testbed::installation::OperatorBuilder;
use crate::testbed::{
    Installation, NodeOptions, NodeSimulator, Operator, Testbed, shared_with_chart, shared_with_workloads,
};

/// The operator and its nodes; they stop when it is dropped.
pub struct Running {
    pub operator: Operator,
    pub nodes: NodeSimulator,
    installation: Installation,
}

impl Running {
    /// Installs the chart and starts the operator with short intervals.
    pub async fn start(testbed: &Testbed) -> Result<Self> {
        Self::start_with(testbed, &[]).await
    }

    /// The same with these flags in place of the chart's.
    pub async fn start_with(testbed: &Testbed, flags: &[(&str, &str)]) -> Result<Self> {
        // The chart's own pods would run on the nodes of tests, where there are some that take pods.
        let installation = Installation::of_chart(testbed, &["--set=replicas=0"]).await?;
        let operator = launched(&installation, testbed, flags)?.ready().await?;
        let options = NodeOptions {
            delay: Duration::from_millis(200),
            // Groups of other tests have simulators of their own.
            group_prefix: "demo-".to_owned(),
            ..NodeOptions::default()
        };
        let nodes = testbed.start_nodes(options)?;
        Ok(Self {
            operator,
            nodes,
            installation,
        })
    }

    /// Another operator in place of the one that ended, ready or not.
    pub async fn relaunch(&mut self, testbed: &Testbed, flags: &[(&str, &str)]) -> Result<()> {
        self.operator = launched(&self.installation, testbed, flags)?.up().await?;
        Ok(())
    }
}

/// An operator about to start, whose log can be read by people.
fn launched<'a>(
    installation: &Installation,
    testbed: &'a Testbed,
    flags: &[(&str, &str)],
) -> Result<OperatorBuilder<'a>> {
    let builder = installation.operator(testbed)?;
    let builder = builder.flag("--log-level", "sluice=debug,info,kube_runtime=warn");
    Ok(builder.flag("--log-format", "text").flags(flags))
}

/// A shared testbed with one operator on it.
pub async fn shared_operator() -> Result<&'static Testbed> {
    static STARTED: OnceCell<Running> = OnceCell::const_new();
    let testbed = shared_with_chart().await?;
    started_once(&STARTED, testbed).await?;
    Ok(testbed)
}

/// The shared testbed where pods live, with one operator on it.
pub async fn shared_operator_with_workloads() -> Result<&'static Testbed> {
    static STARTED: OnceCell<Running> = OnceCell::const_new();
    let testbed = shared_with_workloads().await?;
    started_once(&STARTED, testbed).await?;
    Ok(testbed)
}

async fn started_once(cell: &'static OnceCell<Running>, testbed: &'static Testbed) -> Result<()> {
    let started = cell.get_or_try_init(|| async {
        // It lives on a runtime of its own, as long as the process: the runtime of the first test ends with it.
        let (answer, answered) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(async move {
                    let _ = answer.send(Running::start(testbed).await);
                    std::future::pending::<()>().await;
                }),
                Err(error) => drop(answer.send(Err(error.into()))),
            }
        });
        answered.await.context("the operator's thread ended")?
    });
    started.await.map(drop)
}
