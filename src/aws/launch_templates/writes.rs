//! Launch templates: changes.
//!
//! Owns the calls that make and delete templates and versions. Must not decide. Making is idempotent by the
//! client token that the caller derives from what it wants: EC2 answers a repeated token with the first result,
//! and the same token with other parameters with `IdempotentParameterMismatch` (class `Invalid`).

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{LaunchTemplateErrorCode, ResourceType, TagSpecification};

use super::convert;
use crate::aws::call::Service;
use crate::aws::connection::Connection;
use crate::aws::error::failure;
use crate::aws::ledger::Touched;
use crate::plan::facts::{Failure, FailureClass};
use crate::plan::launch::inputs::LaunchInputs;

/// Most versions that one call deletes.
const DELETED_A_CALL: usize = 200;

/// A template to make, with its first version.
#[derive(Clone, Debug)]
pub struct NewTemplate<'a> {
    /// Template name.
    pub name: String,
    /// Description of the first version, at most 255 characters.
    pub description: String,
    /// Client token, at most 128 characters.
    pub client_token: String,
    /// What a node gets.
    pub inputs: &'a LaunchInputs,
    /// Tags of the template itself, by key.
    pub tags: BTreeMap<String, String>,
}

/// A template version that was made, or that the same client token had made before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedVersion {
    /// Template id, `lt-...`.
    pub template_id: String,
    /// Template name.
    pub template_name: String,
    /// Number of the version.
    pub number: i64,
}

fn incomplete(action: &str) -> Failure {
    let message = "the answer lacks the template's id or the version's number";
    failure(Service::Ec2, action, FailureClass::Unclassified, None, message)
}

impl Connection {
    /// Makes a template; its first version is its default.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken (by another token), `Invalid` if the token was used for other
    /// inputs.
    pub async fn create_launch_template(&self, new: &NewTemplate<'_>) -> Result<CreatedVersion, Failure> {
        const ACTION: &str = "CreateLaunchTemplate";
        let tags = (!new.tags.is_empty()).then(|| {
            TagSpecification::builder()
                .resource_type(ResourceType::LaunchTemplate)
                .set_tags(Some(convert::tags(&new.tags)))
                .build()
        });
        let request = self
            .ec2()
            .create_launch_template()
            .launch_template_name(&new.name)
            .version_description(&new.description)
            .client_token(&new.client_token)
            .launch_template_data(convert::template_data(new.inputs))
            .set_tag_specifications(tags.map(|tags| vec![tags]))
            .send();
        let mut write = self.ledger().begin_create(vec![Touched::Template(new.name.clone())]);
        let answer = self.call(Service::Ec2, ACTION, request).await;
        let created = answer.and_then(|answer| {
            let template = answer.launch_template().ok_or_else(|| incomplete(ACTION))?;
            Ok(CreatedVersion {
                template_id: template
                    .launch_template_id()
                    .ok_or_else(|| incomplete(ACTION))?
                    .to_owned(),
                template_name: new.name.clone(),
                number: template.latest_version_number().unwrap_or(1),
            })
        });
        if let Ok(created) = &created {
            write.also(Touched::Template(created.template_id.clone()));
            self.ledger().version_made(&created.template_id, created.number);
        }
        write.end(created.as_ref().err().map(|failure| failure.class));
        created
    }

    /// Makes a new version of a template. It does not become the default.
    ///
    /// # Errors
    /// `NotFound` if the template is gone, `Invalid` if the token was used for other inputs.
    pub async fn create_template_version(
        &self,
        template_id: &str,
        description: &str,
        client_token: &str,
        inputs: &LaunchInputs,
    ) -> Result<CreatedVersion, Failure> {
        const ACTION: &str = "CreateLaunchTemplateVersion";
        let request = self
            .ec2()
            .create_launch_template_version()
            .launch_template_id(template_id)
            .version_description(description)
            .client_token(client_token)
            .launch_template_data(convert::template_data(inputs))
            .send();
        let write = self.ledger().begin(vec![Touched::Template(template_id.to_owned())]);
        let answer = self.call(Service::Ec2, ACTION, request).await;
        let created = answer.and_then(|answer| {
            let version = answer.launch_template_version().ok_or_else(|| incomplete(ACTION))?;
            Ok(CreatedVersion {
                template_id: template_id.to_owned(),
                template_name: version.launch_template_name().unwrap_or_default().to_owned(),
                number: version.version_number().ok_or_else(|| incomplete(ACTION))?,
            })
        });
        if let Ok(created) = &created {
            self.ledger().version_made(template_id, created.number);
        }
        write.end(created.as_ref().err().map(|failure| failure.class));
        created
    }

