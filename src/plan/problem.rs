//! Why a group cannot go on, as a value.
//!
//! Owns the kinds of obstacles and the words that people read. An obstacle is an ordinary outcome, not an
//! error: it becomes a condition, a message and the time of the next look. Must not know how it is shown.

use std::fmt;

use super::facts::{Failure, FailureClass};
use crate::api::{ConditionType, Reason};

/// Something that has to change before the group can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A field whose value cannot be used.
    Field {
        /// The condition that shows it.
        condition: ConditionType,
        /// What kind of trouble.
        reason: Reason,
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// A look-up gave no answer; nothing may be concluded.
    Unknown(Failure),
}

impl Problem {
    /// A manifest that makes no sense at `path`.
    #[must_use]
    pub fn invalid(path: &str, message: &str) -> Self {
        Self::target(Reason::SpecInvalid, path, message)
    }

    /// An unusable image named by `path`.
    #[must_use]
    pub fn image(reason: Reason, path: &str, message: impl Into<String>) -> Self {
        let condition = ConditionType::ImageUnusable;
        Self::Field {
            condition,
            reason,
            path: path.to_owned(),
            message: message.into(),
        }
    }

    /// Another unusable part of the target, named by `path`.
    #[must_use]
    pub fn target(reason: Reason, path: &str, message: impl Into<String>) -> Self {
        let condition = ConditionType::TargetUnusable;
        Self::Field {
            condition,
            reason,
            path: path.to_owned(),
            message: message.into(),
        }
    }

    /// The condition that shows it.
    #[must_use]
    pub fn condition(&self) -> ConditionType {
        match self {
            Self::Field { condition, .. } => *condition,
            Self::Unknown(failure) => failure_condition(failure.class),
        }
    }

    /// The condition's reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Field { reason, .. } => *reason,
            Self::Unknown(failure) => failure_reason(failure.class),
        }
    }

    /// Whether it only means that something could not be learned.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// The condition that shows a failed call of this class.
#[must_use]
pub fn failure_condition(class: FailureClass) -> ConditionType {
    match class {
        FailureClass::Denied => ConditionType::AccessDenied,
        FailureClass::Throttled
        | FailureClass::Unavailable
        | FailureClass::Lagging
        | FailureClass::Busy
        | FailureClass::NotLeading => ConditionType::AwsUnavailable,
        FailureClass::NotFound
        | FailureClass::AlreadyExists
        | FailureClass::LimitExceeded
        | FailureClass::Invalid
        | FailureClass::Unclassified => ConditionType::TargetUnusable,
    }
}

/// The reason that goes with [`failure_condition`].
#[must_use]
pub fn failure_reason(class: FailureClass) -> Reason {
    match class {
        FailureClass::Denied => Reason::AccessDenied,
        FailureClass::Throttled => Reason::Throttled,
        FailureClass::Unavailable => Reason::AwsUnreachable,
        FailureClass::Lagging | FailureClass::Busy | FailureClass::NotLeading => Reason::WaitsForAws,
        FailureClass::NotFound
        | FailureClass::AlreadyExists
        | FailureClass::LimitExceeded
        | FailureClass::Invalid
        | FailureClass::Unclassified => Reason::AwsError,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { path, message, .. } => write!(f, "{path}: {message}"),
            Self::Unknown(failure) => failure.fmt(f),
        }
    }
}
