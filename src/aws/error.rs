//! The error table: what kind of failure a service's answer is.
//!
//! Owns every AWS error code and message pattern the product knows. Must not make calls and must not decide
//! what follows from a failure. Nothing else in the product looks at codes or messages.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use super::call::Service;
use crate::plan::facts::{Fact, Failure, FailureClass};

/// Longest message kept, in characters; a condition has to stay readable.
const LONGEST_MESSAGE: usize = 400;

/// How a rule recognises an error code.
#[derive(Clone, Copy)]
enum Code {
    /// Any code.
    Any,
    /// Exactly this one.
    Is(&'static str),
    /// Any that ends so; EC2 builds its codes as `<Resource>.<Problem>`.
    Ends(&'static str),
    /// Any that starts so.
    Starts(&'static str),
}

/// One row: the first that matches wins.
struct Rule {
    service: Option<Service>,
    code: Code,
    /// Lower-case text that the message must hold; empty = any message.
    message: &'static str,
    class: FailureClass,
}

const fn any(code: Code, class: FailureClass) -> Rule {
    Rule {
        service: None,
        code,
        message: "",
        class,
    }
}

const fn of(service: Service, code: Code, class: FailureClass) -> Rule {
    Rule {
        service: Some(service),
        code,
        message: "",
        class,
    }
}

const fn says(service: Service, code: Code, message: &'static str, class: FailureClass) -> Rule {
    Rule {
        service: Some(service),
        code,
        message,
        class,
    }
}

/// Codes that mean the same in every service.
const SHARED: &[Rule] = {
    use Code::{Ends, Is};
    use FailureClass as C;
    &[
        any(Is("RequestLimitExceeded"), C::Throttled),
        any(Is("BandwidthLimitExceeded"), C::Throttled),
        any(Is("Throttling"), C::Throttled),
        any(Is("ThrottlingException"), C::Throttled),
        any(Is("ThrottledException"), C::Throttled),
        any(Is("RequestThrottled"), C::Throttled),
        any(Is("RequestThrottledException"), C::Throttled),
        any(Is("TooManyRequestsException"), C::Throttled),
        any(Is("PriorRequestNotComplete"), C::Throttled),
        any(Is("SlowDown"), C::Throttled),
        any(Is("AccessDenied"), C::Denied),
        any(Is("AccessDeniedException"), C::Denied),
        any(Is("UnauthorizedOperation"), C::Denied),
        any(Is("NotAuthorized"), C::Denied),
        any(Is("AuthFailure"), C::Denied),
        any(Is("Blocked"), C::Denied),
        any(Is("OptInRequired"), C::Denied),
        any(Is("PendingVerification"), C::Denied),
        any(Is("InvalidClientTokenId"), C::Denied),
        any(Is("UnrecognizedClientException"), C::Denied),
        any(Is("SignatureDoesNotMatch"), C::Denied),
        any(Is("InvalidSignatureException"), C::Denied),
        any(Is("IncompleteSignature"), C::Denied),
        any(Is("MissingAuthenticationToken"), C::Denied),
        any(Is("ExpiredToken"), C::Denied),
        any(Is("ExpiredTokenException"), C::Denied),
        any(Is("RequestExpired"), C::Denied),
        any(Is("InternalError"), C::Unavailable),
        any(Is("InternalFailure"), C::Unavailable),
        any(Is("InternalServerError"), C::Unavailable),
        any(Is("InternalServerErrorException"), C::Unavailable),
        any(Is("ServiceUnavailable"), C::Unavailable),
        any(Is("ServiceUnavailableException"), C::Unavailable),
        any(Is("ServerException"), C::Unavailable),
        any(Is("ServiceFailure"), C::Unavailable),
        any(Is("Unavailable"), C::Unavailable),
        any(Is("RequestTimeout"), C::Unavailable),
        any(Is("RequestTimeoutException"), C::Unavailable),
        // Client tokens are derived from what is wanted, so a token that meets other parameters never will fit.
        any(Is("IdempotentParameterMismatch"), C::Invalid),
        any(Is("InvalidParameterValue"), C::Invalid),
        any(Is("InvalidParameterCombination"), C::Invalid),
        any(Is("InvalidParameter"), C::Invalid),
        any(Is("InvalidParameterException"), C::Invalid),
        any(Is("InvalidRequestException"), C::Invalid),
        any(Is("InvalidInput"), C::Invalid),
        any(Is("InvalidRequest"), C::Invalid),
        any(Is("MissingParameter"), C::Invalid),
        any(Is("UnknownParameter"), C::Invalid),
        any(Is("ValidationException"), C::Invalid),
        any(Is("MalformedQueryString"), C::Invalid),
        any(Ends("LimitExceeded"), C::LimitExceeded),
        any(Ends("LimitExceededException"), C::LimitExceeded),
    ]
};

/// Codes of one service. Looked at before [`SHARED`].
const BY_SERVICE: &[Rule] = {
    use Code::{Any, Ends, Is, Starts};
    use FailureClass as C;
    use Service::{AutoScaling, Ec2, Eks, Iam, Ssm};
    // Auto Scaling answers `ValidationError` for what is missing, forbidden, busy and wrong alike: only the
    // words tell. The generic "does not exist" also covers what a launch template names (image, key pair,
    // security group), which Auto Scaling checks with a dry run when a group is made or changed.
    const VALIDATION: Code = Is("ValidationError");
    &[
        says(AutoScaling, VALIDATION, "not authorized to perform", C::Denied),
        says(AutoScaling, VALIDATION, "you are not authorized", C::Denied),
        says(AutoScaling, VALIDATION, "rate exceeded", C::Throttled),
        says(AutoScaling, VALIDATION, "request limit exceeded", C::Throttled),
        says(AutoScaling, VALIDATION, "pending delet", C::Busy),
        says(AutoScaling, VALIDATION, "pending-delet", C::Busy),
        says(AutoScaling, VALIDATION, "delete in progress", C::Busy),
        says(AutoScaling, VALIDATION, "autoscalinggroup name not found", C::NotFound),
        says(AutoScaling, VALIDATION, "group name not found", C::NotFound),
        says(AutoScaling, VALIDATION, "group not found", C::NotFound),
        says(AutoScaling, VALIDATION, "no autoscalinggroup was found", C::NotFound),
        says(
            AutoScaling,
            VALIDATION,
            "could not find the specified version",
            C::NotFound,
        ),
        says(AutoScaling, VALIDATION, "instance id not found", C::NotFound),
        says(AutoScaling, VALIDATION, "no managed instance found", C::NotFound),
        says(AutoScaling, VALIDATION, "does not exist", C::NotFound),
        says(AutoScaling, VALIDATION, "min size constraint", C::Invalid),
        says(AutoScaling, VALIDATION, "must be less than or equal", C::Invalid),
        says(AutoScaling, VALIDATION, "must be greater than or equal", C::Invalid),
        says(AutoScaling, VALIDATION, "validation error detected", C::Invalid),
        says(
            AutoScaling,
            VALIDATION,
            "at least one availability zone or vpc subnet",
            C::Invalid,
        ),
        says(
            AutoScaling,
            VALIDATION,
            "valid fully-formed launch template",
            C::Invalid,
        ),
        says(AutoScaling, VALIDATION, "invalid launch template", C::Invalid),
        // A group that is on its way out still holds its name.
        says(AutoScaling, Is("AlreadyExists"), "pending delet", C::Busy),
        of(AutoScaling, Is("AlreadyExists"), C::AlreadyExists),
        of(AutoScaling, Is("AlreadyExistsFault"), C::AlreadyExists),
        of(AutoScaling, Is("ScalingActivityInProgress"), C::Busy),
        of(AutoScaling, Is("ScalingActivityInProgressFault"), C::Busy),
        of(AutoScaling, Is("ResourceInUse"), C::Busy),
        of(AutoScaling, Is("ResourceInUseFault"), C::Busy),
        of(AutoScaling, Is("ResourceContention"), C::Busy),
        of(AutoScaling, Is("ResourceContentionFault"), C::Busy),
        of(AutoScaling, Is("LimitExceededFault"), C::LimitExceeded),
        of(
            Ec2,
            Is("InvalidLaunchTemplateName.AlreadyExistsException"),
            C::AlreadyExists,
        ),
        of(Ec2, Is("InvalidLaunchTemplateName.NotFoundException"), C::NotFound),
        of(Ec2, Is("InvalidLaunchTemplateId.NotFound"), C::NotFound),
        of(Ec2, Is("InvalidLaunchTemplateId.VersionNotFound"), C::NotFound),
        of(Ec2, Is("InvalidAMIID.Unavailable"), C::Invalid),
        of(Ec2, Is("InvalidInstanceType"), C::Invalid),
        of(Ec2, Starts("InvalidUserData"), C::Invalid),
        of(Ec2, Starts("InvalidBlockDeviceMapping"), C::Invalid),
        of(Ec2, Is("DependencyViolation"), C::Busy),
        of(Ec2, Is("IncorrectState"), C::Busy),
        of(Ec2, Is("IncorrectInstanceState"), C::Busy),
        of(Ec2, Ends(".InUse"), C::Busy),
        of(Ec2, Is("InsufficientInstanceCapacity"), C::Unavailable),
        of(Ec2, Ends(".NotFound"), C::NotFound),
        of(Ec2, Ends(".NotFoundException"), C::NotFound),
        of(Ec2, Ends(".VersionNotFound"), C::NotFound),
        of(Ec2, Ends(".Malformed"), C::Invalid),
        of(Ec2, Ends(".MalformedException"), C::Invalid),
        of(Ec2, Ends(".Duplicate"), C::AlreadyExists),
        of(Ec2, Ends(".AlreadyExistsException"), C::AlreadyExists),
        of(Eks, Is("ResourceNotFoundException"), C::NotFound),
        of(Eks, Is("NotFoundException"), C::NotFound),
        of(Eks, Is("ResourceInUseException"), C::Busy),
        of(Eks, Is("ClientException"), C::Invalid),
        of(Iam, Is("NoSuchEntity"), C::NotFound),
        of(Iam, Is("NoSuchEntityException"), C::NotFound),
        of(Iam, Is("EntityAlreadyExists"), C::AlreadyExists),
        of(Iam, Is("EntityTemporarilyUnmodifiable"), C::Busy),
        of(Iam, Is("ConcurrentModification"), C::Busy),
        of(Iam, Is("DeleteConflict"), C::Busy),
        of(Iam, VALIDATION, C::Invalid),
        of(Ssm, Is("ParameterNotFound"), C::NotFound),
        of(Ssm, Is("ParameterVersionNotFound"), C::NotFound),
        says(Ssm, Any, "is not authorized to perform", C::Denied),
    ]
};

/// The class of an answer; [`FailureClass::Unclassified`] when nothing in the table matches.
pub(super) fn class_of(service: Service, code: &str, message: &str) -> FailureClass {
    let message = message.to_lowercase();
    BY_SERVICE
        .iter()
        .chain(SHARED)
        .find(|rule| {
            rule.service.is_none_or(|only| only == service)
                && match rule.code {
                    Code::Any => true,
                    Code::Is(exact) => code == exact,
                    Code::Ends(end) => code.ends_with(end),
                    Code::Starts(start) => code.starts_with(start),
                }
                && message.contains(rule.message)
        })
        .map_or(FailureClass::Unclassified, |rule| rule.class)
}

/// Turns whatever the SDK returned into the product's own failure.
pub(super) fn failure_of<E>(service: Service, action: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let (class, code, message) = match error {
        SdkError::ServiceError(answer) => {
            let code = answer.err().code();
            let message = answer.err().message().unwrap_or_default();
            let class = match class_of(service, code.unwrap_or_default(), message) {
                FailureClass::Unclassified => class_of_status(answer.raw().status().as_u16()),
                class => class,
            };
            (class, code, message.to_owned())
        }
        // An answer that is no answer of the service: a proxy's page, a cut body.
        SdkError::ResponseError(answer) => {
            let class = class_of_status(answer.raw().status().as_u16());
            (class, None, with_causes(error))
        }
        SdkError::ConstructionFailure(_) => (FailureClass::Invalid, None, with_causes(error)),
        _ => (FailureClass::Unavailable, None, with_causes(error)),
    };
    failure(service, action, class, code, &message)
}

/// A failure in the product's own form, its message cut to a readable length.
pub(super) fn failure(
    service: Service,
    action: &str,
    class: FailureClass,
    code: Option<&str>,
    message: &str,
) -> Failure {
    Failure {
        class,
        action: format!("{}:{action}", service.prefix()),
        code: code.map(str::to_owned),
        message: readable(message),
    }
}

/// The three-way answer of a look-up: only the service's own "does not exist" is [`Fact::NotFound`].
pub(super) fn three_way<T>(answer: Result<T, Failure>) -> Fact<T> {
    match answer {
        Ok(value) => Fact::Found(value),
        Err(failure) if failure.class == FailureClass::NotFound => Fact::NotFound,
        Err(failure) => Fact::Unknown(failure),
    }
}

fn class_of_status(status: u16) -> FailureClass {
    match status {
        429 => FailureClass::Throttled,
        500..=599 => FailureClass::Unavailable,
        _ => FailureClass::Unclassified,
    }
}

/// An error with its causes. Not by the SDK's own `DisplayErrorContext`: that adds the whole response, body
/// included.
fn with_causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}

/// Puts the message on one line, cuts it, and drops EC2's encoded authorization text: kilobytes that only AWS can read.
fn readable(message: &str) -> String {
    let message = message
        .split(" Encoded authorization failure message")
        .next()
        .unwrap_or_default();
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match message.char_indices().nth(LONGEST_MESSAGE) {
        None => message,
        Some((cut, _)) => format!("{}…", &message[..cut]),
    }
}

#[cfg(test)]
mod tests;
