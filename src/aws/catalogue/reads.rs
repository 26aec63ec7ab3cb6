//! What the catalogue reads from AWS.
//!
//! Owns the narrow seam between the catalogue and the calls, so that tests can stand in for AWS.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::aws::connection::Connection;
use crate::plan::facts::{Fact, Failure, Image, Parameter};

pub(super) trait Reads: Send + Sync + 'static {
    fn parameters(&self, names: Vec<String>) -> BoxFuture<'static, Vec<(String, Fact<Parameter>)>>;
    fn images(&self, ids: Vec<String>) -> BoxFuture<'static, Result<BTreeMap<String, Image>, Failure>>;
}

impl Reads for Connection {
    fn parameters(&self, names: Vec<String>) -> BoxFuture<'static, Vec<(String, Fact<Parameter>)>> {
        let connection = self.clone();
        async move { connection.parameters(&names).await }.boxed()
    }

    fn images(&self, ids: Vec<String>) -> BoxFuture<'static, Result<BTreeMap<String, Image>, Failure>> {
        let connection = self.clone();
        async move { connection.images(&ids).await }.boxed()
    }
}
