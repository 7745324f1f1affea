//! The gateway's soak, as short as CI can bear. The long one is `linetender drill soak gateway 300`.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::path::PathBuf;
use std::time::Duration;

use linetender_drill::soak::{Options, gateway_verdict};

#[test]
fn agents_and_servers_get_through_a_few_seconds_of_faults() {
    let options = Options {
        linetender: PathBuf::from(env!("CARGO_BIN_EXE_linetender")),
        time: Duration::from_secs(8),
        seed: 1,
        agents: 16,
        principals: 0,
        // A ratio of two short windows on a shared machine says nothing.
        strict: false,
    };
    let verdict = gateway_verdict(&options).unwrap();
    assert!(verdict.findings.is_empty(), "{verdict}");
}
