//! Owns the choices that a test has about its control plane. It must not start anything.

/// Controllers that every testbed needs: namespaces empty, owners take their dependents along, tokens and
/// service accounts exist, disruption budgets and replica counts are true.
const CONTROLLERS: &[&str] = &[
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "disruption-controller",
    "replicaset-controller",
    "deployment-controller",
];

/// What pods need besides: nodes that fail are noticed, and all the usual owners of pods.
const CONTROLLERS_OF_WORKLOADS: &[&str] = &[
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "daemonset-controller",
    "statefulset-controller",
];

#[derive(Clone, Debug)]
pub struct TestbedOptions {
    pub(crate) controllers: Vec<String>,
    pub(crate) workloads: bool,
    pub(crate) audit_reads: bool,
    pub(crate) api_server_flags: Vec<String>,
}

impl Default for TestbedOptions {
    fn default() -> Self {
        Self {
            controllers: CONTROLLERS.iter().map(ToString::to_string).collect(),
            workloads: false,
            audit_reads: false,
            api_server_flags: Vec::new(),
        }
    }
}

impl TestbedOptions {
    /// Run one more of kube-controller-manager's controllers, under its full name.
    #[must_use]
    pub fn controller(mut self, name: &str) -> Self {
        self.controllers.push(name.to_owned());
        self
    }

    /// Schedule pods and play their life: kube-scheduler, kwok, and the controllers that own pods. Start the nodes by
    /// [`super::Testbed::start_nodes`]: unrenewed leases turn nodes Unknown here.
    #[must_use]
    pub fn workloads(mut self) -> Self {
        self.workloads = true;
        self.controllers
            .extend(CONTROLLERS_OF_WORKLOADS.iter().map(ToString::to_string));
        self
    }

    /// Turn nodes Unknown, and evict, when their leases are not renewed: tell the node simulator to renew them.
    #[must_use]
    pub fn node_lifecycle(self) -> Self {
        self.controller("node-lifecycle-controller")
    }

    /// Note reads (get, list, watch) in the audit log too; otherwise it has writes only.
    #[must_use]
    pub fn audit_reads(mut self) -> Self {
        self.audit_reads = true;
        self
    }

    /// An API server that cannot write into what it admits, as before Kubernetes 1.36: it serves no
    /// `MutatingAdmissionPolicy`.
    #[must_use]
    pub fn without_mutating_policies(self) -> Self {
        let kinds = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
        let off = kinds.map(|kind| format!("admissionregistration.k8s.io/v1/{kind}=false"));
        // With the kinds gone, the plugin would wait for them and let no write pass.
        self.api_server_flag(&format!("--runtime-config={}", off.join(",")))
            .api_server_flag("--disable-admission-plugins=MutatingAdmissionPolicy")
    }

    /// One more flag for the API server, such as `--max-requests-inflight=50`.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }
}
