//! Subnets and security groups: reads.
//!
//! Owns how a manifest's reference (an id, or the value of a `Name` tag) becomes an id. Must not cache;
//! [`super::lookups`] does. Each reference has an answer of its own, so that none is skipped in silence.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{self, Filter, Tag};

use super::call::Service;
use super::connection::Connection;
use super::error::failure;
use crate::plan::facts::{Fact, Failure, FailureClass, Subnet};

/// Most values that EC2 takes in one filter.
const VALUES_A_FILTER: usize = 200;

impl Connection {
    /// The subnets of a VPC by reference: an id (`subnet-...`) or the value of the `Name` tag. A name that two
    /// subnets have is unknown with class `Invalid` and names them; a failed call makes its references unknown.
    pub async fn subnets(&self, vpc_id: &str, references: &BTreeSet<String>) -> BTreeMap<String, Fact<Subnet>> {
        let mut facts = BTreeMap::new();
        for question in Question::split(vpc_id, references, "subnet-", "subnet-id") {
            let answer = self.subnets_in(&question.filters()).await.map(|subnets| {
                subnets
                    .iter()
                    .filter_map(|subnet| {
                        let id = subnet.subnet_id()?.to_owned();
                        let zone = subnet.availability_zone().unwrap_or_default().to_owned();
                        Some(Match {
                            id: id.clone(),
                            name: name_tag(subnet.tags()),
                            value: Subnet { id, zone },
                        })
                    })
                    .collect()
            });
            question.answer(&answer, "DescribeSubnets", "subnets", &mut facts);
        }
        facts
    }

    /// The security groups of a VPC by reference, as ids: an id (`sg-...`) or the value of the `Name` tag. As
    /// for [`Connection::subnets`].
    pub async fn security_groups(&self, vpc_id: &str, references: &BTreeSet<String>) -> BTreeMap<String, Fact<String>> {
        let mut facts = BTreeMap::new();
        for question in Question::split(vpc_id, references, "sg-", "group-id") {
            let answer = self.security_groups_in(&question.filters()).await.map(|groups| {
                groups
                    .iter()
                    .filter_map(|group| {
                        let id = group.group_id()?.to_owned();
                        Some(Match {
                            id: id.clone(),
                            name: name_tag(group.tags()),
                            value: id,
                        })
                    })
                    .collect()
            });
            question.answer(&answer, "DescribeSecurityGroups", "security groups", &mut facts);
        }
        facts
    }

    async fn subnets_in(&self, filters: &[Filter]) -> Result<Vec<types::Subnet>, Failure> {
        let mut subnets = Vec::new();
        let mut token = None;
        loop {
            let request = self
                .ec2()
                .describe_subnets()
                .set_filters(Some(filters.to_vec()))
                .set_next_token(token)
                .send();
            let page = self.call(Service::Ec2, "DescribeSubnets", request).await?;
            subnets.extend(page.subnets.unwrap_or_default());
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(subnets);
            }
        }
    }

    async fn security_groups_in(&self, filters: &[Filter]) -> Result<Vec<types::SecurityGroup>, Failure> {
        let mut groups = Vec::new();
        let mut token = None;
        loop {
            let request = self
                .ec2()
                .describe_security_groups()
                .set_filters(Some(filters.to_vec()))
                .set_next_token(token)
                .send();
            let page = self.call(Service::Ec2, "DescribeSecurityGroups", request).await?;
            groups.extend(page.security_groups.unwrap_or_default());
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(groups);
            }
        }
    }
}

fn name_tag(tags: &[Tag]) -> Option<String> {
    tags.iter()
        .find(|tag| tag.key() == Some("Name"))?
        .value()
        .map(str::to_owned)
}

/// A thing that EC2 found.
struct Match<T> {
    id: String,
    name: Option<String>,
    value: T,
}

/// References of one kind that fit one call. Always by filter: named as ids, one unknown id would fail all.
struct Question<'a> {
    vpc_id: &'a str,
    filter: &'a str,
    by_id: bool,
    references: Vec<String>,
}

impl<'a> Question<'a> {
    fn split(vpc_id: &'a str, references: &BTreeSet<String>, prefix: &str, id_filter: &'a str) -> Vec<Self> {
        let (ids, names): (Vec<String>, Vec<String>) = references
            .iter()
            .cloned()
            .partition(|reference| reference.starts_with(prefix));
        [(ids, id_filter, true), (names, "tag:Name", false)]
            .into_iter()
            .flat_map(|(references, filter, by_id)| {
                let chunks: Vec<Vec<String>> = references.chunks(VALUES_A_FILTER).map(<[String]>::to_vec).collect();
                chunks.into_iter().map(move |references| Self {
                    vpc_id,
                    filter,
                    by_id,
                    references,
                })
            })
            .collect()
    }

    fn filters(&self) -> Vec<Filter> {
        // EC2 reads `*`, `?` and `\` in a filter as a pattern; a `Name` tag may hold them.
        let values = self.references.iter().map(|reference| escaped(reference)).collect();
        vec![
            Filter::builder().name("vpc-id").values(self.vpc_id).build(),
            Filter::builder().name(self.filter).set_values(Some(values)).build(),
        ]
    }

    fn answer<T: Clone>(
        self,
        answer: &Result<Vec<Match<T>>, Failure>,
        action: &str,
        things: &str,
        facts: &mut BTreeMap<String, Fact<T>>,
    ) {
        for reference in self.references {
            let fact = match answer {
                Err(failure) => Fact::Unknown(failure.clone()),
                Ok(matches) => {
                    let key = |found: &Match<T>| {
                        if self.by_id {
                            Some(found.id.clone())
                        } else {
                            found.name.clone()
                        }
                    };
                    let hits: Vec<_> = matches
                        .iter()
                        .filter(|found| key(found).as_ref() == Some(&reference))
                        .collect();
                    match hits.as_slice() {
                        [] => Fact::NotFound,
                        [one] => Fact::Found(one.value.clone()),
                        several => Fact::Unknown(ambiguous(&reference, several, action, things)),
                    }
                }
            };
            facts.insert(reference, fact);
        }
    }
}

fn ambiguous<T>(reference: &str, several: &[&Match<T>], action: &str, things: &str) -> Failure {
    let mut ids: Vec<&str> = several.iter().map(|found| found.id.as_str()).collect();
    ids.sort_unstable();
    let message = format!(
        "{} {things} of the VPC are named {reference:?}: {}",
        ids.len(),
        ids.join(", ")
    );
    failure(Service::Ec2, action, FailureClass::Invalid, None, &message)
}

fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '*' | '?' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests;
