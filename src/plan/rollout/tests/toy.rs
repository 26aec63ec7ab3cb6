//! A toy fleet that a rollout is played on: instances that boot, nodes that join, pods that take their time, budgets.
//!
//! It carries steps out and lets time pass from one event to the next, in an order that a seed decides. It holds no opinion
//! on what the steps should be; the invariants are in the tests.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};

use crate::api::{NodeRecord, NodeState};
use crate::plan::facts::workload::{Budget, EvictionAnswer, EvictionKind, Pod, PodId, PodKind};
use crate::plan::facts::{Fact, Instance, Node};
use crate::plan::rollout::drain::after;
use crate::plan::rollout::{Fleet, Hold, Limits, Member, Outcome, Step, Steps, advance, tidy};
use crate::plan::step::NodeEdit;

/// Numbers that look random and are the same each time (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How the toy behaves.
#[derive(Clone, Debug)]
pub struct Nature {
    /// Seconds from launch to a Ready node, at least and at most.
    pub boot: (u64, u64),
    /// Seconds from an accepted eviction to the pod's end.
    pub ending: (u64, u64),
    /// Seconds until a pod that moved is Ready again.
    pub moving: (u64, u64),
    /// Nodes of the target register and are never Ready.
    pub bad_image: bool,
    /// Instances of the target are never launched.
    pub no_capacity: bool,
    /// Pods of the one budget that may be down at a time; `None` = no budget.
    pub budget: Option<usize>,
    /// Percent of looks before which a spot instance is lost.
    pub spot_losses: u64,
    /// Percent of looks before which the operator forgets what it holds in memory.
    pub restarts: u64,
    /// A pod on every so many nodes never ends.
    pub stuck_every: Option<usize>,
}

impl Nature {
    pub fn calm() -> Self {
        Self {
            boot: (60, 120),
            ending: (5, 30),
            moving: (5, 20),
            bad_image: false,
            no_capacity: false,
            budget: None,
            spot_losses: 0,
            restarts: 0,
            stuck_every: None,
        }
    }
}

pub struct ToyMember {
    pub instance: Instance,
    pub on_target: bool,
    pub node: Option<Node>,
    pub pods: Fact<Vec<Pod>>,
    pub hosts_operator: bool,
    ready_at: Option<Timestamp>,
    gone_at: Option<Timestamp>,
    pods_end: BTreeMap<PodId, Timestamp>,
    pods_ready: BTreeMap<PodId, Timestamp>,
}

pub struct Toy {
    pub now: Timestamp,
    pub desired: usize,
    pub members: Vec<ToyMember>,
    pub limits: Limits,
    pub nature: Nature,
    pub hold: Option<Hold>,
    pub stopping: bool,
    pub suspended: Vec<&'static str>,
    pub refuge: bool,
    pub random: Random,
    pub transcript: String,
    joining: BTreeMap<String, Timestamp>,
    pub present: Vec<String>,
    short_since: Option<Timestamp>,
    counter: usize,
    start: Timestamp,
}

impl Toy {
    pub fn new(desired: usize, limits: Limits, nature: Nature, seed: u64) -> Self {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let mut toy = Self {
            now,
            desired,
            members: Vec::new(),
            limits,
            nature,
            hold: None,
            stopping: false,
            suspended: Vec::new(),
            refuge: true,
            random: Random::new(seed),
            transcript: String::new(),
            joining: BTreeMap::new(),
            present: Vec::new(),
            short_since: None,
            counter: 0,
            start: now,
        };
        for number in 0..desired {
            toy.launch(false);
            let member = toy.members.last_mut().unwrap();
            member.ready_at = None;
            member.node.as_mut().unwrap().ready = true;
            "InService".clone_into(&mut member.instance.lifecycle_state);
            let mut pods = vec![
                pod(&format!("app-{number}"), PodKind::Owned),
                pod(&format!("log-{number}"), PodKind::Daemon),
            ];
            pods[0].ready = true;
            member.pods = Fact::Found(pods);
        }
        toy
    }

