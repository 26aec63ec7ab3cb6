//! SSM parameters: reads.
//!
//! Owns the call that reads parameters, and the splitting of a batch in which one name spoils the answer for
//! all. Must not cache; the [`super::catalogue`] does.

use std::future::Future;

use aws_sdk_ssm::types;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::call::Service;
use super::connection::Connection;
use super::error::failure;
use super::time::timestamp;
use crate::plan::facts::{Fact, Failure, FailureClass, Parameter};

/// Most names that SSM takes in one call.
pub(super) const NAMES_A_CALL: usize = 10;

const ACTION: &str = "GetParameters";

impl Connection {
    /// The parameters of these names, a call per ten. A name that SSM forbids or refuses fails alone: then the
    /// batch is asked for again in halves.
    pub async fn parameters(&self, names: &[String]) -> Vec<(String, Fact<Parameter>)> {
        let mut facts = Vec::with_capacity(names.len());
        for names in names.chunks(NAMES_A_CALL) {
            facts.extend(split(names.to_vec(), &|names| self.one_batch(names)).await);
        }
        facts
    }

    async fn one_batch(&self, names: Vec<String>) -> Result<Vec<(String, Fact<Parameter>)>, Failure> {
        let request = self.ssm().get_parameters().set_names(Some(names.clone())).send();
        let answer = self.call(Service::Ssm, ACTION, request).await?;
        Ok(matched(names, answer.parameters(), answer.invalid_parameters()))
    }
}

/// Asks for a batch; where a name in it may be to blame, asks for its halves, down to single names. SSM
/// answers a forbidden or malformed name with an error for the whole batch and does not say which it was.
///
/// A throttle or an outage is no reason to split: more calls would make it worse.
fn split<F, R>(names: Vec<String>, ask: &F) -> BoxFuture<'_, Vec<(String, Fact<Parameter>)>>
where
    F: Fn(Vec<String>) -> R + Sync,
    R: Future<Output = Result<Vec<(String, Fact<Parameter>)>, Failure>> + Send,
{
    async move {
        let failure = match ask(names.clone()).await {
            Ok(facts) => return facts,
            Err(failure) => failure,
        };
        let blame = matches!(
            failure.class,
            FailureClass::Denied | FailureClass::Invalid | FailureClass::NotFound
        );
        if names.len() > 1 && blame {
            let (left, right) = names.split_at(names.len() / 2);
            let mut facts = split(left.to_vec(), ask).await;
            facts.extend(split(right.to_vec(), ask).await);
            return facts;
        }
        let missing = failure.class == FailureClass::NotFound;
        names
            .into_iter()
            .map(|name| {
                (
                    name,
                    if missing {
                        Fact::NotFound
                    } else {
                        Fact::Unknown(failure.clone())
                    },
                )
            })
            .collect()
    }
    .boxed()
}

fn matched(names: Vec<String>, found: &[types::Parameter], invalid: &[String]) -> Vec<(String, Fact<Parameter>)> {
    names
        .into_iter()
        .map(|name| {
            let fact = match found.iter().find(|parameter| answers(parameter, &name)) {
                Some(found) => Fact::Found(parameter(&name, found)),
                // "Invalid" is what this action calls a name that does not exist.
                None if invalid.contains(&name) => Fact::NotFound,
                None => {
                    let message = "the answer lacks this name";
                    Fact::Unknown(failure(Service::Ssm, ACTION, FailureClass::Unclassified, None, message))
                }
            };
            (name, fact)
        })
        .collect()
}

/// A name may carry a version or label (`name:3`, returned apart as the selector) or be an ARN.
fn answers(parameter: &types::Parameter, asked: &str) -> bool {
    [parameter.name(), parameter.arn()].into_iter().flatten().any(|name| {
        let rest = asked.strip_prefix(name);
        rest == Some("") || (parameter.selector().is_some() && rest == parameter.selector())
    })
}

