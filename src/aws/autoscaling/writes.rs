//! Auto Scaling groups: changes.
//!
//! Owns the calls that make, change and delete groups. Must not decide; each function does what it says, once.
//! Auto Scaling takes no client tokens: making a group is safe to repeat because its name is unique (class
//! `AlreadyExists`), the others because they set a state. Terminating with a decrement is not.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_autoscaling::Config;
use aws_sdk_autoscaling::config::retry::RetryConfig;
use aws_sdk_autoscaling::types::{LaunchTemplateSpecification, Tag};

use crate::aws::call::Service;
use crate::aws::connection::Connection;
use crate::aws::ledger::Touched;
use crate::plan::facts::{Failure, GroupTag};

/// A group to make. Its desired capacity starts at `min`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    /// Name of the group.
    pub name: String,
    /// Id of its launch template.
    pub template_id: String,
    /// Number of the template's version that it boots.
    pub version: i64,
    /// Lower bound of the size, in instances.
    pub min: i32,
    /// Upper bound of the size, in instances.
    pub max: i32,
    /// Ids of its subnets.
    pub subnets: BTreeSet<String>,
    /// Tags by key.
    pub tags: BTreeMap<String, GroupTag>,
}

/// What to change in a group; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Lower bound of the size, in instances.
    pub min: Option<i32>,
    /// Upper bound of the size, in instances.
    pub max: Option<i32>,
    /// Ids of its subnets, all of them.
    pub subnets: Option<BTreeSet<String>>,
    /// Template id and version number that it boots; always a number, so that it holds still.
    pub pin: Option<(String, i64)>,
}

