//! The controllers: each observes, plans, applies and reports.
//!
//! Owns the folder layout: every controller has the same four files. The controllers share nothing but the API objects.
//! Must not hold decisions; they are in `plan`.

pub mod auto_approver;
pub mod backoff;
pub mod instance_group;
pub mod settings;
pub mod unreadable;
