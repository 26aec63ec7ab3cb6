//! Supervision: tasks by name.
//!
//! Owns the rule that a task which ends by itself ends the process. Must not know what the tasks do.

use std::collections::{HashMap, HashSet};
use std::future::Future;

use anyhow::anyhow;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Tasks by name; the first that ends by itself ends the process.
#[derive(Default)]
pub struct Tasks {
    set: JoinSet<anyhow::Result<()>>,
    names: HashMap<Id, &'static str>,
    done: HashSet<&'static str>,
}

impl Tasks {
    /// Starts a task.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Waits for the first task to end, whichever way.
    pub async fn first(&mut self) -> anyhow::Error {
        match self.set.join_next_with_id().await {
            Some(Ok((id, Ok(())))) => anyhow!("task {} ended by itself", self.name(id)),
            Some(Ok((id, Err(error)))) => error.context(format!("task {} failed", self.name(id))),
            Some(Err(error)) => anyhow!("task {} broke off: {error}", self.name(error.id())),
            None => anyhow!("no task is left"),
        }
    }

    fn name(&self, id: Id) -> &'static str {
        self.names.get(&id).copied().unwrap_or("unknown")
    }

    /// Waits until a task of this name has ended, while others may end well, too.
    ///
    /// # Errors
    /// The failure of the first task that fails meanwhile, whichever it is.
    pub async fn ended(&mut self, name: &'static str) -> anyhow::Result<()> {
        while !self.done.contains(name) {
            match self.set.join_next_with_id().await {
                Some(Ok((id, Ok(())))) => {
                    self.done.insert(self.name(id));
                }
                Some(Ok((id, Err(error)))) => return Err(error.context(format!("task {} failed", self.name(id)))),
                Some(Err(error)) => return Err(anyhow!("task {} broke off: {error}", self.name(error.id()))),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// A task that has no end of its own.
pub async fn endless(task: impl Future<Output = ()>) -> anyhow::Result<()> {
    task.await;
    Ok(())
}

/// Ends well only once it was asked to.
pub async fn until(stop: &CancellationToken) -> anyhow::Result<()> {
    if stop.is_cancelled() {
        std::future::pending().await
    } else {
        Ok(())
    }
}
