//! The Kubernetes side of the outside world.
//!
//! Owns watches and their stores, narrow writes, Events, the Lease, and the class of each failure. Must not decide anything.
//! Every call has a deadline; every write is conditional on what was read, and passes the fence.

pub mod approvals;
pub mod budgets;
pub mod call;
pub mod events;
pub mod evictions;
pub mod evidence;
pub mod groups;
pub mod lease;
pub mod node_writes;
pub mod nodes;
pub mod own_writes;
pub mod pods;
pub mod policies;
pub mod requests;
pub mod settings;
pub mod stores;
