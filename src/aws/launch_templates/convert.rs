//! Launch template types between EC2 and the product.
//!
//! Owns both directions: the versions that EC2 lists, and the launch inputs as EC2 takes them. Must not call.

use aws_sdk_ec2::types;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::aws::time::timestamp;
use crate::plan::facts::{LaunchTemplate, TemplateVersion};
use crate::plan::launch::inputs::{LaunchInputs, LaunchMetadata, LaunchPlacement, LaunchVolume};

/// A version without its inputs.
pub(super) fn version(version: &types::LaunchTemplateVersion) -> Option<TemplateVersion> {
    Some(TemplateVersion {
        number: version.version_number()?,
        description: version.version_description().unwrap_or_default().to_owned(),
        image_id: version
            .launch_template_data()
            .and_then(|data| data.image_id())
            .unwrap_or_default()
            .to_owned(),
        created_at: version
            .create_time()
            .and_then(timestamp)
            .unwrap_or(Timestamp::UNIX_EPOCH),
        inputs: None,
    })
}

/// One line of the list of default versions.
pub(super) fn default_only(listed: &types::LaunchTemplateVersion) -> Option<LaunchTemplate> {
    let default = version(listed)?;
    Some(LaunchTemplate {
        id: listed.launch_template_id()?.to_owned(),
        name: listed.launch_template_name()?.to_owned(),
        default_version: default.number,
        versions: [(default.number, default)].into(),
        complete: false,
    })
}

/// All versions of one template; `None` if none of them is the default.
pub(super) fn whole(listed: &[types::LaunchTemplateVersion]) -> Option<LaunchTemplate> {
    let default = listed.iter().find(|version| version.default_version() == Some(true))?;
    Some(LaunchTemplate {
        id: default.launch_template_id()?.to_owned(),
        name: default.launch_template_name()?.to_owned(),
        default_version: default.version_number()?,
        versions: listed
            .iter()
            .filter_map(version)
            .map(|version| (version.number, version))
            .collect(),
        complete: true,
    })
}

/// The launch inputs as EC2 takes them, user data in base64.
pub(super) fn template_data(inputs: &LaunchInputs) -> types::RequestLaunchTemplateData {
    let profile = types::LaunchTemplateIamInstanceProfileSpecificationRequest::builder()
        .arn(&inputs.instance_profile_arn)
        .build();
    types::RequestLaunchTemplateData::builder()
        .image_id(&inputs.image_id)
        .instance_type(types::InstanceType::from(inputs.instance_type.as_str()))
        .iam_instance_profile(profile)
        .set_security_group_ids(Some(inputs.security_group_ids.iter().cloned().collect()))
        .set_key_name(inputs.key_name.clone())
        .user_data(STANDARD.encode(&inputs.user_data))
        .set_block_device_mappings(some(inputs.volumes.iter().map(volume).collect()))
        .set_metadata_options(metadata(&inputs.metadata))
        .set_placement(inputs.placement.as_ref().map(placement))
        .set_license_specifications(some(inputs.license_arns.iter().map(|arn| license(arn)).collect()))
        .set_tag_specifications(some(tag_specifications(inputs)))
        .build()
}

/// An empty list is left out: EC2 answers an empty parameter with an error.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn volume(volume: &LaunchVolume) -> types::LaunchTemplateBlockDeviceMappingRequest {
    let ebs = types::LaunchTemplateEbsBlockDeviceRequest::builder()
        .volume_type(types::VolumeType::from(volume.volume_type.as_str()))
        .set_volume_size(volume.size_gib)
        .set_iops(volume.iops)
        .set_throughput(volume.throughput)
        .delete_on_termination(volume.delete_on_termination)
        .set_encrypted(volume.encrypted)
        .set_snapshot_id(volume.snapshot_id.clone())
        .build();
    types::LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(&volume.device)
        .ebs(ebs)
        .build()
}

fn metadata(metadata: &LaunchMetadata) -> Option<types::LaunchTemplateInstanceMetadataOptionsRequest> {
    if *metadata == LaunchMetadata::default() {
        return None;
    }
    let request = types::LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .set_http_endpoint(metadata.http_endpoint.as_deref().map(Into::into))
        .set_http_tokens(metadata.http_tokens.as_deref().map(Into::into))
        .set_http_put_response_hop_limit(metadata.http_put_hop_limit)
        .build();
    Some(request)
}

