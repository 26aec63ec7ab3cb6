//! What the reconciles of instance groups share.
//!
//! Owns the stores, writers and clients, and who is woken by what. Must not hold state that a restart would miss: all of it
//! is rebuilt from the API server and AWS.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store};
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::followers::{Followed, Followers, GroupName};
use super::orphans::Orphans;
use super::slots::{OfSchedule, Slots};
use super::terminations::Terminations;
use crate::api::{InstanceGroup, InstanceGroupUpgradeRequest};
use crate::aws::Connection;
use crate::aws::catalogue::{self, Catalogue};
use crate::aws::clusters::Clusters;
use crate::aws::inventory::Inventory;
use crate::aws::lookups::Lookups;
use crate::aws::server_clock::OverheardClock;
use crate::cluster::budgets::BudgetIndex;
use crate::cluster::events::Publisher;
use crate::cluster::evictions::Evictions;
use crate::cluster::groups::GroupWriter;
use crate::cluster::node_writes::NodeWriter;
use crate::cluster::nodes::NodeIndex;
use crate::cluster::own_writes::OwnWrites;
use crate::cluster::pods::PodWatches;
use crate::cluster::policies::Vouching;
use crate::cluster::requests::RequestWriter;
use crate::cluster::settings::SettingsInForce;
use crate::cluster::stores::find;
use crate::controllers::backoff::Backoff;
use crate::controllers::unreadable::Unreadable;
use crate::fence::Fence;
use crate::metrics::{ReconcileMetrics, UpgradeMetrics};
use crate::plan::settings::{GroupLabels, InForce, Schedule};

/// An instance group as watched: one that cannot be read does not stop the others.
pub type GuardedGroup = DeserializeGuard<InstanceGroup>;
/// An upgrade request as watched.
pub type GuardedRequest = DeserializeGuard<InstanceGroupUpgradeRequest>;

/// What the reconciles share.
pub struct Context {
    /// Watched instance groups.
    pub groups: Store<GuardedGroup>,
    /// Watched upgrade requests.
    pub requests: Store<GuardedRequest>,
    /// Watched namespaces, metadata only.
    pub namespaces: Store<PartialObjectMeta<Namespace>>,
    /// The fleet's settings.
    pub settings: SettingsInForce,
    /// Nodes by instance.
    pub nodes: Arc<NodeIndex>,
    /// Pods of the nodes that groups follow.
    pub pods: PodWatches,
    /// Budgets of pods.
    pub budgets: BudgetIndex,
    /// Our writes on groups that the watch may not show yet.
    pub own_groups: OwnWrites<InstanceGroup>,
    /// Our writes on requests that the watch may not show yet.
    pub own_requests: OwnWrites<InstanceGroupUpgradeRequest>,
    /// Requests whose group is gone.
    pub orphans: Orphans,
    /// Our terminations that AWS may not show yet.
    pub terminations: Terminations,
    /// How our evictions were answered.
    pub answers: Answers,
    /// Whether the API server vouches for the names of who decides.
    pub vouching: Vouching,
    /// The fleet's slots for rollouts.
    pub slots: Slots,
    /// Name of the node that this operator runs on, where it is known.
    pub own_node: Option<String>,
    /// Writes groups.
    pub group_writer: GroupWriter,
    /// Writes requests.
    pub request_writer: RequestWriter,
    /// Writes Nodes.
    pub node_writer: NodeWriter,
    /// Evicts pods.
    pub evictions: Evictions,
    /// Publishes Events.
    pub publisher: Publisher,
    /// Writes at AWS.
    pub connection: Connection,
    /// Auto Scaling groups and launch templates.
    pub inventory: Inventory,
    /// Parameters and images.
    pub catalogue: Catalogue,
    /// AWS's clock.
    pub server_clock: OverheardClock,
    /// EKS clusters.
    pub clusters: Clusters,
    /// Subnets, security groups, types, profiles.
    pub lookups: Lookups,
    /// Who follows what.
    pub followers: Followers,
    /// Wakes groups.
    pub wakes: Wakes,
    /// How many launch template versions are kept even if nothing needs them.
    pub kept_versions: usize,
    /// Pauses after failures.
    pub backoff: Backoff,
    /// Objects that cannot be read.
    pub unreadable: Unreadable,
    /// Cancelled when the process is asked to end: what is under way is finished, nothing new begins.
    pub stop: CancellationToken,
    /// Open while this process leads. Every write passes it; a pass looks at it before each action.
    pub fence: Fence,
    /// Counts reconciles.
    pub metrics: ReconcileMetrics,
    /// Counts what becomes of upgrades.
    pub upgrades: UpgradeMetrics,
}

