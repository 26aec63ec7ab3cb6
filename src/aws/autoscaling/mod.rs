//! Auto Scaling groups: reads.
//!
//! Owns the calls that read groups, their instances and their failed activities. Must not cache; the
//! [`super::inventory`] does. Changes are in [`writes`].

use aws_sdk_autoscaling::types::{Filter, ScalingActivityStatusCode};

use super::call::Service;
use super::connection::Connection;
use super::error::failure;
use super::time::timestamp;
use crate::plan::facts::{AutoScalingGroup, FailedActivity, Failure, FailureClass};

mod convert;
pub mod writes;

pub use writes::{GroupChange, NewGroup};

/// The tag that says which cluster a group belongs to.
const CLUSTER_TAG: &str = "instancegroups.keikoproj.io/ClusterName";

/// Most groups in one answer, and most names in one question. Without `MaxRecords` the service takes 50.
pub(super) const GROUPS_A_CALL: usize = 100;
const GROUPS_A_PAGE: i32 = 100;

/// How far back failed activities are searched, in activities: one page.
const ACTIVITIES: i32 = 20;

impl Connection {
    /// All groups tagged with one of these cluster names, a call per 100 groups.
    ///
    /// # Errors
    /// The failure of whichever page failed: half a list would read as deleted groups.
    pub async fn list_groups(&self, cluster_names: &[String]) -> Result<Vec<AutoScalingGroup>, Failure> {
        let filter = Filter::builder()
            .name(format!("tag:{CLUSTER_TAG}"))
            .set_values(Some(cluster_names.to_vec()))
            .build();
        let mut groups = Vec::new();
        let mut token = None;
        loop {
            let request = self
                .autoscaling()
                .describe_auto_scaling_groups()
                .filters(filter.clone())
                .max_records(GROUPS_A_PAGE)
                .set_next_token(token)
                .send();
            let page = self
                .call(Service::AutoScaling, "DescribeAutoScalingGroups", request)
                .await?;
            groups.extend(page.auto_scaling_groups().iter().map(convert::group));
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(groups);
            }
        }
    }

    /// The groups of these names, at most 100. Those that do not exist are absent from the answer: naming a
    /// missing group is no error to this action.
    ///
    /// # Errors
    /// The failure of the call, or class `Invalid` for more than 100 names.
    pub async fn groups_named(&self, names: &[String]) -> Result<Vec<AutoScalingGroup>, Failure> {
        const ACTION: &str = "DescribeAutoScalingGroups";
        // No names would mean all groups of the account.
        if names.is_empty() {
            return Ok(Vec::new());
        }
        if names.len() > GROUPS_A_CALL {
            let message = "at most 100 names fit in one call";
            return Err(failure(
                Service::AutoScaling,
                ACTION,
                FailureClass::Invalid,
                None,
                message,
            ));
        }
        let mut groups = Vec::new();
        let mut token = None;
        loop {
            let request = self
                .autoscaling()
                .describe_auto_scaling_groups()
                .set_auto_scaling_group_names(Some(names.to_vec()))
                .max_records(GROUPS_A_PAGE)
                .set_next_token(token)
                .send();
            let page = self.call(Service::AutoScaling, ACTION, request).await?;
            groups.extend(page.auto_scaling_groups().iter().map(convert::group));
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(groups);
            }
        }
    }

    /// The latest failed scaling activity among the group's last 20. `None` if none failed, also if a later
    /// one succeeded: then the reason no longer holds.
    ///
    /// # Errors
    /// The failure of the call; a group that does not exist has no activities and is no error.
    pub async fn latest_failed_activity(&self, group: &str) -> Result<Option<FailedActivity>, Failure> {
        let request = self
            .autoscaling()
            .describe_scaling_activities()
            .auto_scaling_group_name(group)
            .max_records(ACTIVITIES)
            .send();
        let answer = self
            .call(Service::AutoScaling, "DescribeScalingActivities", request)
            .await;
        let activities = match answer {
            Ok(answer) => answer.activities.unwrap_or_default(),
            Err(failure) if failure.class == FailureClass::NotFound => return Ok(None),
            Err(failure) => return Err(failure),
        };
        Ok(latest_failure(&activities))
    }
}

/// The service lists the newest first; activities under way say nothing yet.
fn latest_failure(activities: &[aws_sdk_autoscaling::types::Activity]) -> Option<FailedActivity> {
    let ended = activities.iter().find(|activity| {
        matches!(
            activity.status_code(),
            Some(
                ScalingActivityStatusCode::Failed
                    | ScalingActivityStatusCode::Cancelled
                    | ScalingActivityStatusCode::Successful
            )
        )
    })?;
    if ended.status_code() == Some(&ScalingActivityStatusCode::Successful) {
        return None;
    }
    Some(FailedActivity {
        at: ended.start_time().and_then(timestamp)?,
        message: ended
            .status_message()
            .or(ended.description())
            .unwrap_or_default()
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use ScalingActivityStatusCode as Code;
    use aws_sdk_autoscaling::types::Activity;
    use aws_smithy_types::DateTime;
    use pretty_assertions::assert_eq;

    use super::*;

    fn activity(code: Code, message: &str) -> Activity {
        Activity::builder()
            .status_code(code)
            .status_message(message)
            .start_time(DateTime::from_secs(1_700_000_000))
            .build()
    }

    fn words(activities: &[Activity]) -> Option<String> {
        latest_failure(activities).map(|failed| failed.message)
    }

    #[test]
    fn the_newest_ended_activity_decides() {
        let failed = activity(Code::Failed, "quota");
        let running = activity(Code::InProgress, "");
        let good = activity(Code::Successful, "");
        assert_eq!(words(&[running, failed.clone()]), Some("quota".into()));
        assert_eq!(words(&[good, failed]), None);
        assert_eq!(words(&[]), None);
    }
}