    /// Makes a version the template's default.
    ///
    /// # Errors
    /// `NotFound` if the template or the version is gone.
    pub async fn set_default_version(&self, template_id: &str, number: i64) -> Result<(), Failure> {
        let request = self
            .ec2()
            .modify_launch_template()
            .launch_template_id(template_id)
            .default_version(number.to_string())
            .send();
        let write = self.ledger().begin(vec![Touched::Template(template_id.to_owned())]);
        let answer = self.call(Service::Ec2, "ModifyLaunchTemplate", request).await;
        if answer.is_ok() {
            self.ledger().default_set(template_id, number);
        }
        write.end(answer.as_ref().err().map(|failure| failure.class));
        answer.map(drop)
    }

    /// Deletes versions of a template. A version that is gone already is no failure.
    ///
    /// # Errors
    /// The failure of the call, or of the first version that EC2 did not delete: it reports those one by one
    /// in an answer that is otherwise a success.
    pub async fn delete_template_versions(&self, template_id: &str, numbers: &[i64]) -> Result<(), Failure> {
        const ACTION: &str = "DeleteLaunchTemplateVersions";
        for numbers in numbers.chunks(DELETED_A_CALL) {
            let request = self
                .ec2()
                .delete_launch_template_versions()
                .launch_template_id(template_id)
                .set_versions(Some(numbers.iter().map(ToString::to_string).collect()))
                .send();
            let write = self.ledger().begin(vec![Touched::Template(template_id.to_owned())]);
            let answer = self.call(Service::Ec2, ACTION, request).await;
            write.end(answer.as_ref().err().map(|failure| failure.class));
            let answer = answer?;
            self.ledger().versions_deleted(template_id, numbers);
            for refused in answer.unsuccessfully_deleted_launch_template_versions() {
                refusal(refused, ACTION).map_or(Ok(()), Err)?;
            }
        }
        Ok(())
    }

    /// Deletes a template with all its versions.
    ///
    /// # Errors
    /// `NotFound` if it is gone.
    pub async fn delete_launch_template(&self, template_id: &str) -> Result<(), Failure> {
        let request = self
            .ec2()
            .delete_launch_template()
            .launch_template_id(template_id)
            .send();
        let write = self
            .ledger()
            .begin_delete(vec![Touched::Template(template_id.to_owned())]);
        let answer = self.call(Service::Ec2, "DeleteLaunchTemplate", request).await;
        write.end(answer.as_ref().err().map(|failure| failure.class));
        answer.map(drop)
    }
}

/// What EC2 says about one version that it did not delete; `None` if it is gone.
fn refusal(
    refused: &aws_sdk_ec2::types::DeleteLaunchTemplateVersionsResponseErrorItem,
    action: &str,
) -> Option<Failure> {
    use LaunchTemplateErrorCode as Code;
    let error = refused.response_error();
    let code = error.and_then(|error| error.code());
    let class = match code {
        Some(
            Code::LaunchTemplateVersionDoesNotExist
            | Code::LaunchTemplateIdDoesNotExist
            | Code::LaunchTemplateNameDoesNotExist,
        ) => return None,
        Some(Code::LaunchTemplateIdMalformed | Code::LaunchTemplateNameMalformed) => FailureClass::Invalid,
        _ => FailureClass::Unclassified,
    };
    let message = format!(
        "version {}: {}",
        refused.version_number().unwrap_or_default(),
        error.and_then(|error| error.message()).unwrap_or("not deleted"),
    );
    Some(failure(Service::Ec2, action, class, code.map(Code::as_str), &message))
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{DeleteLaunchTemplateVersionsResponseErrorItem, ResponseError};

    use super::*;

    fn refused(code: LaunchTemplateErrorCode) -> DeleteLaunchTemplateVersionsResponseErrorItem {
        DeleteLaunchTemplateVersionsResponseErrorItem::builder()
            .version_number(4)
            .response_error(ResponseError::builder().code(code).message("words").build())
            .build()
    }

    #[test]
    fn a_version_that_is_gone_is_deleted() {
        assert_eq!(
            refusal(
                &refused(LaunchTemplateErrorCode::LaunchTemplateVersionDoesNotExist),
                "A"
            ),
            None
        );
    }

    #[test]
    fn a_version_that_stays_is_a_failure() {
        let failure = refusal(&refused(LaunchTemplateErrorCode::UnexpectedError), "A").unwrap();
        assert_eq!(failure.class, FailureClass::Unclassified);
        assert_eq!(failure.message, "version 4: words");
    }
}
