//! Owns one child process: its start, its log, its signals, and the report when it ends unasked.
//!
//! It works from any runtime: a thread of its own waits for the child. It must not signal a process that has ended.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::watch;

use super::wait;
use super::watchdog::{Watchdog, locked};

const TAIL_LINES: usize = 25;

pub struct Process {
    name: String,
    pid: u32,
    log: PathBuf,
    stdin: Mutex<Option<ChildStdin>>,
    ended: watch::Receiver<Option<ExitStatus>>,
    /// Set before anything that ends it on purpose.
    end_wanted: Arc<AtomicBool>,
    /// Keeps the watchdog for as long as there is something to watch.
    watchdog: Arc<Watchdog>,
}

impl Process {
    /// Start it in a process group of its own, with both outputs appended to `log`.
    pub fn spawn(name: &str, command: &mut Command, log: &Path, watchdog: &Arc<Watchdog>) -> Result<Arc<Self>> {
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("opening the log {}", log.display()))?;
        let errors = output.try_clone().context("sharing a log between both outputs")?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name} ({})", command.get_program().display()))?;
        let pid = child.id();
        if let Err(problem) = watchdog.add(pid) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(problem);
        }
        let (announce, ended) = watch::channel(None);
        let end_wanted = Arc::new(AtomicBool::new(false));
        let process = Arc::new(Self {
            name: name.to_owned(),
            pid,
            log: log.to_owned(),
            stdin: Mutex::new(child.stdin.take()),
            ended,
            end_wanted: Arc::clone(&end_wanted),
            watchdog: Arc::clone(watchdog),
        });
        let watcher = (Arc::downgrade(watchdog), name.to_owned(), log.to_owned());
        std::thread::spawn(move || {
            let (watchdog, name, log) = watcher;
            let status = child.wait().ok();
            let watchdog = watchdog.upgrade();
            let wanted = end_wanted.load(Ordering::SeqCst) || watchdog.as_ref().is_none_or(|it| it.is_closing());
            if let Some(watchdog) = watchdog {
                watchdog.forget(pid);
            }
            if !wanted {
                eprintln!("testbed: {}", obituary(&name, status, &log));
            }
            announce.send_replace(status);
        });
        Ok(process)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.ended.borrow()
    }

    /// An error with the end of the log if it has ended, for whatever reason.
    pub fn alive(&self) -> Result<()> {
        match self.exit_status() {
            None => Ok(()),
            status => bail!(obituary(&self.name, status, &self.log)),
        }
    }

    /// The same, but an end that was asked for is no error.
    pub fn not_crashed(&self) -> Result<()> {
        if self.end_wanted.load(Ordering::SeqCst) {
            Ok(())
        } else {
            self.alive()
        }
    }

    /// [`wait::until`] that ends at once, with the log, when this process has ended.
    pub async fn until<T>(
        &self,
        deadline: Duration,
        what: &str,
        mut probe: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let waiting = wait::until(deadline, what, async || match self.alive() {
            Ok(()) => probe().await.map(|seen| seen.map(Ok)),
            Err(crash) => Ok(Some(Err(crash))),
        });
        let waited = waiting
            .await
            .with_context(|| format!("{} said:\n  {}", self.name, tail(&self.log)));
        waited?.with_context(|| format!("while waiting for {what}"))
    }

    pub async fn ended(&self, deadline: Duration) -> Result<ExitStatus> {
        let mut ended = self.ended.clone();
        let waiting = tokio::time::timeout(deadline, ended.wait_for(Option::is_some)).await;
        let status = waiting.with_context(|| format!("{} did not end within {deadline:?}", self.name))?;
        let status = *status.with_context(|| format!("nobody waits for {} any more", self.name))?;
        status.with_context(|| format!("{} ended without a status", self.name))
    }

    /// Send a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.alive()?;
        if matches!(name, "TERM" | "KILL" | "INT") {
            self.end_wanted.store(true, Ordering::SeqCst);
        }
        // The shell's own `kill`: no unsafe code here, and the program of that name is not everywhere.
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "signal", name, &self.pid.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("sending {name} to {}", self.name))?;
        // It may have ended in between.
        if !sent.success() && self.exit_status().is_none() {
            bail!("{} did not take the signal {name}", self.name);
        }
        Ok(())
    }

    /// From now on its end is part of the test and not reported.
    pub fn expect_end(&self) {
        self.end_wanted.store(true, Ordering::SeqCst);
    }

    /// Ask it to end and wait; an error if it does not.
    pub async fn terminate(&self, deadline: Duration) -> Result<ExitStatus> {
        if self.exit_status().is_none() {
            self.signal("TERM").ok();
        }
        self.ended(deadline).await
    }

    pub async fn kill(&self) -> Result<ExitStatus> {
        if self.exit_status().is_none() {
            self.signal("KILL").ok();
        }
        self.ended(Duration::from_secs(10)).await
    }

    /// Ask, then insist: for parts whose own manner of ending is of no interest.
    pub async fn end(&self, patience: Duration) -> Result<()> {
        if self.exit_status().is_none() {
            self.signal("TERM").ok();
            // One that was paused would not notice.
            self.signal("CONT").ok();
        }
        if self.ended(patience).await.is_err() {
            self.kill().await?;
        }
        Ok(())
    }

    /// Closing its input is how the simulated AWS is told to end.
    pub fn close_stdin(&self) {
        self.end_wanted.store(true, Ordering::SeqCst);
        locked(&self.stdin).take();
    }

    pub(super) fn watchdog(&self) -> &Arc<Watchdog> {
        &self.watchdog
    }

    pub fn log_path(&self) -> &Path {
        &self.log
    }

    pub fn log(&self) -> Result<String> {
        let text = std::fs::read(&self.log).with_context(|| format!("reading {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn obituary(name: &str, status: Option<ExitStatus>, log: &Path) -> String {
    let status = status.map_or_else(|| "status unknown".to_owned(), |status| status.to_string());
    format!("{name} has ended ({status}); the end of its log:\n  {}", tail(log))
}

fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ")
}
