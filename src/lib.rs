//! Sluice: an operator for the worker instance groups of EKS clusters, with a gate on upgrades.
//!
//! The layers, each importing only those before it: `api` (wire types), `plan` (decisions, pure), `fence` (the right to
//! write), `aws` and `cluster` (the outside world), `controllers` (reconciles), `manager` (the composition root).

pub mod admin;
pub mod api;
pub mod aws;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod fence;
pub mod manager;
pub mod metrics;
pub mod plan;
pub mod simulate;
pub mod telemetry;
