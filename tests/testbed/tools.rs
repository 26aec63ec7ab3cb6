//! Owns the paths of the programs that the testbed runs, as `tools/build` prints them.
//!
//! It must not know how they are built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tokio::sync::OnceCell;

#[derive(Clone, Debug)]
pub struct Tools {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: PathBuf,
    pub kube_scheduler: PathBuf,
    pub kwok: PathBuf,
    pub kubectl: PathBuf,
    pub helm: PathBuf,
    pub python: PathBuf,
}

impl Tools {
    /// Build what is not built yet, once in this process; a first time takes many minutes and says so on stderr.
    pub async fn built() -> Result<Self> {
        static BUILT: OnceCell<Tools> = OnceCell::const_new();
        let tools = BUILT
            .get_or_try_init(|| async { tokio::task::spawn_blocking(build).await? })
            .await?;
        Ok(tools.clone())
    }
}

/// The folder of this module in the checkout.
pub fn source_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed"))
}

fn build() -> Result<Tools> {
    let script = source_folder().join("tools/build");
    let output = Command::new(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", script.display()))?;
    if !output.status.success() {
        bail!(
            "{} failed ({}); its messages are above",
            script.display(),
            output.status
        );
    }
    let text = String::from_utf8(output.stdout).context("paths are not UTF-8")?;
    let paths: BTreeMap<_, _> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let path = |name: &str| {
        let path = paths
            .get(name)
            .with_context(|| format!("{} names no {name}", script.display()))?;
        let path = PathBuf::from(path);
        if !path.exists() {
            bail!("{name} is not at {}", path.display());
        }
        Ok(path)
    };
    Ok(Tools {
        etcd: path("ETCD")?,
        kube_apiserver: path("KUBE_APISERVER")?,
        kube_controller_manager: path("KUBE_CONTROLLER_MANAGER")?,
        kube_scheduler: path("KUBE_SCHEDULER")?,
        kwok: path("KWOK")?,
        kubectl: path("KUBECTL")?,
        helm: path("HELM")?,
        python: path("PYTHON")?,
    })
}
