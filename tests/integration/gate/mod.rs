//! The gate on real parts: the API server, the operator under its own rights, the simulated AWS.
//!
//! Owns what the pure plan cannot show: conditional writes, watches, real answers of AWS.

mod by_hand;
pub mod ground;
mod rest;
mod story;
mod trouble;
