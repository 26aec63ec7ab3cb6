//! Sluice: an operator for the worker instance groups of EKS clusters, with a gate on upgrades.
//!
//! The layers, each importing only those before it: `api` (wire types), `plan` (decisions, pure), `fence` (the right to
//! write), `aws` and `cluster` (the outside world), `controllers` (reconciles), `manager` (the composition root); above them `settings_command`, which runs no operator.

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
pub mod settings_command;
pub mod simulate;
pub mod telemetry;
