//! Why a group cannot go on, as a value.
//!
//! Owns the kinds of obstacles and the words that people read. An obstacle is an ordinary outcome, not an
//! error: it becomes a condition, a message and the time of the next look. Must not know how it is shown.

use std::fmt;

use super::facts::{Failure, FailureClass};
use crate::api::ConditionType;

/// Something that has to change before the group can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The manifest makes no sense at this path.
    Invalid {
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The image cannot be used.
    ImageUnusable {
        /// Path of the field that names it.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// Something else that new nodes need does not exist or does not fit.
    TargetUnusable {
        /// Path of the field that names it.
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
        Self::Invalid {
            path: path.to_owned(),
            message: message.to_owned(),
        }
    }

    /// An unusable image named by `path`.
    #[must_use]
    pub fn image(path: &str, message: impl Into<String>) -> Self {
        Self::ImageUnusable {
            path: path.to_owned(),
            message: message.into(),
        }
    }

    /// Another unusable part of the target, named by `path`.
    #[must_use]
    pub fn target(path: &str, message: impl Into<String>) -> Self {
        Self::TargetUnusable {
            path: path.to_owned(),
            message: message.into(),
        }
    }

    /// The condition that shows it.
    #[must_use]
    pub fn condition(&self) -> ConditionType {
        match self {
            Self::Invalid { .. } | Self::TargetUnusable { .. } => ConditionType::TargetUnusable,
            Self::ImageUnusable { .. } => ConditionType::ImageUnusable,
            Self::Unknown(failure) => failure_condition(failure.class),
        }
    }

    /// The condition's reason: one CamelCase word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "InvalidSpec",
            Self::ImageUnusable { .. } => "ImageUnusable",
            Self::TargetUnusable { .. } => "TargetUnusable",
            Self::Unknown(failure) => failure.class.into(),
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
        FailureClass::Throttled | FailureClass::Unavailable | FailureClass::Lagging => ConditionType::AwsUnavailable,
        FailureClass::NotFound
        | FailureClass::AlreadyExists
        | FailureClass::Busy
        | FailureClass::LimitExceeded
        | FailureClass::Invalid
        | FailureClass::Unclassified => ConditionType::TargetUnusable,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { path, message }
            | Self::ImageUnusable { path, message }
            | Self::TargetUnusable { path, message } => write!(f, "{path}: {message}"),
            Self::Unknown(failure) => failure.fmt(f),
        }
    }
}
