//! AWS, in the product's own words.
//!
//! Owns the SDK clients and everything that is known about how AWS behaves. Must not decide what to change and
//! must not know Kubernetes: it fills in the facts of `plan` and carries out what `plan` asked for. Imports
//! only from `plan`.
//!
//! - `connection` the SDK clients
//! - `call` every call passes here: deadline, class of failure, counting; `rates` the token buckets
//! - `error` the one table from AWS codes and words to classes
//! - `ledger` the ledger of our own changes, which makes reads after them fresh
//! - [`autoscaling`], [`launch_templates`], [`images`], [`parameters`], [`eks`], [`network`],
//!   [`instance_types`], [`iam`] one adapter per kind of thing, all as methods of [`Connection`]
//! - [`inventory`] the shared snapshot of Auto Scaling groups and launch templates
//! - [`catalogue`] the followed image parameters and images
//! - [`clusters`] the EKS clusters
//! - [`lookups`] long-lived caches for what seldom changes
//! - `keeper`, `coalescer`, `changes` what the stores share: the last known fact by name, bundling reads,
//!   waking followers

mod call;
mod changes;
mod coalescer;
mod connection;
mod error;
mod keeper;
mod ledger;
mod rates;
mod time;

pub mod autoscaling;
pub mod catalogue;
pub mod clusters;
pub mod eks;
pub mod iam;
pub mod images;
pub mod instance_types;
pub mod inventory;
pub mod launch_templates;
pub mod lookups;
pub mod network;
pub mod parameters;
pub mod server_clock;

pub use call::{CallObserver, CallRecord, Service};
pub use connection::{ConnectError, Connection, ConnectionSettings};
pub use rates::{Rate, Rates, ServiceRates};
