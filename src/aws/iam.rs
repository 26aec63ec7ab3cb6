//! IAM instance profiles: reads.
//!
//! Owns the call that looks a profile up. Must not cache; [`super::lookups`] does.

use super::call::Service;
use super::connection::Connection;
use super::error::three_way;
use crate::plan::facts::{Fact, InstanceProfile};

impl Connection {
    /// An instance profile by name or ARN. One without a role is found, with no role in it.
    pub async fn instance_profile(&self, name_or_arn: &str) -> Fact<InstanceProfile> {
        let request = self
            .iam()
            .get_instance_profile()
            .instance_profile_name(profile_name(name_or_arn))
            .send();
        match three_way(self.call(Service::Iam, "GetInstanceProfile", request).await) {
            Fact::Found(answer) => answer.instance_profile().map_or(Fact::NotFound, |profile| {
                Fact::Found(InstanceProfile {
                    name: profile.instance_profile_name().to_owned(),
                    arn: profile.arn().to_owned(),
                    // IAM allows one role in a profile.
                    role_arn: profile.roles().first().map(|role| role.arn().to_owned()),
                })
            }),
            Fact::NotFound => Fact::NotFound,
            Fact::Unknown(failure) => Fact::Unknown(failure),
        }
    }
}

/// The name is the last part of the ARN, after an optional path.
fn profile_name(name_or_arn: &str) -> &str {
    if name_or_arn.starts_with("arn:") {
        name_or_arn.rsplit('/').next().unwrap_or(name_or_arn)
    } else {
        name_or_arn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_are_cut_to_the_name() {
        assert_eq!(profile_name("nodes"), "nodes");
        assert_eq!(profile_name("arn:aws:iam::1:instance-profile/nodes"), "nodes");
        assert_eq!(
            profile_name("arn:aws-cn:iam::1:instance-profile/some/path/nodes"),
            "nodes"
        );
    }
}
