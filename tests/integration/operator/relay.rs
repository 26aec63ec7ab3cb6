//! A way to the API server that can be cut, or fall silent, while the API server itself runs on.
//!
//! Owns the port and the connections through it. Must not look at what passes.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::testbed::Testbed;

/// Passes connections on until it is cut or dropped.
pub struct Relay {
    port: u16,
    to: u16,
    task: JoinHandle<()>,
    silent: watch::Sender<bool>,
}

impl Relay {
    /// A relay to the API server of a kubeconfig, and a kubeconfig that goes through it.
    pub async fn start(kubeconfig: &Path) -> Result<(Self, PathBuf)> {
        let mut config: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
        let server = &mut config["clusters"][0]["cluster"]["server"];
        let to = server.as_str().and_then(|server| server.rsplit(':').next());
        let to = to.context("a server with a port")?.parse()?;
        let port = Testbed::free_port()?;
        *server = json!(format!("https://127.0.0.1:{port}"));
        let path = kubeconfig.with_extension(format!("{port}.relayed"));
        std::fs::write(&path, config.to_string())?;
        let silent = watch::Sender::new(false);
        let task = Self::run(port, to, &silent).await?;
        Ok((Self { port, to, task, silent }, path))
    }

    /// Ends all connections; new ones are refused.
    pub fn cut(&self) {
        self.task.abort();
    }

    /// Nothing passes any more, in either direction; connections stay open, and new ones are taken.
    pub fn silence(&self) {
        self.silent.send_replace(true);
    }

    pub async fn mend(&mut self) -> Result<()> {
        self.task = Self::run(self.port, self.to, &self.silent).await?;
        Ok(())
    }

    async fn run(port: u16, to: u16, silent: &watch::Sender<bool>) -> Result<JoinHandle<()>> {
        let silent = silent.subscribe();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(tokio::spawn(async move {
            // They end with this task.
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let mut silent = silent.clone();
                connections.spawn(async move {
                    let passing = async {
                        let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await?;
                        tokio::io::copy_bidirectional(&mut near, &mut far).await
                    };
                    let falls_silent = async { silent.wait_for(|silent| *silent).await.is_ok() };
                    tokio::select! {
                        biased;
                        // Open, but nobody passes anything on.
                        true = falls_silent => std::future::pending().await,
                        passed = passing => passed,
                    }
                });
            }
        }))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}
