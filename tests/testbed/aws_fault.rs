//! Owns the description of faults that the simulated AWS is told to make. It must not inject them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// What is to go wrong, for which calls and how often. It needs an error, a delay or a hang.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_milliseconds: Option<u64>,
    #[serde(rename = "match", skip_serializing_if = "BTreeMap::is_empty")]
    matching: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hang: bool,
}

impl Fault {
    /// It meets one action of a service, such as `autoscaling`, `CreateAutoScalingGroup`.
    pub fn on(service: &str, action: &str) -> Self {
        Self {
            service: Some(service.to_owned()),
            action: Some(action.to_owned()),
            ..Self::default()
        }
    }

    pub fn on_service(service: &str) -> Self {
        Self {
            service: Some(service.to_owned()),
            ..Self::default()
        }
    }

    pub fn on_everything() -> Self {
        Self::default()
    }

    /// Answer an error with AWS's code and the HTTP status.
    #[must_use]
    pub fn error(mut self, code: &str, status: u16) -> Self {
        (self.code, self.status) = (Some(code.to_owned()), Some(status));
        self
    }

    #[must_use]
    pub fn message(mut self, text: &str) -> Self {
        self.message = Some(text.to_owned());
        self
    }

    /// So many calls meet it; without this, every one does until the faults are cleared.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.count = Some(count);
        self
    }

    /// Answer the error once the call has had its effect, as when an answer is lost.
    #[must_use]
    pub fn after_effect(mut self) -> Self {
        self.when = Some("after");
        self
    }

    #[must_use]
    pub fn latency(mut self, delay: Duration) -> Self {
        self.latency_milliseconds = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Meet only calls whose parameter holds this text.
    #[must_use]
    pub fn matching(mut self, parameter: &str, text: &str) -> Self {
        self.matching.insert(parameter.to_owned(), text.to_owned());
        self
    }

    /// Never answer.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.hang = true;
        self
    }
}
