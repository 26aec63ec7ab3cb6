//! The image catalogue: the followed image parameters and the images themselves.
//!
//! Owns one reading of each parameter and image per interval, whatever the number of groups that follow it, and
//! when each value was first seen. Must not decide which image a group gets.

mod reads;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt as _, Stream};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::reads::Reads;
use super::call::Service;
use super::changes::Changes;
use super::connection::Connection;
use super::error::failure;
use super::images::IMAGES_A_CALL;
use super::keeper::Keeper;
use super::parameters::NAMES_A_CALL;
use crate::plan::evidence::ParameterHistory;
use crate::plan::facts::{Fact, Failure, FailureClass, Image, Parameter};

/// How the catalogue tells the time of day, for "first seen".
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What one follower (a group) wants to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// SSM parameter names. The images that they name are followed along.
    pub parameters: BTreeSet<String>,
    /// Image ids.
    pub images: BTreeSet<String>,
}

/// What changed, by name; a follower looks again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedImage {
    /// A parameter's value, version or existence.
    Parameter(String),
    /// Anything about an image, by id.
    Image(String),
}

/// The catalogue. Clones share everything.
#[derive(Clone)]
pub struct Catalogue {
    shared: Arc<Shared>,
}

struct Shared {
    parameters: Arc<Keeper<Parameter>>,
    images: Keeper<Image>,
    followers: Mutex<HashMap<String, Followed>>,
    histories: Arc<Mutex<BTreeMap<String, ParameterHistory>>>,
    interval: Duration,
    newly_followed: Notify,
    changes: Arc<Changes<ChangedImage>>,
}

impl Catalogue {
    /// An empty catalogue that reads what is followed once an interval.
    #[must_use]
    pub fn new(connection: &Connection, interval: Duration, now: Now) -> Self {
        Self::with(Arc::new(connection.clone()), interval, now)
    }

