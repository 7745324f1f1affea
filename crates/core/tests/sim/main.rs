//! Random worlds in virtual time, and the laws that every history must keep.
//!
//! Servers crash, hang, flap, expire and refuse; callers call, cancel and wait; the machine sleeps; late events
//! of dead generations arrive. The driver here does what the real tender does, against servers that keep a
//! record of what they really ran.
//!
//! A world that breaks a law prints its seed. To see it happen again, step by step:
//! `SIM_SEED=17 cargo test -p linetender-core --test sim replay -- --nocapture`

#![allow(unreachable_pub, reason = "nobody can reach into a test")]
#![allow(clippy::struct_excessive_bools, reason = "a world is a bag of independent facts")]

mod call;
mod driver;
mod laws;
mod rng;
mod server;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use laws::Seen;
use world::World;

/// Worlds per shard; four shards run side by side.
const WORLDS: u64 = 300;
const CALLS: u32 = 100;
const REPLAY: &str = "cargo test -p linetender-core --test sim replay -- --nocapture";

fn one_of_the_settings(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "how a person asks for one world, or for more of them")]
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

fn shard(number: u64) {
    let worlds = one_of_the_settings("SIM_WORLDS").map_or(WORLDS, |all| all / 4);
    let mut seen = Seen::default();
    for seed in (0..worlds).map(|world| world * 4 + number) {
        let played = catch_unwind(AssertUnwindSafe(|| World::new(seed, false).play(CALLS)));
        match played.unwrap_or_else(|_| Err("panicked, see above".into())) {
            Ok(world) => seen.add(&world),
            Err(broken) => panic!("world {seed}: {broken}\nreplay: SIM_SEED={seed} {REPLAY}"),
        }
    }
    println!("{worlds} worlds of {CALLS} calls: {seen:#?}");
    seen.everything();
}

#[test]
fn laws_hold_in_random_worlds_shard_0() {
    shard(0);
}

#[test]
fn laws_hold_in_random_worlds_shard_1() {
    shard(1);
}

#[test]
fn laws_hold_in_random_worlds_shard_2() {
    shard(2);
}

#[test]
fn laws_hold_in_random_worlds_shard_3() {
    shard(3);
}

#[test]
fn replay() {
    if let Some(seed) = one_of_the_settings("SIM_SEED") {
        let seen =
            World::new(seed, true).play(CALLS).unwrap_or_else(|broken| panic!("world {seed}: {broken}"));
        println!("{seen:#?}");
    }
}

#[test]
fn a_world_is_the_same_each_time_it_is_played() {
    let play = || format!("{:?}", World::new(7, false).play(CALLS).unwrap());
    assert_eq!(play(), play());
}