fn placement(placement: &LaunchPlacement) -> types::LaunchTemplatePlacementRequest {
    types::LaunchTemplatePlacementRequest::builder()
        .set_availability_zone(placement.availability_zone.clone())
        .set_host_resource_group_arn(placement.host_resource_group_arn.clone())
        .set_tenancy(placement.tenancy.as_deref().map(Into::into))
        .build()
}

fn license(arn: &str) -> types::LaunchTemplateLicenseConfigurationRequest {
    types::LaunchTemplateLicenseConfigurationRequest::builder()
        .license_configuration_arn(arn)
        .build()
}

fn tag_specifications(inputs: &LaunchInputs) -> Vec<types::LaunchTemplateTagSpecificationRequest> {
    inputs
        .tag_specifications
        .iter()
        .filter(|(_, tags)| !tags.is_empty())
        .map(|(resource, wanted)| {
            types::LaunchTemplateTagSpecificationRequest::builder()
                .resource_type(types::ResourceType::from(resource.as_str()))
                .set_tags(Some(tags(wanted)))
                .build()
        })
        .collect()
}

/// Tags as EC2 takes them.
pub(super) fn tags(wanted: &std::collections::BTreeMap<String, String>) -> Vec<types::Tag> {
    wanted
        .iter()
        .map(|(key, value)| types::Tag::builder().key(key).value(value).build())
        .collect()
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::DateTime;
    use pretty_assertions::assert_eq;

    use super::super::inputs::sample;
    use super::*;

    fn listed(number: i64, default: bool) -> types::LaunchTemplateVersion {
        types::LaunchTemplateVersion::builder()
            .launch_template_id("lt-1")
            .launch_template_name("one")
            .version_number(number)
            .version_description("words")
            .default_version(default)
            .create_time(DateTime::from_secs(1_700_000_000))
            .launch_template_data(
                types::ResponseLaunchTemplateData::builder()
                    .image_id("ami-1")
                    .user_data("c2VjcmV0")
                    .build(),
            )
            .build()
    }

    #[test]
    fn all_versions_make_a_complete_template() {
        let template = whole(&[listed(3, false), listed(2, true)]).unwrap();
        assert_eq!((template.default_version, template.complete), (2, true));
        assert_eq!(template.versions.keys().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(template.versions[&3].image_id, "ami-1");
        assert_eq!(whole(&[listed(3, false)]), None);
    }

    #[test]
    fn a_listed_default_is_incomplete() {
        let template = default_only(&listed(2, true)).unwrap();
        assert_eq!(
            (template.default_version, template.complete, template.versions.len()),
            (2, false, 1)
        );
    }

    #[test]
    fn inputs_are_sent_whole() {
        let sent = template_data(&sample());
        assert_eq!(
            (sent.image_id(), sent.instance_type()),
            (Some("ami-1"), Some(&types::InstanceType::M5Large))
        );
        assert_eq!(sent.security_group_ids(), ["sg-1", "sg-2"]);
        assert_eq!(sent.user_data(), Some("IyEvYmluL3NoCg=="));
        let ebs = sent.block_device_mappings()[0].ebs().unwrap();
        assert_eq!(
            (ebs.volume_size(), ebs.iops(), ebs.throughput()),
            (Some(32), None, Some(125))
        );
        assert_eq!((ebs.delete_on_termination(), ebs.encrypted()), (Some(true), None));
        let options = sent.metadata_options().unwrap();
        assert_eq!(
            options.http_tokens(),
            Some(&types::LaunchTemplateHttpTokensState::Required)
        );
        assert_eq!(
            (options.http_endpoint(), options.http_put_response_hop_limit()),
            (None, None)
        );
        assert_eq!(
            sent.license_specifications()[0].license_configuration_arn(),
            Some("arn:license")
        );
        // An empty tag specification is refused by EC2.
        assert_eq!(sent.tag_specifications().len(), 1);
    }

    #[test]
    fn what_is_absent_is_not_sent() {
        let mut bare = sample();
        bare.metadata = LaunchMetadata::default();
        bare.volumes.clear();
        bare.license_arns.clear();
        bare.tag_specifications.clear();
        let sent = template_data(&bare);
        assert_eq!(sent.metadata_options(), None);
        assert_eq!(sent.placement(), None);
        assert!(sent.block_device_mappings.is_none() && sent.license_specifications.is_none());
        assert!(sent.tag_specifications.is_none());
    }

    #[test]
    fn the_sdk_hides_user_data() {
        assert!(!format!("{:?}", template_data(&sample())).contains("IyEvYmluL3NoCg"));
    }
}
