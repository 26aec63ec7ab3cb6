//! Two ways to call the API server, both with a deadline and a class on failure: reads, and writes behind the fence.
//!
//! Owns the client's settings, the mapping from kube's errors to failure classes, and that no write goes out past the fence
//! but the Lease itself. Must not retry.

use std::future::Future;
use std::time::Duration;

use kube::{Client, Config};

use crate::fence::Fence;
use crate::plan::facts::{Failure, FailureClass};

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The client that everything here is made for: it answers a refusal at once. kube's default one repeats a call that was
/// answered 429, 503 or 504 for minutes, which hides the answer and holds a reconcile up.
///
/// # Errors
/// When kube cannot make a client of this.
pub fn client(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Client::try_from(config)
}

/// Runs a call that changes something, if this process may write, and only as long as it may; `action` names it in the
/// failure, as `kubernetes:patch instancegroups/status`.
///
/// # Errors
/// A [`Failure`] with the class of what went wrong; `NotLeading` if it was not begun or was cut short.
pub async fn write<T>(
    fence: &Fence,
    action: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    // On the heap: a pass holds several of these one in another.
    fence.write(action, Box::pin(read(action, request))).await?
}

/// Runs a call that changes nothing.
///
/// # Errors
/// A [`Failure`] with the class of what went wrong.
pub async fn read<T>(action: &str, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failure(action, &error)),
        Err(_) => Err(late(action, DEADLINE)),
    }
}

/// The failure of a call that was not answered in time.
#[must_use]
pub fn late(action: &str, deadline: Duration) -> Failure {
    Failure {
        class: FailureClass::Unavailable,
        action: action.to_owned(),
        code: None,
        message: format!("no answer within {} s", deadline.as_secs()),
    }
}

/// The failure that an error of kube stands for.
#[must_use]
pub fn failure(action: &str, error: &kube::Error) -> Failure {
    let (class, code, message) = match error {
        kube::Error::Api(status) => (
            class_of(status.code, &status.reason),
            Some(status.reason.clone()),
            status.message.clone(),
        ),
        other => (FailureClass::Unavailable, None, other.to_string()),
    };
    Failure {
        class,
        action: action.to_owned(),
        code: code.filter(|code| !code.is_empty()),
        message: cut(message),
    }
}

/// Classes of the API server's answers (Kubernetes API conventions, "HTTP status codes").
fn class_of(code: u16, reason: &str) -> FailureClass {
    match code {
        401 | 403 => FailureClass::Denied,
        404 => FailureClass::NotFound,
        409 if reason == "AlreadyExists" => FailureClass::AlreadyExists,
        // Somebody wrote in between: read and plan again.
        409 => FailureClass::Busy,
        429 => FailureClass::Throttled,
        400 | 422 => FailureClass::Invalid,
        408 | 500..=599 => FailureClass::Unavailable,
        _ => FailureClass::Unclassified,
    }
}

/// Fits a message into a condition.
fn cut(message: String) -> String {
    const LIMIT: usize = 1024;
    if message.chars().count() <= LIMIT {
        message
    } else {
        message.chars().take(LIMIT).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for (code, reason, class) in [
            (401, "Unauthorized", FailureClass::Denied),
            (403, "Forbidden", FailureClass::Denied),
            (404, "NotFound", FailureClass::NotFound),
            (409, "AlreadyExists", FailureClass::AlreadyExists),
            (409, "Conflict", FailureClass::Busy),
            (422, "Invalid", FailureClass::Invalid),
            (429, "TooManyRequests", FailureClass::Throttled),
            (503, "ServiceUnavailable", FailureClass::Unavailable),
            (418, "", FailureClass::Unclassified),
        ] {
            assert_eq!(class_of(code, reason), class, "{code} {reason}");
        }
    }
}
