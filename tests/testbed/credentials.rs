//! Owns who may speak to the API server: users with static tokens, and kubeconfig files.
//!
//! It must not grant rights: besides the administrator, users have those that a test binds to them.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;

use super::Testbed;

pub const ADMIN: &str = "admin";
pub const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
pub const SCHEDULER: &str = "system:kube-scheduler";
/// Plays the pods; its rights are in [`super::workloads`].
pub const KWOK: &str = "kwok";

/// Name and groups of every user with a token.
const USERS: &[(&str, &str)] = &[
    (ADMIN, "system:masters"),
    (CONTROLLER_MANAGER, ""),
    (SCHEDULER, ""),
    (KWOK, ""),
    ("alice", ""),
    ("bob", ""),
    ("carol", ""),
];

#[derive(Clone, Debug)]
pub struct Credentials {
    folder: PathBuf,
    /// The same order as [`USERS`].
    tokens: Vec<String>,
}

impl Credentials {
    /// Make a token for every user and write the API server's list of them.
    pub fn write(folder: &Path) -> Result<Self> {
        let tokens = USERS.iter().map(|_| random_token()).collect::<Result<Vec<_>>>()?;
        let mut list = String::new();
        for ((user, groups), token) in USERS.iter().zip(&tokens) {
            writeln!(list, "{token},{user},{user},\"{groups}\"")?;
        }
        let credentials = Self {
            folder: folder.to_owned(),
            tokens,
        };
        write_private(&credentials.token_file(), list.as_bytes())?;
        Ok(credentials)
    }

    pub fn token_file(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    pub fn token(&self, user: &str) -> Result<&str> {
        let position = USERS.iter().position(|(name, _)| *name == user);
        let position = position.with_context(|| {
            let names: Vec<_> = USERS.iter().map(|(name, _)| *name).collect();
            format!("no user {user}; there are {}", names.join(", "))
        })?;
        Ok(&self.tokens[position])
    }

    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{}.kubeconfig", user.replace(':', "-")))
    }

    /// Write the kubeconfig of every user.
    pub fn write_kubeconfigs(&self, server: &str, authority: &Path) -> Result<()> {
        for ((user, _), token) in USERS.iter().zip(&self.tokens) {
            write_kubeconfig(&self.kubeconfig(user), server, authority, user, token)?;
        }
        Ok(())
    }
}

impl Testbed {
    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.control_plane().kubeconfig()
    }

    /// The kubeconfig of `alice`, `bob` or `carol`, who have no rights but those bound to them.
    pub fn kubeconfig_for_user(&self, user: &str) -> Result<PathBuf> {
        self.credentials.token(user)?;
        Ok(self.credentials.kubeconfig(user))
    }

    pub async fn client_for_user(&self, user: &str) -> Result<Client> {
        client_from(&self.kubeconfig_for_user(user)?).await
    }

    /// A kubeconfig with a fresh token of a service account that exists, as a pod of it would have.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin(), namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(8 * 3600),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("requesting a token of service account {namespace}/{name}"))?;
        let token = answer.status.context("a token request without a status")?.token;
        let path = self
            .folder()
            .join(format!("{namespace}-{name}.service-account.kubeconfig"));
        let plane = self.control_plane();
        write_kubeconfig(&path, plane.server(), plane.authority(), name, &token)?;
        Ok(path)
    }

    pub async fn client_for_service_account(&self, namespace: &str, name: &str) -> Result<Client> {
        client_from(&self.kubeconfig_for_service_account(namespace, name).await?).await
    }
}

/// What a kubeconfig says, with no proxy whatever the environment says: the server is on this machine.
pub async fn config_from(kubeconfig: &Path) -> Result<Config> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("reading {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("using {}", kubeconfig.display()))?;
    config.proxy_url = None;
    Ok(config)
}

pub async fn client_from(kubeconfig: &Path) -> Result<Client> {
    let config = config_from(kubeconfig).await?;
    Client::try_from(config).with_context(|| format!("making a client from {}", kubeconfig.display()))
}

/// JSON is YAML: no template needs quoting rules.
fn write_kubeconfig(path: &Path, server: &str, authority: &Path, user: &str, token: &str) -> Result<()> {
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user, "namespace": "default"}}],
    });
    write_private(path, serde_json::to_string_pretty(&content)?.as_bytes())
}

/// Under a name of its own first: tests at the same time read and write the same file.
fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let part = path.with_extension(format!("{}.part", random_token()?));
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    let mut file = opened.with_context(|| format!("opening {}", part.display()))?;
    let written = file.write_all(content).and_then(|()| std::fs::rename(&part, path));
    written.with_context(|| format!("writing {}", path.display()))
}

fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom").context("opening the source of random bytes")?;
    source.read_exact(&mut bytes).context("reading random bytes")?;
    Ok(hex::encode(bytes))
}
