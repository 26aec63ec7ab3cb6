//! Proves that parts which end are noticed, and that nothing outlives a testbed, however it ends.
#![allow(clippy::print_stdout, reason = "a child test tells its parent where its testbed is")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::SOON;
use crate::testbed::{Operator, Testbed, TestbedOptions, shared, wait};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_under_test_is_started_watched_and_ended() -> Result<()> {
    let testbed = shared().await?;
    let served = testbed.folder().join("served");
    std::fs::create_dir(&served)?;
    let port = Testbed::free_port()?;
    let number = port.to_string();
    // Python's own web server stands in for the operator.
    let arguments = [
        "-u",
        "-m",
        "http.server",
        &number,
        "--bind",
        "127.0.0.1",
        "--directory",
        &served.display().to_string(),
    ];
    let mut operator = Operator::start(testbed, testbed.python_path(), &arguments, &[], testbed.kubeconfig())?;
    let early = wait::until(Duration::from_millis(500), "an early readiness", async || {
        ensure!(served.join("readyz").exists(), "not ready yet");
        Ok(Some(()))
    });
    let complaint = early
        .await
        .map_or_else(|problem| problem.to_string(), |()| String::new());
    assert!(
        complaint.contains("an early readiness") && complaint.contains("not ready yet"),
        "{complaint}"
    );
    std::fs::write(served.join("readyz"), "ok")?;
    operator.ready(port).await?;
    assert_eq!(operator.get("/readyz").await?, (200, "ok".to_owned()));
    assert!(operator.log()?.contains("GET /readyz"));
    let pid = operator.pid();
    let status = operator.terminate(SOON).await?;
    assert!(!status.success(), "it does not handle the signal");
    assert!(!is_running(pid) && operator.alive().is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_dies_is_reported_with_its_log() -> Result<()> {
    let testbed = Testbed::start("crash").await?;
    testbed.health()?;
    kill(testbed.control_plane().controller_manager().pid())?;
    let started = Instant::now();
    let waited = testbed
        .until(Duration::from_mins(1), "what never comes", async || Ok(None::<()>))
        .await;
    let report = format!("{:#}", waited.err().context("the wait went well")?);
    assert!(
        report.contains("kube-controller-manager has ended (signal: 9"),
        "{report}"
    );
    assert!(
        report.contains("what never comes") && report.lines().count() > 3,
        "{report}"
    );
    assert!(
        started.elapsed() < SOON,
        "it waited although nothing could come any more"
    );
    testbed.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_and_dropping_leave_nothing() -> Result<()> {
    let stopped = Testbed::start("stopped").await?;
    let (folder, pids) = (stopped.folder().to_owned(), stopped.pids());
    assert_eq!(pids.len(), 4, "etcd, API server, controllers, AWS");
    assert!(pids.iter().all(|pid| is_running(*pid)));
    stopped.stop().await?;
    assert!(!folder.exists() && !pids.iter().any(|pid| is_running(*pid)));

    let dropped = Testbed::start_with("dropped", TestbedOptions::default().workloads()).await?;
    let (folder, pids) = (dropped.folder().to_owned(), dropped.pids());
    assert_eq!(pids.len(), 6, "and the scheduler and the player of pods");
    drop(dropped);
    nothing_left(&folder, &pids).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_nothing() -> Result<()> {
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "testbed_itself::lifecycle::holds_a_testbed_until_it_is_killed",
        ])
        .env("TESTBED_TO_BE_ABANDONED", "yes")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let held = loop {
        let line = lines.next_line().await?.context("it ended before it had a testbed")?;
        if let Some((_, held)) = line.split_once("holding ") {
            break held.to_owned();
        }
    };
    let (pids, folder) = held.split_once(' ').context("pids and a folder")?;
    let pids = pids.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    assert!(pids.len() == 4 && pids.iter().all(|pid| is_running(*pid)));
    child.kill().await?;
    nothing_left(&PathBuf::from(folder), &pids).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test above, which kills it"]
async fn holds_a_testbed_until_it_is_killed() -> Result<()> {
    if std::env::var_os("TESTBED_TO_BE_ABANDONED").is_none() {
        return Ok(());
    }
    let testbed = Testbed::start("abandoned").await?;
    let pids: Vec<_> = testbed.pids().iter().map(ToString::to_string).collect();
    println!("holding {} {}", pids.join(","), testbed.folder().display());
    std::future::pending().await
}

async fn nothing_left(folder: &Path, pids: &[u32]) -> Result<()> {
    wait::until(SOON, "the processes and the folder to be gone", async || {
        let running: Vec<_> = pids.iter().filter(|pid| is_running(**pid)).collect();
        ensure!(
            running.is_empty() && !folder.exists(),
            "running: {running:?}, folder: {}",
            folder.exists()
        );
        Ok(Some(()))
    })
    .await
}

/// A process that has ended but that nobody has asked about yet does not count.
fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

fn kill(pid: u32) -> Result<()> {
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -s KILL {pid}")])
        .status()?;
    ensure!(sent.success(), "no process {pid} to kill");
    Ok(())
}
