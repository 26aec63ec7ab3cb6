//! The stage of the demo: testbed, chart, operator under its own ServiceAccount, nodes.
//!
//! Owns setting it and clearing it away, and printing commands with their answers. Must not hold the story.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::testbed::installation::HOME;
use crate::testbed::{Installation, NodeOptions, NodeSimulator, Operator, Testbed, TestbedOptions};

/// Everything the story plays on.
pub struct Stage {
    pub testbed: Testbed,
    operator: Operator,
    nodes: NodeSimulator,
    step: String,
    started: Instant,
    looks: u64,
}

impl Stage {
    /// Starts everything.
    pub async fn set() -> Result<Self> {
        let started = Instant::now();
        println!("== a control plane and a simulated AWS start");
        let testbed = Testbed::start_with("demo", TestbedOptions::default().workloads()).await?;
        testbed.aws().seed("demo", "1.33").await?;
        println!("== the chart brings the CRDs and the operator's rights");
        let installation = Installation::of_chart(&testbed, &["--set=replicas=0"]).await?;
        let builder = installation.operator(&testbed)?.flag("--log-format", "text");
        let builder = builder
            .flag("--aws-poll-interval", "5s")
            .flag("--image-poll-interval", "2s");
        let operator = builder.ready().await?;
        println!(
            "== sluice runs as ServiceAccount {HOME}/sluice ({:.1} s since the start)",
            started.elapsed().as_secs_f32()
        );
        let options = NodeOptions {
            delay: Duration::from_secs(1),
            workloads: true,
            ..NodeOptions::default()
        };
        let nodes = testbed.start_nodes(options)?;
        Ok(Self {
            testbed,
            operator,
            nodes,
            step: String::new(),
            started,
            looks: 0,
        })
    }

    /// Begins a step of the story.
    pub fn begin(&mut self, step: &str) {
        println!("\n== [{:5.1} s] {step}", self.started.elapsed().as_secs_f32());
        step.clone_into(&mut self.step);
    }

    /// The step under way.
    pub fn step(&self) -> &str {
        &self.step
    }

    /// A fact that was seen.
    pub fn seen(&self, fact: &str) {
        println!("   seen: {fact}");
    }

    /// Runs kubectl, printing the command and its answer.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let shown: Vec<String> = arguments
            .iter()
            .map(|argument| {
                if argument.contains([' ', '{', '"']) {
                    format!("'{argument}'")
                } else {
                    (*argument).to_owned()
                }
            })
            .collect();
        println!("$ kubectl {}", shown.join(" "));
        let answer = self.testbed.kubectl(arguments).await?.success()?;
        answer.lines().for_each(|line| println!("  {line}"));
        Ok(answer)
    }

    /// Puts both clocks, the operator's and AWS's, so many hours ahead of the machine's.
    pub async fn put_clock(&mut self, hours: i64) -> Result<()> {
        self.looks = self.looks().await?;
        self.testbed.aws().set_clock_offset(hours * 3600).await?;
        self.operator.put_clock(&format!("{hours}h")).await?;
        println!("   the clocks of the operator and of AWS are {hours} h ahead");
        Ok(())
    }

    /// How often the auto-approver has looked at a request.
    async fn looks(&self) -> Result<u64> {
        let (_, metrics) = self.operator.get("/metrics").await?;
        let lines = metrics
            .lines()
            .filter(|line| line.starts_with("sluice_reconciles_total"));
        let approver = lines.filter(|line| line.contains("auto-approver"));
        Ok(approver
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum())
    }

    /// Whether it has looked at the two that wait since the clock was put.
    pub async fn looked_since_the_clock(&self) -> Result<bool> {
        Ok(self.looks().await? >= self.looks + 2)
    }

    /// The end of the operator's log.
    pub fn last_words(&self) -> String {
        let log = self.operator.log().unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Stops everything, the operator gracefully.
    pub async fn stop(self) -> Result<()> {
        let Self {
            testbed,
            operator,
            nodes,
            ..
        } = self;
        drop(nodes);
        let status = operator.terminate(Duration::from_secs(30)).await?;
        testbed.stop().await?;
        anyhow::ensure!(
            status.success(),
            "the operator ended with {status} when it was asked to stop"
        );
        Ok(())
    }
}