fn joined(subnets: &BTreeSet<String>) -> String {
    subnets.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

fn specification(template_id: &str, version: i64) -> LaunchTemplateSpecification {
    LaunchTemplateSpecification::builder()
        .launch_template_id(template_id)
        .version(version.to_string())
        .build()
}

/// Tags name their resource one by one in this API.
fn tag(group: &str, key: &str) -> aws_sdk_autoscaling::types::builders::TagBuilder {
    Tag::builder()
        .resource_id(group)
        .resource_type("auto-scaling-group")
        .key(key)
}

fn tags(group: &str, tags: &BTreeMap<String, GroupTag>) -> Vec<Tag> {
    tags.iter()
        .map(|(key, wanted)| {
            tag(group, key)
                .value(&wanted.value)
                .propagate_at_launch(wanted.propagate)
                .build()
        })
        .collect()
}

/// Makes one call that changes the named group, and marks the group.
macro_rules! change {
    ($self:ident, $begin:ident, $name:expr, $action:literal, $request:expr) => {{
        let write = $self.ledger().$begin(vec![Touched::Group($name.to_owned())]);
        let answer = $self.call(Service::AutoScaling, $action, $request).await;
        write.end(answer.as_ref().err().map(|failure: &Failure| failure.class));
        answer.map(drop)
    }};
}

impl Connection {
    /// Makes a group.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, `Busy` if a group of that name is still being deleted.
    pub async fn create_group(&self, group: &NewGroup) -> Result<(), Failure> {
        let request = self
            .autoscaling()
            .create_auto_scaling_group()
            .auto_scaling_group_name(&group.name)
            .launch_template(specification(&group.template_id, group.version))
            .min_size(group.min)
            .max_size(group.max)
            .desired_capacity(group.min)
            .vpc_zone_identifier(joined(&group.subnets))
            .set_tags(Some(tags(&group.name, &group.tags)))
            .send();
        change!(self, begin_create, &group.name, "CreateAutoScalingGroup", request)
    }

    /// Changes bounds, subnets or the pinned version.
    ///
    /// # Errors
    /// The failure of the call.
    pub async fn update_group(&self, name: &str, change: &GroupChange) -> Result<(), Failure> {
        let template = change.pin.as_ref().map(|(id, version)| specification(id, *version));
        let request = self
            .autoscaling()
            .update_auto_scaling_group()
            .auto_scaling_group_name(name)
            .set_launch_template(template)
            .set_min_size(change.min)
            .set_max_size(change.max)
            .set_vpc_zone_identifier(change.subnets.as_ref().map(joined))
            .send();
        change!(self, begin, name, "UpdateAutoScalingGroup", request)
    }

    /// Sets tags; others stay.
    ///
    /// # Errors
    /// The failure of the call.
    pub async fn put_group_tags(&self, name: &str, wanted: &BTreeMap<String, GroupTag>) -> Result<(), Failure> {
        if wanted.is_empty() {
            return Ok(());
        }
        let request = self
            .autoscaling()
            .create_or_update_tags()
            .set_tags(Some(tags(name, wanted)))
            .send();
        change!(self, begin, name, "CreateOrUpdateTags", request)
    }

    /// Removes tags by key.
    ///
    /// # Errors
    /// The failure of the call; a key that is not there is none.
    pub async fn delete_group_tags(&self, name: &str, keys: &BTreeSet<String>) -> Result<(), Failure> {
        if keys.is_empty() {
            return Ok(());
        }
        let unwanted = keys.iter().map(|key| tag(name, key).build()).collect();
        let request = self.autoscaling().delete_tags().set_tags(Some(unwanted)).send();
        change!(self, begin, name, "DeleteTags", request)
    }

    /// Suspends processes by name.
    ///
    /// # Errors
    /// The failure of the call.
    pub async fn suspend_processes(&self, name: &str, processes: &BTreeSet<String>) -> Result<(), Failure> {
        // No names would mean all processes.
        if processes.is_empty() {
            return Ok(());
        }
        let request = self
            .autoscaling()
            .suspend_processes()
            .auto_scaling_group_name(name)
            .set_scaling_processes(Some(processes.iter().cloned().collect()))
            .send();
        change!(self, begin, name, "SuspendProcesses", request)
    }

    /// Resumes processes by name.
    ///
    /// # Errors
    /// The failure of the call.
    pub async fn resume_processes(&self, name: &str, processes: &BTreeSet<String>) -> Result<(), Failure> {
        // No names would mean all processes, also those that a person suspended.
        if processes.is_empty() {
            return Ok(());
        }
        let request = self
            .autoscaling()
            .resume_processes()
            .auto_scaling_group_name(name)
            .set_scaling_processes(Some(processes.iter().cloned().collect()))
            .send();
        change!(self, begin, name, "ResumeProcesses", request)
    }

    /// Turns group metrics on, one point a minute.
    ///
    /// # Errors
    /// The failure of the call.
    pub async fn enable_metrics(&self, name: &str, metrics: &BTreeSet<String>) -> Result<(), Failure> {
        if metrics.is_empty() {
            return Ok(());
        }
        let request = self
            .autoscaling()
            .enable_metrics_collection()
            .auto_scaling_group_name(name)
            .granularity("1Minute")
            .set_metrics(Some(metrics.iter().cloned().collect()))
            .send();
        change!(self, begin, name, "EnableMetricsCollection", request)
    }

    /// Turns group metrics off.
    ///
    /// # Errors
    /// The failure of the call.
    pub async fn disable_metrics(&self, name: &str, metrics: &BTreeSet<String>) -> Result<(), Failure> {
        if metrics.is_empty() {
            return Ok(());
        }
        let request = self
            .autoscaling()
            .disable_metrics_collection()
            .auto_scaling_group_name(name)
            .set_metrics(Some(metrics.iter().cloned().collect()))
            .send();
        change!(self, begin, name, "DisableMetricsCollection", request)
    }

    /// Terminates one instance of a group. `decrement` also lowers the desired capacity by one; such a call is
    /// sent once, and must not be repeated before the group was read again.
    ///
    /// # Errors
    /// `NotFound` if no group has the instance, `Busy` while the group is in another activity.
    pub async fn terminate_instance(&self, group: &str, instance_id: &str, decrement: bool) -> Result<(), Failure> {
        let request = self
            .autoscaling()
            .terminate_instance_in_auto_scaling_group()
            .instance_id(instance_id)
            .should_decrement_desired_capacity(decrement)
            .customize();
        // The SDK would send it again after a lost answer, and nothing says that the size is lowered only once.
        let once = Config::builder().retry_config(RetryConfig::disabled());
        let request = if decrement {
            request.config_override(once)
        } else {
            request
        }
        .send();
        change!(self, begin, group, "TerminateInstanceInAutoScalingGroup", request)
    }

    /// Deletes a group. `force` takes its instances along; without it the service refuses while there are any.
    ///
    /// # Errors
    /// `NotFound` if it is gone, `Busy` while it has instances or activities.
    pub async fn delete_group(&self, name: &str, force: bool) -> Result<(), Failure> {
        let request = self
            .autoscaling()
            .delete_auto_scaling_group()
            .auto_scaling_group_name(name)
            .force_delete(force)
            .send();
        change!(self, begin_delete, name, "DeleteAutoScalingGroup", request)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn tags_name_their_group() {
        let wanted = [(
            "k".to_owned(),
            GroupTag {
                value: "v".into(),
                propagate: true,
            },
        )]
        .into();
        let sent = tags("a", &wanted);
        assert_eq!(sent[0].resource_id(), Some("a"));
        assert_eq!(sent[0].resource_type(), Some("auto-scaling-group"));
        assert_eq!(
            (sent[0].key(), sent[0].value(), sent[0].propagate_at_launch()),
            (Some("k"), Some("v"), Some(true))
        );
    }

    #[test]
    fn the_version_goes_out_as_a_number() {
        let sent = specification("lt-1", 3);
        assert_eq!((sent.launch_template_id(), sent.version()), (Some("lt-1"), Some("3")));
        assert_eq!(sent.launch_template_name(), None);
    }

    #[test]
    fn subnets_are_joined_in_order() {
        assert_eq!(
            joined(&["subnet-b".to_owned(), "subnet-a".to_owned()].into()),
            "subnet-a,subnet-b"
        );
    }
}
