//! Instances that we terminated, until AWS shows it.
//!
//! Owns the memory of our own terminations. Auto Scaling's reads lag its writes by seconds: an instance on its way out can
//! still be listed as in service, and counting on it would take a second node while the first is going. Must not decide
//! anything; after a restart the list starts empty.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::plan::facts::AutoScalingGroup;

/// How long a termination is remembered; by then AWS has shown it or will not.
const REMEMBERED: Duration = Duration::from_mins(10);

/// Our own terminations.
#[derive(Debug, Default)]
pub struct Terminations {
    by_instance: Mutex<HashMap<String, Instant>>,
}

impl Terminations {
    /// Remembers a termination that AWS accepted.
    pub fn terminated(&self, instance_id: &str) {
        let mut instances = self.lock();
        instances.retain(|_, at| at.elapsed() < REMEMBERED);
        instances.insert(instance_id.to_owned(), Instant::now());
    }

    /// Shows the terminated instances of a group as what they are.
    pub fn show(&self, group: &mut AutoScalingGroup) {
        let instances = self.lock();
        for instance in &mut group.instances {
            if instances.contains_key(&instance.id) && !instance.terminating() {
                "Terminating".clone_into(&mut instance.lifecycle_state);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::facts::{Instance, LaunchSource};

    #[test]
    fn a_stale_answer_does_not_bring_a_terminated_instance_back() {
        let instance = |id: &str, state: &str| Instance {
            id: id.to_owned(),
            zone: String::new(),
            lifecycle_state: state.to_owned(),
            healthy: true,
            template_id: None,
            template_version: None,
        };
        let mut group = AutoScalingGroup {
            name: "group".to_owned(),
            min_size: 2,
            max_size: 2,
            desired_capacity: 2,
            subnets: [].into(),
            launch_source: LaunchSource::Other,
            tags: [].into(),
            suspended_processes: [].into(),
            enabled_metrics: [].into(),
            instances: vec![
                instance("i-1", "InService"),
                instance("i-2", "InService"),
                instance("i-3", "Terminating:Wait"),
            ],
            deleting: false,
        };
        let terminations = Terminations::default();
        terminations.terminated("i-1");
        terminations.terminated("i-3");
        terminations.show(&mut group);
        let states: Vec<&str> = group
            .instances
            .iter()
            .map(|instance| instance.lifecycle_state.as_str())
            .collect();
        assert_eq!(states, ["Terminating", "InService", "Terminating:Wait"]);
    }
}