impl Context {
    /// Whether a pass may take its next action.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.stop.is_cancelled() && self.fence.is_open()
    }

    /// Says what a group follows, and lets the pollers and the watches of pods know. Nothing = the group is gone.
    pub fn follow(&self, group: &GroupName, follows: BTreeSet<Followed>) {
        let wanted = catalogue::Followed {
            parameters: named(&follows, |followed| match followed {
                Followed::Parameter(name) => Some(name),
                _ => None,
            }),
            images: named(&follows, |followed| match followed {
                Followed::Image(id) => Some(id),
                _ => None,
            }),
        };
        let nodes = named(&follows, |followed| match followed {
            Followed::Pods(node) => Some(node),
            _ => None,
        });
        if !self.followers.set(group, follows) {
            return;
        }
        let key = format!("{}/{}", group.0, group.1);
        self.catalogue.follow(&key, wanted);
        self.pods.follow(&key, nodes);
        let clusters = named(&self.followers.all(), |followed| match followed {
            Followed::Cluster(name) => Some(name),
            _ => None,
        });
        self.clusters.follow(clusters.clone());
        self.inventory.set_cluster_names(clusters);
    }

    /// Wakes as many of the groups that wait for a slot as there are free ones, for each schedule.
    pub fn slot_freed(&self) {
        let in_force = self.settings.now();
        let schedules = in_force.binding().map(|settings| settings.schedules.as_slice());
        let of_schedules = schedules.unwrap_or_default().iter().map(OfSchedule::from);
        for schedule in of_schedules.chain([OfSchedule::default()]) {
            let waiting = self.followers.of(&Followed::Slot(schedule.name.to_owned()));
            for (namespace, name) in waiting.into_iter().take(self.slots.free(schedule)) {
                self.wakes.wake(&namespace, &name);
            }
        }
    }

    /// Labels of a namespace.
    #[must_use]
    pub fn namespace_labels(&self, namespace: &str) -> BTreeMap<String, String> {
        let found = find(&self.namespaces, None, namespace);
        found
            .and_then(|namespace| namespace.metadata.labels.clone())
            .unwrap_or_default()
    }

    /// The schedule for a group.
    #[must_use]
    pub fn schedule<'a>(&self, in_force: &'a InForce, group: &InstanceGroup) -> Option<&'a Schedule> {
        let namespace = self.namespace_labels(&group.namespace().unwrap_or_default());
        let labels = GroupLabels {
            namespace: &namespace,
            group: group.labels(),
        };
        in_force.binding()?.schedule(&labels)
    }

    /// Wakes every group.
    pub fn wake_all(&self) {
        for group in self.groups.state() {
            self.wakes
                .wake(&group.namespace().unwrap_or_default(), &group.name_any());
        }
    }

    /// Wakes all groups that follow something.
    pub fn changed(&self, followed: &Followed) {
        for (namespace, name) in self.followers.of(followed) {
            self.wakes.wake(&namespace, &name);
        }
    }
}

/// The names that `select` picks.
fn named(follows: &BTreeSet<Followed>, select: impl Fn(&Followed) -> Option<&String>) -> BTreeSet<String> {
    follows.iter().filter_map(select).cloned().collect()
}

/// The way to make a group be looked at.
#[derive(Clone)]
pub struct Wakes {
    sender: UnboundedSender<ObjectRef<GuardedGroup>>,
}

impl Wakes {
    /// Wakes over this channel.
    #[must_use]
    pub fn new(sender: UnboundedSender<ObjectRef<GuardedGroup>>) -> Self {
        Self { sender }
    }

    /// Has a group looked at soon.
    pub fn wake(&self, namespace: &str, name: &str) {
        // The receiver only goes away when the process ends.
        let _ = self.sender.unbounded_send(ObjectRef::new(name).within(namespace));
    }
}
