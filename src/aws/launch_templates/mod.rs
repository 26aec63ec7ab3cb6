//! Launch templates: reads.
//!
//! Owns the calls that read templates and their versions. Must not cache; the [`super::inventory`] does. The
//! user data in the answers is dropped at once. Changes are in [`writes`].

use aws_sdk_ec2::operation::describe_launch_template_versions::builders::DescribeLaunchTemplateVersionsFluentBuilder;
use aws_sdk_ec2::types::LaunchTemplateVersion;

use super::call::Service;
use super::connection::Connection;
use super::error::three_way;
use crate::plan::facts::{Fact, Failure, FailureClass, LaunchTemplate, TemplateVersion};

mod convert;
mod inputs;
pub mod writes;

pub use writes::{CreatedVersion, NewTemplate};

/// Most versions in one answer.
const VERSIONS_A_PAGE: i32 = 200;

const ACTION: &str = "DescribeLaunchTemplateVersions";

impl Connection {
    /// The default version of every template of the account and region, a call per 200 templates. The
    /// templates' other versions are not in the answer (`complete` is false).
    ///
    /// # Errors
    /// The failure of whichever page failed: half a list would read as deleted templates.
    pub async fn default_versions(&self) -> Result<Vec<LaunchTemplate>, Failure> {
        // Without a template this action takes only `$Default` and `$Latest` and lists across all templates.
        let request = self.ec2().describe_launch_template_versions().versions("$Default");
        let versions = self.all_pages(request).await?;
        Ok(versions.iter().filter_map(convert::default_only).collect())
    }

    /// A template with all its versions, by name.
    pub async fn template_named(&self, name: &str) -> Fact<LaunchTemplate> {
        let request = self
            .ec2()
            .describe_launch_template_versions()
            .launch_template_name(name);
        self.template_with_versions(request).await
    }

    /// A template with all its versions, by id.
    pub async fn template_by_id(&self, id: &str) -> Fact<LaunchTemplate> {
        let request = self.ec2().describe_launch_template_versions().launch_template_id(id);
        self.template_with_versions(request).await
    }

    /// One version of a template with what it gives a new node. Not cached: it carries user data, and is asked
    /// for only to show what would change.
    pub async fn template_version(&self, template_id: &str, number: i64) -> Fact<TemplateVersion> {
        let request = self
            .ec2()
            .describe_launch_template_versions()
            .launch_template_id(template_id)
            .versions(number.to_string())
            .send();
        match three_way(self.call(Service::Ec2, ACTION, request).await) {
            // EC2 leaves a version that does not exist out of an answer that is otherwise a success.
            Fact::Found(answer) => {
                let versions = answer.launch_template_versions();
                let found = versions.iter().find(|version| version.version_number() == Some(number));
                found
                    .and_then(inputs::version_with_inputs)
                    .map_or(Fact::NotFound, Fact::Found)
            }
            Fact::NotFound => Fact::NotFound,
            Fact::Unknown(failure) => Fact::Unknown(failure),
        }
    }

    async fn template_with_versions(
        &self,
        request: DescribeLaunchTemplateVersionsFluentBuilder,
    ) -> Fact<LaunchTemplate> {
        match three_way(self.all_pages(request).await) {
            Fact::Found(versions) => convert::whole(&versions).map_or_else(
                // A template always has a default version; an answer without one was read while it changed.
                || {
                    let message = "the answer names no default version";
                    let failure = super::error::failure(Service::Ec2, ACTION, FailureClass::Lagging, None, message);
                    Fact::Unknown(failure)
                },
                Fact::Found,
            ),
            Fact::NotFound => Fact::NotFound,
            Fact::Unknown(failure) => Fact::Unknown(failure),
        }
    }

    async fn all_pages(
        &self,
        request: DescribeLaunchTemplateVersionsFluentBuilder,
    ) -> Result<Vec<LaunchTemplateVersion>, Failure> {
        let mut versions = Vec::new();
        let mut token = None;
        loop {
            let page = request
                .clone()
                .max_results(VERSIONS_A_PAGE)
                .set_next_token(token)
                .send();
            let page = self.call(Service::Ec2, ACTION, page).await?;
            versions.extend(page.launch_template_versions.unwrap_or_default());
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(versions);
            }
        }
    }
}
