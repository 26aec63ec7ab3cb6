//! Launch inputs as a template version holds them.
//!
//! Owns the way back: from what EC2 stores to the product's launch inputs. Must not call. What the inputs have
//! no word for (network interfaces, market options) is left out; only a template that others made has it.

use std::collections::BTreeMap;

use aws_sdk_ec2::types;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::convert;
use crate::plan::facts::TemplateVersion;
use crate::plan::launch::inputs::{LaunchInputs, LaunchMetadata, LaunchPlacement, LaunchVolume};

/// A version with its inputs.
pub(super) fn version_with_inputs(listed: &types::LaunchTemplateVersion) -> Option<TemplateVersion> {
    let inputs = inputs(listed.launch_template_data()?);
    Some(TemplateVersion {
        inputs: Some(Box::new(inputs)),
        ..convert::version(listed)?
    })
}

fn inputs(data: &types::ResponseLaunchTemplateData) -> LaunchInputs {
    let profile = data.iam_instance_profile();
    let mut volumes: Vec<LaunchVolume> = data.block_device_mappings().iter().map(volume).collect();
    volumes.sort_by(|left, right| left.device.cmp(&right.device));
    LaunchInputs {
        image_id: text(data.image_id()),
        instance_type: data
            .instance_type()
            .map(|name| name.as_str().to_owned())
            .unwrap_or_default(),
        instance_profile_arn: text(profile.and_then(|profile| profile.arn().or(profile.name()))),
        security_group_ids: data.security_group_ids().iter().cloned().collect(),
        key_name: data.key_name().map(str::to_owned),
        user_data: user_data(data.user_data().unwrap_or_default()),
        volumes,
        metadata: data.metadata_options().map(metadata).unwrap_or_default(),
        placement: data.placement().map(placement),
        license_arns: data
            .license_specifications()
            .iter()
            .filter_map(|license| license.license_configuration_arn().map(str::to_owned))
            .collect(),
        tag_specifications: data.tag_specifications().iter().map(tags).collect(),
    }
}

/// Text that is no base64, or not text underneath, is kept as EC2 holds it: it is only compared and counted.
fn user_data(encoded: &str) -> String {
    let decoded = STANDARD
        .decode(encoded)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_else(|| encoded.to_owned())
}

fn volume(mapping: &types::LaunchTemplateBlockDeviceMapping) -> LaunchVolume {
    let ebs = mapping.ebs();
    LaunchVolume {
        device: text(mapping.device_name()),
        volume_type: ebs
            .and_then(|ebs| ebs.volume_type())
            .map(|volume_type| volume_type.as_str().to_owned())
            .unwrap_or_default(),
        size_gib: ebs.and_then(types::LaunchTemplateEbsBlockDevice::volume_size),
        iops: ebs.and_then(types::LaunchTemplateEbsBlockDevice::iops),
        throughput: ebs.and_then(types::LaunchTemplateEbsBlockDevice::throughput),
        delete_on_termination: ebs
            .and_then(types::LaunchTemplateEbsBlockDevice::delete_on_termination)
            .unwrap_or_default(),
        encrypted: ebs.and_then(types::LaunchTemplateEbsBlockDevice::encrypted),
        snapshot_id: ebs.and_then(|ebs| ebs.snapshot_id()).map(str::to_owned),
    }
}

fn metadata(options: &types::LaunchTemplateInstanceMetadataOptions) -> LaunchMetadata {
    LaunchMetadata {
        http_endpoint: options.http_endpoint().map(|value| value.as_str().to_owned()),
        http_tokens: options.http_tokens().map(|value| value.as_str().to_owned()),
        http_put_hop_limit: options.http_put_response_hop_limit(),
    }
}

fn placement(placement: &types::LaunchTemplatePlacement) -> LaunchPlacement {
    LaunchPlacement {
        availability_zone: placement.availability_zone().map(str::to_owned),
        host_resource_group_arn: placement.host_resource_group_arn().map(str::to_owned),
        tenancy: placement.tenancy().map(|tenancy| tenancy.as_str().to_owned()),
    }
}

