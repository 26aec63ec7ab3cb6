//! EC2 instance types: reads.
//!
//! Owns the two calls that say what a type is and where it is offered. Must not cache; [`super::lookups`] does.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{Filter, InstanceTypeInfo, LocationType, ProcessorInfo};

use super::call::Service;
use super::connection::Connection;
use crate::plan::facts::{Fact, Failure, InstanceType};

impl Connection {
    /// An instance type of this region, with the zones that offer it.
    pub async fn instance_type(&self, name: &str) -> Fact<InstanceType> {
        match self.look_up_instance_type(name).await {
            Ok(Some(found)) => Fact::Found(found),
            Ok(None) => Fact::NotFound,
            Err(failure) => Fact::Unknown(failure),
        }
    }

    async fn look_up_instance_type(&self, name: &str) -> Result<Option<InstanceType>, Failure> {
        // By filter: an unknown name is then an empty answer, not an error to be told from others.
        let filter = Filter::builder().name("instance-type").values(name).build();
        let request = self.ec2().describe_instance_types().filters(filter.clone()).send();
        let answer = self.call(Service::Ec2, "DescribeInstanceTypes", request).await?;
        let Some(architectures) = architectures(answer.instance_types(), name) else {
            return Ok(None);
        };
        let mut zones = BTreeSet::new();
        let mut token = None;
        loop {
            let request = self
                .ec2()
                .describe_instance_type_offerings()
                .location_type(LocationType::AvailabilityZone)
                .filters(filter.clone())
                .set_next_token(token)
                .send();
            let page = self
                .call(Service::Ec2, "DescribeInstanceTypeOfferings", request)
                .await?;
            zones.extend(
                page.instance_type_offerings()
                    .iter()
                    .filter_map(|offer| offer.location().map(str::to_owned)),
            );
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(Some(InstanceType {
                    name: name.to_owned(),
                    architectures,
                    zones,
                }));
            }
        }
    }
}

/// EC2 reads wildcards in the filter's value, so the name is compared again here.
fn architectures(answer: &[InstanceTypeInfo], name: &str) -> Option<BTreeSet<String>> {
    let found = answer
        .iter()
        .find(|info| info.instance_type().is_some_and(|found| found.as_str() == name))?;
    let processor = found.processor_info();
    let supported = processor
        .map(ProcessorInfo::supported_architectures)
        .unwrap_or_default();
    Some(
        supported
            .iter()
            .map(|architecture| architecture.as_str().to_owned())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::ArchitectureType;
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn only_the_exact_name_counts() {
        let processor = ProcessorInfo::builder()
            .supported_architectures(ArchitectureType::Arm64)
            .build();
        let answer = [InstanceTypeInfo::builder()
            .instance_type("m6g.large".into())
            .processor_info(processor)
            .build()];
        assert_eq!(architectures(&answer, "m6g.large"), Some(["arm64".to_owned()].into()));
        assert_eq!(architectures(&answer, "m6g.*"), None);
    }
}