    fn with(reads: Arc<dyn Reads>, interval: Duration, now: Now) -> Self {
        let changes = Arc::new(Changes::default());
        let histories = Arc::new(Mutex::new(BTreeMap::<String, ParameterHistory>::new()));
        let parameters = Arc::new_cyclic(|keeper: &std::sync::Weak<Keeper<Parameter>>| {
            let (keeper, reads) = (keeper.clone(), Arc::clone(&reads));
            let (publish, histories) = (Arc::clone(&changes), Arc::clone(&histories));
            Keeper::new(
                NAMES_A_CALL,
                interval,
                move |names| {
                    let (keeper, reads) = (keeper.clone(), Arc::clone(&reads));
                    async move {
                        // A name that spoiled its bundle goes alone from then on: else each interval would pay
                        // for the splitting again.
                        let refused = |name: &String| keeper.upgrade().is_some_and(|keeper| keeper.refused(name));
                        let (alone, together): (Vec<_>, Vec<_>) = names.into_iter().partition(refused);
                        let mut facts: BTreeMap<_, _> = reads.parameters(together).await.into_iter().collect();
                        for name in alone {
                            facts.extend(reads.parameters(vec![name]).await);
                        }
                        facts
                    }
                    .boxed()
                },
                move |name, fact| {
                    if let Fact::Found(parameter) = fact {
                        let mut histories = histories.lock().unwrap_or_else(PoisonError::into_inner);
                        histories.entry(name.to_owned()).or_default().seen(parameter, now());
                    }
                    publish.publish([ChangedImage::Parameter(name.to_owned())]);
                },
            )
        });
        let publish = Arc::clone(&changes);
        let images = Keeper::new(
            IMAGES_A_CALL,
            interval,
            move |ids| {
                let reads = Arc::clone(&reads);
                async move {
                    let answer = reads.images(ids.clone()).await;
                    ids.into_iter()
                        .map(|id| (id.clone(), image_fact(&answer, &id)))
                        .collect()
                }
                .boxed()
            },
            move |id, _| publish.publish([ChangedImage::Image(id.to_owned())]),
        );
        let shared = Shared {
            parameters,
            images,
            followers: Mutex::default(),
            histories,
            interval,
            newly_followed: Notify::new(),
            changes,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn followers(&self) -> MutexGuard<'_, HashMap<String, Followed>> {
        self.shared.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn histories(&self) -> MutexGuard<'_, BTreeMap<String, ParameterHistory>> {
        self.shared.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what this follower wants to know: this and no more. What is new is read at once.
    pub fn follow(&self, follower: &str, wanted: Followed) {
        let mut followers = self.followers();
        if followers.get(follower) != Some(&wanted) {
            followers.insert(follower.to_owned(), wanted);
            self.shared.newly_followed.notify_one();
        }
    }

    /// Forgets a follower.
    pub fn unfollow(&self, follower: &str) {
        self.followers().remove(follower);
    }

    /// A parameter: what is known of it, also if the last read failed; reads it now if nothing is known.
    pub async fn parameter(&self, name: &str) -> Fact<Parameter> {
        let followed = self
            .followers()
            .values()
            .any(|followed| followed.parameters.contains(name));
        self.shared
            .parameters
            .get(name, followed)
            .await
            .unwrap_or_else(|| cut_short(Service::Ssm, "GetParameters"))
    }

    /// Why the last reading of a parameter failed, if it did. The fact may still be known from before.
    #[must_use]
    pub fn parameter_failure(&self, name: &str) -> Option<Failure> {
        self.shared.parameters.failure(name)
    }

    /// An image: what is known of it, also if the last read failed; reads it now if nothing is known.
    pub async fn image(&self, id: &str) -> Fact<Image> {
        let followed = self.follows_image(id);
        self.shared
            .images
            .get(id, followed)
            .await
            .unwrap_or_else(|| cut_short(Service::Ec2, "DescribeImages"))
    }

    /// When the value of a parameter and those before it were first seen.
    #[must_use]
    pub fn history(&self, name: &str) -> Option<ParameterHistory> {
        self.histories().get(name).cloned()
    }

    /// All histories, to be kept where they outlive the process.
    #[must_use]
    pub fn all_histories(&self) -> BTreeMap<String, ParameterHistory> {
        self.histories().clone()
    }

    /// Takes over histories from an earlier process. What this process saw since stays.
    pub fn restore(&self, earlier: BTreeMap<String, ParameterHistory>) {
        let mut histories = self.histories();
        for (name, earlier) in earlier {
            histories.entry(name).or_default().after(earlier);
        }
    }

    /// Reads what is followed once an interval, and what is new at once, until cancelled.
    pub async fn run(&self, cancel: CancellationToken) {
        let interval = self.shared.interval;
        // The first round comes with the first that is followed.
        let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let refresh = tokio::select! {
                () = cancel.cancelled() => return,
                _ = ticks.tick() => true,
                () = self.shared.newly_followed.notified() => false,
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.read(refresh) => {}
            }
        }
    }

    async fn read(&self, refresh: bool) {
        let Shared { parameters, images, .. } = &*self.shared;
        // The parameters first: the images that they name are read in the same round.
        let names = self.followed().parameters;
        if refresh {
            parameters.refresh(names).await;
        } else {
            parameters.fill(names).await;
        }
        let followed = self.followed();
        if refresh {
            images.refresh(followed.images.clone()).await;
            images.retain(&followed.images);
            parameters.retain(&followed.parameters);
        } else {
            images.fill(followed.images).await;
        }
    }

    /// Whether anyone follows this image, by its id or by a parameter that names it.
    fn follows_image(&self, id: &str) -> bool {
        let names = |name: &String| self.shared.parameters.holds(name, |parameter| parameter.value == id);
        self.followers()
            .values()
            .any(|followed| followed.images.contains(id) || followed.parameters.iter().any(names))
    }

    /// What anyone follows, with the images that the parameters name.
    fn followed(&self) -> Followed {
        let mut all = Followed::default();
        for followed in self.followers().values() {
            all.parameters.extend(followed.parameters.iter().cloned());
            all.images.extend(followed.images.iter().cloned());
        }
        let named = all
            .parameters
            .iter()
            .filter_map(|name| self.shared.parameters.found(name));
        let images: Vec<String> = named
            .map(|parameter| parameter.value)
            .filter(|id| id.starts_with("ami-"))
            .collect();
        all.images.extend(images);
        all
    }

    /// A stream of what changes from now on. What is learned of a name for the first time is a change, too.
    pub fn watch_changes(&self) -> impl Stream<Item = ChangedImage> + Send + Unpin + use<> {
        self.shared.changes.follow()
    }
}

/// EC2 leaves an unknown image out of its answer.
fn image_fact(answer: &Result<BTreeMap<String, Image>, Failure>, id: &str) -> Fact<Image> {
    match answer {
        Ok(found) => found.get(id).cloned().map_or(Fact::NotFound, Fact::Found),
        Err(failure) => Fact::Unknown(failure.clone()),
    }
}

fn cut_short<T>(service: Service, action: &str) -> Fact<T> {
    Fact::Unknown(failure(
        service,
        action,
        FailureClass::Unavailable,
        None,
        "the read was cut short",
    ))
}
