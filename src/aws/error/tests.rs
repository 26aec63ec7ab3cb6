//! Tests of the error table, with answers in the services' own words.

use FailureClass as C;
use Service::{AutoScaling, Ec2, Eks, Iam, Ssm};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::ErrorMetadata;
use pretty_assertions::assert_eq;

use super::*;

const ANSWERS: &[(Service, &str, &str, FailureClass)] = &[
    (
        AutoScaling,
        "ValidationError",
        "AutoScalingGroup name not found - AutoScalingGroup 'a' not found",
        C::NotFound,
    ),
    (AutoScaling, "ValidationError", "Group a not found", C::Unclassified),
    (
        AutoScaling,
        "ValidationError",
        "No AutoScalingGroup was found with the name a",
        C::NotFound,
    ),
    (
        AutoScaling,
        "ValidationError",
        "You must use a valid fully-formed launch template. Could not find the specified version 7 for the launch template with ID lt-1.",
        C::NotFound,
    ),
    (
        AutoScaling,
        "ValidationError",
        "Instance Id not found - No managed instance found for instance ID: i-1",
        C::NotFound,
    ),
    (
        AutoScaling,
        "ValidationError",
        "You must use a valid fully-formed launch template. The specified launch template, with template ID lt-1, does not exist.",
        C::NotFound,
    ),
    (
        AutoScaling,
        "ValidationError",
        "You must use a valid fully-formed launch template. Value (x) for parameter iamInstanceProfile is invalid",
        C::Invalid,
    ),
    (
        AutoScaling,
        "ValidationError",
        "You are not authorized to use launch template: lt-1",
        C::Denied,
    ),
    (
        AutoScaling,
        "ValidationError",
        "User: arn:aws:sts::1:assumed-role/a is not authorized to perform: iam:PassRole",
        C::Denied,
    ),
    (
        AutoScaling,
        "ValidationError",
        "1 validation error detected: Value '-1' at 'minSize' failed to satisfy constraint",
        C::Invalid,
    ),
    (
        AutoScaling,
        "ValidationError",
        "Max bound, 1, must be greater than or equal to min bound, 2",
        C::Invalid,
    ),
    (
        AutoScaling,
        "ValidationError",
        "Currently, desiredSize equals minSize (1). Terminating instance without replacement will violate group's min size constraint.",
        C::Invalid,
    ),
    (
        AutoScaling,
        "ValidationError",
        "something nobody has seen",
        C::Unclassified,
    ),
    (
        AutoScaling,
        "AlreadyExists",
        "AutoScalingGroup by this name already exists - A group with the name a already exists",
        C::AlreadyExists,
    ),
    (
        AutoScaling,
        "AlreadyExists",
        "AutoScalingGroup by this name already exists and is pending delete",
        C::Busy,
    ),
    (
        AutoScaling,
        "ScalingActivityInProgress",
        "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.",
        C::Busy,
    ),
    (
        AutoScaling,
        "ResourceInUse",
        "You cannot delete an AutoScalingGroup while there are instances",
        C::Busy,
    ),
    (
        AutoScaling,
        "ResourceContention",
        "You already have a pending update",
        C::Busy,
    ),
    (
        AutoScaling,
        "LimitExceeded",
        "AutoScalingGroup limit exceeded",
        C::LimitExceeded,
    ),
    (AutoScaling, "Throttling", "Rate exceeded", C::Throttled),
    (AutoScaling, "AccessDenied", "User is not authorized", C::Denied),
    (Ec2, "RequestLimitExceeded", "Request limit exceeded.", C::Throttled),
    (
        Ec2,
        "UnauthorizedOperation",
        "You are not authorized to perform this operation.",
        C::Denied,
    ),
    (Ec2, "InvalidLaunchTemplateName.NotFoundException", "", C::NotFound),
    (Ec2, "InvalidLaunchTemplateId.NotFound", "", C::NotFound),
    (Ec2, "InvalidLaunchTemplateId.VersionNotFound", "", C::NotFound),
    (
        Ec2,
        "InvalidLaunchTemplateName.AlreadyExistsException",
        "",
        C::AlreadyExists,
    ),
    (Ec2, "IdempotentParameterMismatch", "", C::Invalid),
    (Ec2, "InvalidAMIID.NotFound", "", C::NotFound),
    (Ec2, "InvalidAMIID.Malformed", "", C::Invalid),
    (Ec2, "InvalidAMIID.Unavailable", "", C::Invalid),
    (Ec2, "InvalidSubnetID.NotFound", "", C::NotFound),
    (Ec2, "InvalidGroup.NotFound", "", C::NotFound),
    (Ec2, "InvalidInstanceType", "", C::Invalid),
    (Ec2, "VcpuLimitExceeded", "", C::LimitExceeded),
    (Ec2, "InternalError", "", C::Unavailable),
    (
        Ec2,
        "ValidationError",
        "AutoScalingGroup name not found",
        C::Unclassified,
    ),
    (Iam, "NoSuchEntity", "Instance Profile a cannot be found.", C::NotFound),
    (Iam, "NoSuchEntityException", "", C::NotFound),
    (
        Eks,
        "ResourceNotFoundException",
        "No cluster found for name: a.",
        C::NotFound,
    ),
    (Eks, "ServerException", "", C::Unavailable),
    (Ssm, "ParameterNotFound", "", C::NotFound),
    (Ssm, "AccessDeniedException", "", C::Denied),
    (Ssm, "ThrottlingException", "Rate exceeded", C::Throttled),
    (Ssm, "ValidationException", "", C::Invalid),
    (Ssm, "", "", C::Unclassified),
];