    fn between(&mut self, (low, high): (u64, u64)) -> SignedDuration {
        let seconds = low + self.random.below(high - low + 1);
        SignedDuration::from_secs(i64::try_from(seconds).unwrap())
    }

    /// Launches an instance on what the group is pinned to.
    fn launch(&mut self, on_target: bool) {
        self.counter += 1;
        let id = format!("i-{:03}", self.counter);
        let boot = self.between(self.nature.boot);
        self.members.push(ToyMember {
            instance: Instance {
                id: id.clone(),
                zone: "zone-a".to_owned(),
                lifecycle_state: "Pending".to_owned(),
                healthy: true,
                template_id: Some("lt-1".to_owned()),
                template_version: Some(if on_target { 2 } else { 1 }),
            },
            on_target,
            node: Some(Node {
                name: format!("node-{id}"),
                instance_id: id,
                ready: false,
                image_label: None,
                cordoned: false,
                avoided: false,
                record: None,
            }),
            pods: Fact::Found(Vec::new()),
            hosts_operator: false,
            ready_at: (!(on_target && self.nature.bad_image)).then(|| after(self.now, boot)),
            gone_at: None,
            pods_end: BTreeMap::new(),
            pods_ready: BTreeMap::new(),
        });
    }

    fn fill(&mut self) {
        if self.nature.no_capacity || !self.suspended.is_empty() {
            return;
        }
        let standby = |member: &&ToyMember| member.instance.lifecycle_state != "Standby";
        while self
            .members
            .iter()
            .filter(|member| member.gone_at.is_none())
            .filter(standby)
            .count()
            < self.desired
        {
            self.launch(true);
        }
    }

    pub fn fleet<'a>(&'a self, pods: &'a [Fact<Vec<Pod>>]) -> Fleet<'a> {
        Fleet {
            now: self.now,
            target: "target",
            desired: self.desired,
            members: self
                .members
                .iter()
                .zip(pods)
                .map(|(member, pods)| Member {
                    instance: &member.instance,
                    on_target: member.on_target,
                    node: member.node.as_ref(),
                    pods: Some(pods),
                    hosts_operator: member.hosts_operator,
                })
                .collect(),
            limits: self.limits,
            hold: self.hold.clone(),
            stopping: self.stopping,
            suspended: self.suspended.clone(),
            refuge: self.refuge,
            joining: self.joining.clone(),
            present: self.present.iter().map(String::as_str).collect(),
            short_since: self.short_since,
            launch_failure: self.nature.no_capacity.then_some("no capacity"),
        }
    }

    /// Room that the one budget has now.
    fn room(&self) -> Option<i32> {
        let allowed = self.nature.budget?;
        let down = self
            .members
            .iter()
            .filter_map(|member| member.pods.found())
            .flatten()
            .filter(|pod| pod.kind == PodKind::Owned && (!pod.ready || pod.ends_at.is_some()))
            .count();
        i32::try_from(allowed)
            .ok()
            .map(|allowed| allowed - i32::try_from(down).unwrap())
    }

    fn seen_pods(&self) -> Vec<Fact<Vec<Pod>>> {
        let room = self.room();
        let budgets: Vec<Budget> = room
            .map(|room| Budget {
                name: "app".to_owned(),
                disruptions_allowed: room.max(0),
                never: false,
            })
            .into_iter()
            .collect();
        self.members
            .iter()
            .map(|member| {
                member.pods.clone().map(|mut pods| {
                    for pod in pods.iter_mut().filter(|pod| pod.kind == PodKind::Owned) {
                        if pod.budgets.is_empty() {
                            pod.budgets.clone_from(&budgets);
                        }
                    }
                    pods
                })
            })
            .collect()
    }

    /// One look, carried out.
    pub fn look(&mut self) -> Steps {
        let pods = self.seen_pods();
        let steps = advance(&self.fleet(&pods));
        let again = advance(&self.fleet(&pods));
        assert_eq!(steps.actions, again.actions, "the same fleet, the same steps");
        self.log(&steps);
        self.joining.clone_from(&steps.joining);
        self.short_since = steps.short_since;
        for step in &steps.actions {
            self.carry_out(step);
        }
        self.fill();
        steps
    }

