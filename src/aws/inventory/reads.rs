//! What the inventory reads from AWS.
//!
//! Owns the narrow seam between the snapshot and the calls, so that tests can stand in for AWS. Reads only.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::aws::connection::Connection;
use crate::plan::facts::{AutoScalingGroup, Fact, Failure, LaunchTemplate};

pub(super) trait Reads: Send + Sync + 'static {
    fn list_groups(&self, clusters: Vec<String>) -> BoxFuture<'static, Result<Vec<AutoScalingGroup>, Failure>>;
    fn groups_named(&self, names: Vec<String>) -> BoxFuture<'static, Result<Vec<AutoScalingGroup>, Failure>>;
    fn default_versions(&self) -> BoxFuture<'static, Result<Vec<LaunchTemplate>, Failure>>;
    fn template_named(&self, name: String) -> BoxFuture<'static, Fact<LaunchTemplate>>;
}

impl Reads for Connection {
    fn list_groups(&self, clusters: Vec<String>) -> BoxFuture<'static, Result<Vec<AutoScalingGroup>, Failure>> {
        let connection = self.clone();
        async move { connection.list_groups(&clusters).await }.boxed()
    }

    fn groups_named(&self, names: Vec<String>) -> BoxFuture<'static, Result<Vec<AutoScalingGroup>, Failure>> {
        let connection = self.clone();
        async move { connection.groups_named(&names).await }.boxed()
    }

    fn default_versions(&self) -> BoxFuture<'static, Result<Vec<LaunchTemplate>, Failure>> {
        let connection = self.clone();
        async move { connection.default_versions().await }.boxed()
    }

    fn template_named(&self, name: String) -> BoxFuture<'static, Fact<LaunchTemplate>> {
        let connection = self.clone();
        async move { connection.template_named(&name).await }.boxed()
    }
}
