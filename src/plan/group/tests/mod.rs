//! Tests of the group's plan on the toy world: whole stories as transcripts, and the cases of the gate.

mod aging;
mod cases;
mod hands_off;
mod images;
mod locks;
mod names;
mod retreats;
mod rollouts;
mod shrinking;
mod stories;
mod subnets;
mod upkeep;

use crate::api::upgrade_request::Phase;
use crate::plan::test_world::World;

/// A locked group with a pending request for `ami-0b`.
fn pending() -> World {
    let mut world = World::at_rest(true);
    world.publish("ami-0b");
    world.run();
    assert_eq!(world.phases(), [Phase::Pending]);
    world
}

/// The actions at AWS since the last look at them.
fn aws(world: &mut World) -> Vec<String> {
    std::mem::take(&mut world.aws_actions)
}