    fn log(&mut self, steps: &Steps) {
        let texts: Vec<String> = steps.actions.iter().map(ToString::to_string).collect();
        let mut line = texts.join(", ");
        if steps.actions.is_empty()
            && let Some(wait) = steps.waits.first()
        {
            line = format!("wait {}: {}", wait.reason, wait.message);
        }
        match &steps.outcome {
            Outcome::Going => {}
            Outcome::Done => line.push_str("done"),
            Outcome::Idle => line.push_str("stopped"),
            Outcome::Halt(halt) => line = format!("halt {}: {}", halt.reason, halt.message),
        }
        for (_, warning) in &steps.warnings {
            let _ = write!(line, "; warns: {warning}");
        }
        let time = self.now.duration_since(self.start).as_secs();
        let counts = steps.counts;
        let said = format!(
            "{}/{} ready {} in hand {}  {line}",
            counts.updated, counts.total, counts.ready, counts.draining
        );
        if !self.transcript.ends_with(&format!("{said}\n")) {
            let _ = writeln!(self.transcript, "{time:>5} s  {said}");
        }
    }

    pub fn member(&mut self, id: &str) -> &mut ToyMember {
        self.members.iter_mut().find(|member| member.instance.id == id).unwrap()
    }

    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Edit { instance, edit, .. } => edit_node(self.member(instance).node.as_mut().unwrap(), edit),
            Step::Evict { pod, .. } => self.evict(pod),
            Step::Terminate { instance } => {
                let (now, delay) = (self.now, self.between((1, 20)));
                let member = self.member(instance);
                if member.gone_at.is_none() {
                    member.gone_at = Some(after(now, delay));
                    "Terminating".clone_into(&mut member.instance.lifecycle_state);
                }
            }
        }
    }

    fn evict(&mut self, id: &PodId) {
        let (now, ending) = (self.now, self.between(self.nature.ending));
        let number: usize = id.name.rsplit('-').next().unwrap().parse().unwrap();
        let stuck = self
            .nature
            .stuck_every
            .is_some_and(|every| number.is_multiple_of(every));
        let room = self.room();
        for member in &mut self.members {
            let Fact::Found(pods) = &mut member.pods else { continue };
            for pod in pods.iter_mut().filter(|pod| pod.id == *id) {
                let kind = if room.is_some_and(|room| room <= 0) && pod.ready {
                    EvictionKind::Budget("no room".to_owned())
                } else {
                    pod.ends_at = Some(after(now, SignedDuration::from_secs(30)));
                    if !stuck {
                        member.pods_end.insert(id.clone(), after(now, ending));
                    }
                    EvictionKind::Accepted
                };
                pod.answer = Some(EvictionAnswer { at: now, kind });
            }
        }
    }

    /// A node vanishes: a spot interruption, or somebody's click.
    pub fn lose(&mut self, index: usize) {
        let member = self.members.remove(index);
        let _ = writeln!(self.transcript, "         {} is gone", member.instance.id);
        self.pods_move(member.pods.found().cloned().unwrap_or_default());
        self.fill();
    }

    /// A node stops reporting for a while.
    pub fn flap(&mut self, index: usize) {
        let back = after(self.now, self.between((20, 200)));
        let member = &mut self.members[index];
        if let Some(node) = member.node.as_mut().filter(|node| node.ready) {
            node.ready = false;
            member.ready_at = Some(back);
            let _ = writeln!(self.transcript, "         {} is not Ready", member.instance.id);
        }
    }

    /// The operator starts again: what it only held in memory is gone.
    pub fn restart(&mut self) {
        for member in &mut self.members {
            if let Fact::Found(pods) = &mut member.pods {
                for pod in pods {
                    pod.answer = None;
                }
            }
        }
    }

    fn pods_move(&mut self, pods: Vec<Pod>) {
        for old in pods.into_iter().filter(|pod| pod.kind == PodKind::Owned) {
            self.counter += 1;
            let number = old.id.name.trim_start_matches("app-").to_owned();
            let fresh = PodId {
                uid: format!("uid-{}", self.counter),
                ..pod(&format!("app-{number}"), PodKind::Owned).id
            };
            let ready_at = after(self.now, self.between(self.nature.moving));
            let hosts: Vec<usize> = self
                .members
                .iter()
                .enumerate()
                .filter(|(_, member)| member.node.as_ref().is_some_and(|node| node.ready && !node.cordoned))
                .map(|(index, _)| index)
                .collect();
            // With no node to go to the pod stays Pending; the toy drops it then.
            if hosts.is_empty() {
                continue;
            }
            let host = hosts[usize::try_from(self.random.below(hosts.len() as u64)).unwrap()];
            let member = &mut self.members[host];
            if let Fact::Found(pods) = &mut member.pods {
                pods.push(Pod {
                    id: fresh.clone(),
                    ..pod("app-0", PodKind::Owned)
                });
                member.pods_ready.insert(fresh, ready_at);
            }
        }
    }

    /// Lets time pass to the next thing that happens, at the latest to `at`. Returns whether anything is still to come.
    pub fn pass(&mut self, at: Option<Timestamp>) -> bool {
        let times = self.members.iter().flat_map(|member| {
            let times = [member.ready_at, member.gone_at];
            let pods = member.pods_end.values().chain(member.pods_ready.values());
            times.into_iter().flatten().chain(pods.copied()).collect::<Vec<_>>()
        });
        let Some(next) = times.chain(at).filter(|time| *time > self.now).min() else {
            return false;
        };
        self.now = next;
        let mut homeless = Vec::new();
        for member in &mut self.members {
            if member.ready_at.is_some_and(|time| time <= next) {
                member.ready_at = None;
                if let Some(node) = &mut member.node {
                    node.ready = true;
                }
            }
            if member.instance.lifecycle_state == "Pending" {
                "InService".clone_into(&mut member.instance.lifecycle_state);
            }
            let Fact::Found(pods) = &mut member.pods else { continue };
            for pod in &mut *pods {
                pod.ready |= member.pods_ready.get(&pod.id).is_some_and(|time| *time <= next);
            }
            member.pods_ready.retain(|_, time| *time > next);
            let ended: Vec<Pod> = pods
                .iter()
                .filter(|pod| member.pods_end.get(&pod.id).is_some_and(|time| *time <= next))
                .cloned()
                .collect();
            pods.retain(|pod| !ended.iter().any(|other| other.id == pod.id));
            member.pods_end.retain(|_, time| *time > next);
            homeless.extend(ended);
            if member.gone_at.is_some_and(|time| time <= next) {
                homeless.append(pods);
            }
        }
        self.members
            .retain(|member| member.gone_at.is_none_or(|time| time > next));
        self.pods_move(homeless);
        self.fill();
        true
    }

    /// Takes back what is left on nodes.
    pub fn tidy(&mut self) {
        let pods = self.seen_pods();
        let steps = tidy(&self.fleet(&pods).members);
        for step in &steps {
            self.carry_out(step);
        }
    }
}

pub fn edit_node(node: &mut Node, edit: &NodeEdit) {
    match edit {
        NodeEdit::Take { target, since } => {
            let mut record = NodeRecord::new(target, NodeState::Draining, *since);
            record.cordoned = !node.cordoned;
            node.cordoned = true;
            node.record = Some(record);
        }
        NodeEdit::Release { keep } => {
            if node.record.as_ref().is_some_and(|record| record.cordoned) {
                node.cordoned = false;
            }
            node.avoided &= keep.is_some();
            node.record.clone_from(keep);
        }
        NodeEdit::Avoid => node.avoided = true,
        NodeEdit::Join { target, since } => node.record = Some(NodeRecord::new(target, NodeState::Joined, *since)),
    }
}

pub fn pod(name: &str, kind: PodKind) -> Pod {
    Pod {
        id: PodId {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
        },
        kind,
        ready: false,
        ends_at: None,
        grace_seconds: 30,
        budgets: Vec::new(),
        answer: None,
    }
}
