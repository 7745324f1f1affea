//! Leases in random worlds: nodes that sleep, die and have clocks of their own, a directory that loses, delays, repeats and forgets,
//! and reapers that know nothing but the last deadline they were told.
//!
//! The rules are the real ones; the directory is a compare-and-swap register behind a bad network. `cargo test -p linetender-core --test
//! leases`; `LEASE_WORLDS=10000` for more of them.

#[path = "../sim/rng.rs"]
#[expect(dead_code, unreachable_pub, reason = "the other simulation has use for all of it")]
mod rng;
mod world;

use world::World;

#[expect(clippy::disallowed_methods, reason = "a person asks for more worlds there")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

/// How many worlds, and how many steps they came to: at least a hundred thousand are what CI demands.
#[test]
fn two_trees_of_one_line_never_live_at_once() {
    let (first, worlds) = (number("LEASE_FIRST").unwrap_or(0), number("LEASE_WORLDS").unwrap_or(5_000));
    let mut total = world::Seen::default();
    for seed in first..first + worlds {
        match World::new(seed).run() {
            Ok(seen) => total.add(&seen),
            Err(broken) => panic!("world {seed}: {broken}"),
        }
    }
    println!("{worlds} worlds: {total:?}");
    assert!(total.steps >= 100_000, "only {} steps", total.steps);
    // What never happened was not tested.
    let never: Vec<_> = total.happened().into_iter().filter(|(_, times)| *times == 0).collect();
    assert!(never.is_empty(), "never happened: {never:?}");
}
