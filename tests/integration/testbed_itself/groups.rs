//! Groups for the proofs of the testbed, made through AWS as the operator would. It must not prove anything.

use anyhow::Result;
use aws_sdk_autoscaling::types::LaunchTemplateSpecification;
use aws_sdk_ec2::types::RequestLaunchTemplateData;

use crate::testbed::{Aws, Seed};

/// A launch template of this image and a group of so many instances.
pub async fn make_group(aws: &Aws, seed: &Seed, name: &str, image: &str, size: i32) -> Result<()> {
    let sdk = aws.sdk_config();
    let data = RequestLaunchTemplateData::builder()
        .image_id(image)
        .instance_type("m5.large".into())
        .build();
    let ec2 = aws_sdk_ec2::Client::new(&sdk);
    ec2.create_launch_template()
        .launch_template_name(name)
        .launch_template_data(data)
        .send()
        .await?;
    let template = LaunchTemplateSpecification::builder()
        .launch_template_name(name)
        .version("1")
        .build();
    aws_sdk_autoscaling::Client::new(&sdk)
        .create_auto_scaling_group()
        .auto_scaling_group_name(name)
        .launch_template(template)
        .min_size(0)
        .max_size(5)
        .desired_capacity(size)
        .vpc_zone_identifier(seed.subnet_ids.join(","))
        .send()
        .await?;
    Ok(())
}
