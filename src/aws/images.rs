//! Machine images: reads.
//!
//! Owns the call that looks images up. Must not cache; the [`super::catalogue`] does.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{self, Filter};

use super::call::Service;
use super::connection::Connection;
use super::time::timestamp_from_text;
use crate::plan::facts::{Failure, Image};

/// Most images asked for in one call.
pub(super) const IMAGES_A_CALL: usize = 100;

impl Connection {
    /// The images of these ids, a call per 100. An id that does not exist, or that we may not see, is absent
    /// from the answer.
    ///
    /// # Errors
    /// The failure of whichever call failed.
    pub async fn images(&self, ids: &[String]) -> Result<BTreeMap<String, Image>, Failure> {
        let mut images = BTreeMap::new();
        for ids in ids.chunks(IMAGES_A_CALL) {
            // By filter: named as ids, one unknown or malformed id would fail the call for all.
            let filter = Filter::builder()
                .name("image-id")
                .set_values(Some(ids.to_vec()))
                .build();
            let mut token = None;
            loop {
                // No `MaxResults`: EC2 pages only when told to, and 100 images are one page.
                let request = self
                    .ec2()
                    .describe_images()
                    .filters(filter.clone())
                    // EC2 leaves deprecated images out for all but their owner; groups may still run them.
                    .include_deprecated(true)
                    .set_next_token(token)
                    .send();
                let page = self.call(Service::Ec2, "DescribeImages", request).await?;
                images.extend(
                    page.images()
                        .iter()
                        .filter_map(image)
                        .map(|image| (image.id.clone(), image)),
                );
                token = page.next_token.filter(|token| !token.is_empty());
                if token.is_none() {
                    break;
                }
            }
        }
        Ok(images)
    }
}

fn image(image: &types::Image) -> Option<Image> {
    Some(Image {
        id: image.image_id()?.to_owned(),
        name: image.name().unwrap_or_default().to_owned(),
        architecture: image
            .architecture()
            .map(|value| value.as_str().to_owned())
            .unwrap_or_default(),
        state: image.state().map(|value| value.as_str().to_owned()).unwrap_or_default(),
        created_at: image.creation_date().and_then(timestamp_from_text),
        deprecated_at: image.deprecation_time().and_then(timestamp_from_text),
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn an_image_is_read_whole() {
        let answer = types::Image::builder()
            .image_id("ami-1")
            .name("amazon-eks-node-al2023")
            .architecture(types::ArchitectureValues::Arm64)
            .state(types::ImageState::Available)
            .creation_date("2026-11-30T10:00:00.000Z")
            .deprecation_time("2028-11-30T10:00:00.000Z")
            .build();
        let read = image(&answer).unwrap();
        assert_eq!(
            (read.architecture.as_str(), read.state.as_str()),
            ("arm64", "available")
        );
        assert_eq!(read.created_at.unwrap().to_string(), "2026-11-30T10:00:00Z");
        assert!(read.deprecated_at > read.created_at);
    }

    #[test]
    fn times_may_be_missing() {
        let read = image(&types::Image::builder().image_id("ami-1").build()).unwrap();
        assert_eq!((read.created_at, read.deprecated_at), (None, None));
    }
}
