//! Plain values for tests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::plan::facts::{AutoScalingGroup, Cluster, Fact, Image, InstanceProfile, InstanceType, LaunchSource, Subnet};
use crate::plan::launch::LaunchInputs;
use crate::plan::launch::inputs::LaunchMetadata;
use crate::plan::observed::LookUps;

/// The parameter that a group with `latest` follows on the toy cluster.
pub const PARAMETER: &str =
    "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";

/// An Auto Scaling group without anything.
pub fn empty_group() -> AutoScalingGroup {
    AutoScalingGroup {
        name: "demo-team-workers".to_owned(),
        min_size: 0,
        max_size: 0,
        desired_capacity: 0,
        subnets: BTreeSet::new(),
        launch_source: LaunchSource::Other,
        tags: BTreeMap::new(),
        suspended_processes: BTreeSet::new(),
        enabled_metrics: BTreeSet::new(),
        instances: Vec::new(),
        deleting: false,
    }
}

/// Launch inputs with an image.
pub fn inputs(image_id: &str) -> LaunchInputs {
    LaunchInputs {
        image_id: image_id.to_owned(),
        instance_type: "m5.large".to_owned(),
        instance_profile_arn: "arn:aws:iam::1:instance-profile/demo-node".to_owned(),
        security_group_ids: BTreeSet::from(["sg-1".to_owned()]),
        key_name: None,
        user_data: "hello\n".to_owned(),
        volumes: Vec::new(),
        metadata: LaunchMetadata::default(),
        placement: None,
        license_arns: BTreeSet::new(),
        tag_specifications: BTreeMap::new(),
    }
}

/// A usable image; the higher its number, the younger it is.
pub fn image(id: &str) -> Image {
    let number = id.strip_prefix("ami-").and_then(|id| i64::from_str_radix(id, 16).ok());
    let first: Timestamp = "2026-10-01T00:00:00Z".parse().unwrap();
    Image {
        id: id.to_owned(),
        name: format!("node-{id}"),
        architecture: "x86_64".to_owned(),
        state: "available".to_owned(),
        created_at: Some(first + SignedDuration::from_mins(number.unwrap_or_default().min(10_000))),
        deprecated_at: None,
    }
}

/// Look-ups that all succeed.
pub fn look_ups() -> LookUps {
    let zones = ["a", "b", "c"];
    LookUps {
        cluster: Fact::Found(Cluster {
            name: "demo".to_owned(),
            kubernetes_version: "1.33".to_owned(),
            endpoint: "https://api.example".to_owned(),
            certificate_authority: "Q0E=".to_owned(),
            service_cidr: "10.100.0.0/16".to_owned(),
            vpc_id: "vpc-1".to_owned(),
        }),
        profile: Fact::Found(InstanceProfile {
            name: "demo-node".to_owned(),
            arn: "arn:aws:iam::1:instance-profile/demo-node".to_owned(),
            role_arn: Some("arn:aws:iam::1:role/demo-node".to_owned()),
        }),
        instance_type: Fact::Found(InstanceType {
            name: "m5.large".to_owned(),
            architectures: BTreeSet::from(["x86_64".to_owned()]),
            zones: zones.iter().map(|zone| format!("zone-{zone}")).collect(),
        }),
        subnets: zones
            .iter()
            .map(|zone| {
                let id = format!("subnet-{zone}");
                (
                    id.clone(),
                    Fact::Found(Subnet {
                        id,
                        zone: format!("zone-{zone}"),
                    }),
                )
            })
            .collect(),
        security_groups: BTreeMap::from([("nodes".to_owned(), Fact::Found("sg-1".to_owned()))]),
    }
}
