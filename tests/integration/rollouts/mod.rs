//! Rollouts on real parts: pods that live on the nodes, disruption budgets, the operator under its own rights.
//!
//! Owns what the pure rules cannot show: real evictions, the order of calls, what is left on nodes. Verdicts come from the
//! audit log, the API server and the counted AWS calls; the operator's words count only where they are what is tested.

mod bad_image;
mod budgets;
mod by_hand;
mod capacity;
mod drains;
mod failing;
mod for_good;
mod line;
mod own_node;
mod restarts;
mod scene;
mod slots;
