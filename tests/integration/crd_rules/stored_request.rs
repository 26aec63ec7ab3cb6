//! A request that is stored, with the writes that people and the operator make on it.
//!
//! Owns sending them. It must not know a rule.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::request_table::base;
use super::{Answer, REQUESTS, accepted, create, merged, patch, path, refused};
use crate::testbed::Testbed;

/// A request in a namespace of the shared testbed.
pub struct Stored {
    pub client: kube::Client,
    pub namespace: String,
    pub name: String,
}

impl Stored {
    /// Creates it with these edits of its spec, and in this phase if any.
    pub async fn new(
        testbed: &Testbed,
        namespace: &str,
        name: &str,
        spec: &Value,
        phase: Option<&str>,
    ) -> Result<Self> {
        let stored = Self {
            client: testbed.admin(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let object = merged(base(name, namespace), &json!({"spec": spec}));
        accepted(create(&stored.client, REQUESTS, &object).await?, name)?;
        if let Some(phase) = phase {
            stored.enter(phase).await?;
        }
        Ok(stored)
    }

    /// What the operator would write.
    pub async fn enter(&self, phase: &str) -> Result<()> {
        let status = json!({"status": {"phase": phase}});
        let name = format!("{}/status", self.name);
        accepted(
            patch(&self.client, REQUESTS, &self.namespace, &name, &status).await?,
            phase,
        )?;
        Ok(())
    }

    /// A merge patch of the spec.
    pub async fn decide(&self, spec: &Value) -> Result<Answer> {
        let body = json!({"spec": spec});
        patch(&self.client, REQUESTS, &self.namespace, &self.name, &body).await
    }

    /// The same, only asked.
    pub async fn try_decide(&self, spec: &Value) -> Result<Answer> {
        let name = format!("{}?dryRun=All&fieldValidation=Strict", self.name);
        let path = format!("{}/{name}", path(REQUESTS, &self.namespace));
        super::ask(
            &self.client,
            "PATCH",
            &path,
            "application/merge-patch+json",
            &json!({"spec": spec}),
        )
        .await
    }

    pub async fn takes(&self, spec: &Value) -> Result<()> {
        accepted(self.decide(spec).await?, &format!("{}: {spec}", self.name))?;
        Ok(())
    }

    /// Refused for this reason, and nothing has changed.
    pub async fn refuses(&self, spec: &Value, message: &str) -> Result<()> {
        let before = self.read().await?;
        refused(self.decide(spec).await?, message, &format!("{}: {spec}", self.name))?;
        ensure!(
            self.read().await? == before,
            "{}: {spec} was refused and changed something",
            self.name
        );
        Ok(())
    }

    pub async fn read(&self) -> Result<Value> {
        let path = format!("{}/{}", path(REQUESTS, &self.namespace), self.name);
        let request = axum::http::Request::get(path).body(Vec::new())?;
        Ok(self.client.request(request).await?)
    }
}