fn parameter(name: &str, parameter: &types::Parameter) -> Parameter {
    Parameter {
        name: name.to_owned(),
        value: parameter.value().unwrap_or_default().trim().to_owned(),
        version: parameter.version(),
        last_modified: parameter.last_modified_date().and_then(timestamp),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use pretty_assertions::assert_eq;

    use super::*;

    fn good(name: &str) -> Fact<Parameter> {
        Fact::Found(Parameter {
            name: name.into(),
            value: "ami-1".into(),
            version: 1,
            last_modified: None,
        })
    }

    /// An SSM in which some names spoil a batch with a failure of this class.
    struct FakeSsm {
        spoilers: BTreeSet<&'static str>,
        class: FailureClass,
        calls: Mutex<Vec<usize>>,
    }

    impl FakeSsm {
        fn new(spoilers: &[&'static str], class: FailureClass) -> Self {
            Self {
                spoilers: spoilers.iter().copied().collect(),
                class,
                calls: Mutex::default(),
            }
        }

        fn ask(&self, names: &[String]) -> Result<Vec<(String, Fact<Parameter>)>, Failure> {
            self.calls.lock().unwrap().push(names.len());
            if names.iter().any(|name| self.spoilers.contains(name.as_str())) {
                return Err(failure(Service::Ssm, ACTION, self.class, None, "no"));
            }
            Ok(names.iter().map(|name| (name.clone(), good(name))).collect())
        }

        async fn read(&self, names: &[&str]) -> Vec<(String, Fact<Parameter>)> {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            split(names, &|names| std::future::ready(self.ask(&names))).await
        }
    }

    fn found(facts: &[(String, Fact<Parameter>)]) -> Vec<&str> {
        facts
            .iter()
            .filter(|(_, fact)| fact.found().is_some())
            .map(|(name, _)| name.as_str())
            .collect()
    }

    #[tokio::test]
    async fn a_good_batch_is_one_call() {
        let ssm = FakeSsm::new(&[], FailureClass::Denied);
        assert_eq!(found(&ssm.read(&["a", "b", "c"]).await), ["a", "b", "c"]);
        assert_eq!(*ssm.calls.lock().unwrap(), [3]);
    }

    #[tokio::test]
    async fn a_forbidden_name_fails_alone() {
        for class in [FailureClass::Denied, FailureClass::Invalid] {
            let ssm = FakeSsm::new(&["c"], class);
            let facts = ssm.read(&["a", "b", "c", "d"]).await;
            assert_eq!(found(&facts), ["a", "b", "d"]);
            assert!(matches!(&facts[2], (name, Fact::Unknown(failure)) if name == "c" && failure.class == class));
            assert_eq!(*ssm.calls.lock().unwrap(), [4, 2, 2, 1, 1]);
        }
    }

    #[tokio::test]
    async fn a_throttle_is_not_split() {
        let ssm = FakeSsm::new(&["c"], FailureClass::Throttled);
        assert_eq!(found(&ssm.read(&["a", "b", "c", "d"]).await), Vec::<&str>::new());
        assert_eq!(*ssm.calls.lock().unwrap(), [4]);
    }

    fn returned(name: &str, selector: Option<&str>) -> types::Parameter {
        types::Parameter::builder()
            .name(name)
            .arn(format!("arn:aws:ssm:us-west-2::parameter{name}"))
            .set_selector(selector.map(str::to_owned))
            .value("ami-1")
            .version(3)
            .build()
    }

    #[test]
    fn answers_are_matched_to_questions() {
        let names = ["/a", "/b:3", "arn:aws:ssm:us-west-2::parameter/c", "/gone", "/lost"].map(str::to_owned);
        let answer = [returned("/c", None), returned("/b", Some(":3")), returned("/a", None)];
        let facts = matched(names.to_vec(), &answer, &["/gone".to_owned()]);
        assert_eq!(found(&facts), ["/a", "/b:3", "arn:aws:ssm:us-west-2::parameter/c"]);
        assert_eq!(facts[3].1, Fact::NotFound);
        assert!(matches!(&facts[4].1, Fact::Unknown(_)));
    }
}
