//! Who may do what: the chart's admission policies and roles, asked of a real API server.
//!
//! Owns people with rights of their own, real service accounts, and the refusals they get. Only `verified` has an operator
//! at work; elsewhere its service account speaks for it. What the definitions themselves refuse is in `crd_rules`.

mod back_doors;
mod chart;
mod collections;
mod deletions;
mod examples;
mod forgeries;
mod gitops;
mod ground;
mod groups;
mod names;
mod namespaces;
mod older_servers;
mod people;
mod races;
mod requests;
mod roles;
mod settings;
mod verified;