fn tags(specification: &types::LaunchTemplateTagSpecification) -> (String, BTreeMap<String, String>) {
    let resource = specification
        .resource_type()
        .map(|resource| resource.as_str().to_owned())
        .unwrap_or_default();
    let tags = specification
        .tags()
        .iter()
        .map(|tag| (text(tag.key()), text(tag.value())))
        .collect();
    (resource, tags)
}

fn text(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

#[cfg(test)]
pub(super) fn sample() -> LaunchInputs {
    LaunchInputs {
        image_id: "ami-1".into(),
        instance_type: "m5.large".into(),
        instance_profile_arn: "arn:aws:iam::1:instance-profile/p".into(),
        security_group_ids: ["sg-2".to_owned(), "sg-1".to_owned()].into(),
        key_name: None,
        user_data: "#!/bin/sh\n".into(),
        volumes: vec![LaunchVolume {
            device: "/dev/xvda".into(),
            volume_type: "gp3".into(),
            size_gib: Some(32),
            iops: None,
            throughput: Some(125),
            delete_on_termination: true,
            encrypted: None,
            snapshot_id: None,
        }],
        metadata: LaunchMetadata {
            http_tokens: Some("required".into()),
            ..LaunchMetadata::default()
        },
        placement: None,
        license_arns: ["arn:license".to_owned()].into(),
        tag_specifications: [
            (
                "instance".to_owned(),
                BTreeMap::from([("k".to_owned(), "v".to_owned())]),
            ),
            ("volume".to_owned(), BTreeMap::new()),
        ]
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// What EC2 stores of a request; the two shapes have the same words.
    fn stored(sent: &types::RequestLaunchTemplateData) -> types::ResponseLaunchTemplateData {
        let sent_volume = &sent.block_device_mappings()[0];
        let sent_ebs = sent_volume.ebs().unwrap();
        let ebs = types::LaunchTemplateEbsBlockDevice::builder()
            .set_volume_type(sent_ebs.volume_type().cloned())
            .set_volume_size(sent_ebs.volume_size())
            .set_throughput(sent_ebs.throughput())
            .set_delete_on_termination(sent_ebs.delete_on_termination())
            .build();
        let mapping = types::LaunchTemplateBlockDeviceMapping::builder()
            .set_device_name(sent_volume.device_name().map(Into::into))
            .ebs(ebs)
            .build();
        let profile = types::LaunchTemplateIamInstanceProfileSpecification::builder()
            .set_arn(
                sent.iam_instance_profile()
                    .and_then(|profile| profile.arn())
                    .map(Into::into),
            )
            .build();
        let options = types::LaunchTemplateInstanceMetadataOptions::builder()
            .set_http_tokens(
                sent.metadata_options()
                    .and_then(|options| options.http_tokens())
                    .cloned(),
            )
            .build();
        let license = sent.license_specifications()[0].license_configuration_arn().unwrap();
        let tags = types::LaunchTemplateTagSpecification::builder()
            .set_resource_type(sent.tag_specifications()[0].resource_type().cloned())
            .set_tags(Some(sent.tag_specifications()[0].tags().to_vec()))
            .build();
        types::ResponseLaunchTemplateData::builder()
            .set_image_id(sent.image_id().map(Into::into))
            .set_instance_type(sent.instance_type().cloned())
            .iam_instance_profile(profile)
            .set_security_group_ids(Some(sent.security_group_ids().to_vec()))
            .set_user_data(sent.user_data().map(Into::into))
            .block_device_mappings(mapping)
            .metadata_options(options)
            .license_specifications(
                types::LaunchTemplateLicenseConfiguration::builder()
                    .license_configuration_arn(license)
                    .build(),
            )
            .tag_specifications(tags)
            .build()
    }

    #[test]
    fn what_was_sent_is_read_back() {
        let mut sent = sample();
        // An empty tag specification is not sent.
        sent.tag_specifications.remove("volume");
        let read = inputs(&stored(&convert::template_data(&sent)));
        assert_eq!(read.user_data, sent.user_data);
        assert_eq!(read, sent);
    }

    #[test]
    fn user_data_that_is_no_text_is_kept_as_it_is() {
        assert_eq!(user_data("not base64!"), "not base64!");
        assert_eq!(user_data("/w=="), "/w==");
    }
}
