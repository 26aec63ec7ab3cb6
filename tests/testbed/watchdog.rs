//! Owns the promise that nothing outlives the process that started it: no child, no folder.
//!
//! A small shell process reads the ids of the children from its standard input. When that closes, because the
//! testbed was stopped, dropped or its process was killed, it kills what is left and removes the folder. It must
//! not end anything that was not registered.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result};

/// A signal from the terminal must not end the watchdog: the testbed first gets its chance to stop in order.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
folder=$1 keep=$2 pids=
while read -r verb pid; do
  case $verb in
    add) pids="$pids $pid" ;;
    drop) left=; for p in $pids; do [ "$p" = "$pid" ] || left="$left $p"; done; pids=$left ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
for pid in $pids; do
  tries=0
  while [ $tries -lt 50 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.02; tries=$((tries + 1)); done
done
[ "$keep" = yes ] || rm -rf -- "$folder" || { sleep 0.2; rm -rf -- "$folder"; }
"#;

pub struct Watchdog {
    folder: PathBuf,
    keep: bool,
    child: Mutex<Option<(Child, ChildStdin)>>,
    watched: Mutex<BTreeSet<u32>>,
    closing: AtomicBool,
}

impl Watchdog {
    pub fn start(folder: &Path) -> Result<Arc<Self>> {
        let keep = std::env::var_os("SLUICE_KEEP").is_some_and(|value| !value.is_empty());
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "testbed-watchdog"])
            .arg(folder)
            .arg(if keep { "yes" } else { "no" })
            .stdin(Stdio::piped())
            // It may live a moment longer than this process: whoever reads our output must not wait for it.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting the watchdog of the testbed")?;
        let stdin = child.stdin.take().context("the watchdog has no standard input")?;
        Ok(Arc::new(Self {
            folder: folder.to_owned(),
            keep,
            child: Mutex::new(Some((child, stdin))),
            watched: Mutex::default(),
            closing: AtomicBool::new(false),
        }))
    }

    pub fn add(&self, pid: u32) -> Result<()> {
        locked(&self.watched).insert(pid);
        self.tell("add", pid)
            .with_context(|| format!("telling the watchdog about process {pid}"))
    }

    /// The process has ended: its id may soon be somebody else's.
    pub fn forget(&self, pid: u32) {
        locked(&self.watched).remove(&pid);
        // Without a watchdog there is nothing to forget.
        let _ = self.tell("drop", pid);
    }

    pub fn watched(&self) -> Vec<u32> {
        locked(&self.watched).iter().copied().collect()
    }

    /// True once the end was asked for: parts that end now do as they should.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// End what is left and remove the folder. Returns when that is done; a second time does nothing.
    pub fn finish(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let Some((mut child, stdin)) = locked(&self.child).take() else {
            return;
        };
        drop(stdin);
        let _ = child.wait();
        if self.keep {
            eprintln!("testbed: kept {}", self.folder.display());
        }
    }

    fn tell(&self, verb: &str, pid: u32) -> Result<()> {
        match locked(&self.child).as_mut() {
            Some((_, stdin)) => Ok(writeln!(stdin, "{verb} {pid}")?),
            None => anyhow::bail!("the testbed is stopped"),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A folder of this process's own that only its user may read: it holds tokens.
pub fn make_folder(name: &str) -> Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("sluice-{name}-{}-{number}", std::process::id()));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("making the folder {}", folder.display()))?;
    Ok(folder)
}

/// The value, even if a test panicked while it held the lock: all guarded values here are valid at every step.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