#[test]
fn each_answer_has_its_class() {
    for (service, code, message, class) in ANSWERS {
        assert_eq!(
            class_of(*service, code, message),
            *class,
            "{service:?} {code} {message}"
        );
    }
}

#[derive(Debug, thiserror::Error)]
#[error("service error")]
struct Answer(ErrorMetadata);

impl ProvideErrorMetadata for Answer {
    fn meta(&self) -> &ErrorMetadata {
        &self.0
    }
}

fn answer(status: u16, code: &str, message: &str) -> SdkError<Answer, HttpResponse> {
    let meta = ErrorMetadata::builder().code(code).message(message).build();
    let raw = HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::empty());
    SdkError::service_error(Answer(meta), raw)
}

#[test]
fn an_answer_keeps_code_and_words() {
    let failure = failure_of(
        Ec2,
        "DescribeImages",
        &answer(
            400,
            "UnauthorizedOperation",
            "No. Encoded authorization failure message: abcdef",
        ),
    );
    assert_eq!(failure.class, C::Denied);
    assert_eq!(failure.action, "ec2:DescribeImages");
    assert_eq!(failure.code.as_deref(), Some("UnauthorizedOperation"));
    assert_eq!(failure.message, "No.");
}

#[test]
fn the_status_decides_where_the_table_is_silent() {
    assert_eq!(failure_of(Ec2, "A", &answer(503, "Strange", "")).class, C::Unavailable);
    assert_eq!(failure_of(Ec2, "A", &answer(429, "Strange", "")).class, C::Throttled);
    assert_eq!(failure_of(Ec2, "A", &answer(400, "Strange", "")).class, C::Unclassified);
}

#[test]
fn no_answer_is_unavailable() {
    let timeout: SdkError<Answer, HttpResponse> = SdkError::timeout_error("slow");
    let failure = failure_of(Ec2, "A", &timeout);
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (C::Unavailable, "request has timed out: slow")
    );
    let raw = HttpResponse::new(StatusCode::try_from(502).unwrap(), SdkBody::empty());
    let page: SdkError<Answer, HttpResponse> = SdkError::response_error("not xml", raw);
    assert_eq!(failure_of(Ec2, "A", &page).class, C::Unavailable);
}

#[test]
fn only_the_service_can_say_not_found() {
    let failure = |class| failure(Ec2, "A", class, None, "");
    assert_eq!(three_way::<()>(Err(failure(C::NotFound))), Fact::NotFound);
    assert_eq!(
        three_way::<()>(Err(failure(C::Denied))),
        Fact::Unknown(failure(C::Denied))
    );
    assert_eq!(three_way(Ok(1)), Fact::Found(1));
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let failure = failure(Ec2, "A", C::Invalid, None, &"ä".repeat(1000));
    assert_eq!(failure.message.chars().count(), LONGEST_MESSAGE + 1);
}
