//! EKS clusters: reads.
//!
//! Owns the call that describes a cluster. Must not cache; [`super::clusters`] does.

use aws_sdk_eks::types;

use super::call::Service;
use super::connection::Connection;
use super::error::{failure, three_way};
use crate::plan::facts::{Cluster, Fact, Failure, FailureClass};

const ACTION: &str = "DescribeCluster";

impl Connection {
    /// A cluster by name. One that is still being made, and so has no endpoint yet, is unknown (`Busy`).
    pub async fn cluster(&self, name: &str) -> Fact<Cluster> {
        let request = self.eks().describe_cluster().name(name).send();
        match three_way(self.call(Service::Eks, ACTION, request).await) {
            Fact::Found(answer) => answer
                .cluster()
                .ok_or_else(|| missing("cluster", ""))
                .and_then(cluster)
                .into_fact(),
            Fact::NotFound => Fact::NotFound,
            Fact::Unknown(failure) => Fact::Unknown(failure),
        }
    }
}

trait IntoFact<T> {
    fn into_fact(self) -> Fact<T>;
}

impl<T> IntoFact<T> for Result<T, Failure> {
    fn into_fact(self) -> Fact<T> {
        self.map_or_else(Fact::Unknown, Fact::Found)
    }
}

fn missing(what: &str, status: &str) -> Failure {
    let message = format!("the answer lacks the {what}; the cluster is {status}");
    failure(Service::Eks, ACTION, FailureClass::Busy, None, &message)
}

fn cluster(cluster: &types::Cluster) -> Result<Cluster, Failure> {
    let status = cluster
        .status()
        .map_or("in an unknown state", types::ClusterStatus::as_str);
    let need = |value: Option<&str>, what: &str| value.map(str::to_owned).ok_or_else(|| missing(what, status));
    // Exactly one of the two is set, by the cluster's address family.
    let network = cluster.kubernetes_network_config();
    let cidr = network.and_then(|network| {
        network
            .service_ipv4_cidr()
            .filter(|cidr| !cidr.is_empty())
            .or(network.service_ipv6_cidr())
    });
    Ok(Cluster {
        name: need(cluster.name(), "name")?,
        kubernetes_version: need(cluster.version(), "Kubernetes version")?,
        endpoint: need(cluster.endpoint(), "endpoint")?,
        certificate_authority: need(
            cluster.certificate_authority().and_then(|authority| authority.data()),
            "certificate authority",
        )?,
        service_cidr: need(cidr, "service CIDR")?,
        vpc_id: need(cluster.resources_vpc_config().and_then(|vpc| vpc.vpc_id()), "VPC")?,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn answer() -> types::builders::ClusterBuilder {
        types::Cluster::builder()
            .name("c")
            .version("1.33")
            .status(types::ClusterStatus::Active)
            .endpoint("https://x")
            .certificate_authority(types::Certificate::builder().data("Y2E=").build())
            .resources_vpc_config(types::VpcConfigResponse::builder().vpc_id("vpc-1").build())
    }

    fn network() -> types::builders::KubernetesNetworkConfigResponseBuilder {
        types::KubernetesNetworkConfigResponse::builder()
    }

    #[test]
    fn both_address_families_have_a_cidr() {
        let four = answer()
            .kubernetes_network_config(network().service_ipv4_cidr("10.100.0.0/16").build())
            .build();
        assert_eq!(cluster(&four).unwrap().service_cidr, "10.100.0.0/16");
        let six = network().service_ipv4_cidr("").service_ipv6_cidr("fd00::/108").build();
        let six = answer().kubernetes_network_config(six).build();
        assert_eq!(cluster(&six).unwrap().service_cidr, "fd00::/108");
    }

    #[test]
    fn a_cluster_in_the_making_is_busy() {
        let failure = cluster(&answer().status(types::ClusterStatus::Creating).build()).unwrap_err();
        assert_eq!(failure.class, FailureClass::Busy);
        assert!(
            failure.message.ends_with("the cluster is CREATING"),
            "{}",
            failure.message
        );
    }
}
