//! What several gateways that share their servers came to: `linetender drill fleet --json` writes this.

use serde::{Deserialize, Serialize};

/// All of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Fleet {
    /// What chance began with.
    pub seed: u64,
    /// How long there were faults.
    pub seconds: u64,
    /// How many agents.
    pub agents: usize,
    /// How many servers.
    pub servers: usize,
    /// How long a lease lasted.
    pub lease_seconds: f64,
    /// Whether the drill was a debug build, and so the gateways, if no other binary was named.
    pub debug: bool,
    /// Whether the gateways were a fleet.
    pub fleet: bool,
    /// What had to be left out, and why.
    pub missing: Vec<String>,
    /// What must not be.
    pub findings: Vec<String>,
    /// Calls that ran more than once, by the servers' own books.
    pub twice: usize,
    /// Calls that were told nothing in time.
    pub hung: usize,
    /// Calls that were told what is not so, or too little.
    pub wrong_verdicts: usize,
    /// Servers that had processes on two nodes at once.
    pub trees_on_two_nodes: usize,
    /// How often it was looked for those.
    pub looks: u64,
    /// The longest time that the machine stood still: no look came.
    pub longest_stall_seconds: f64,
    /// What callers were told.
    pub calls: Calls,
    /// From the fault to the first answer of a new process of a line.
    pub takeover_seconds: Option<Spread>,
    /// p99 of a server's own start, meanwhile.
    pub start_p99_seconds: f64,
    /// The longest time without an answered stateless call while there was no fault.
    pub calm_stateless_gap_seconds: f64,
    /// Each kind of fault.
    pub faults: Vec<Fault>,
}

/// What callers were told.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Calls {
    /// By the server.
    pub answered: usize,
    /// Told so, or the connection broke.
    pub unknown: usize,
    /// Told so.
    pub not_executed: usize,
    /// Of those unknown: connections that broke.
    pub broken: usize,
    /// Sessions that a gateway did not know.
    pub sessions_forgotten: usize,
    /// Sessions.
    pub sessions: u64,
    /// Stateless calls at a steady pace that were answered.
    pub stateless_probes: usize,
    /// And that were not.
    pub stateless_probes_failed: u64,
}

/// A kind of fault, and how it was felt.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Fault {
    /// In words.
    pub name: String,
    /// How often it was done.
    pub times: usize,
    /// From the fault to the first answer of a new process, for each line that the gateway had.
    pub takeover_seconds: Option<Spread>,
    /// From the end of the fault until every gateway answered a call of every server.
    pub recovery_seconds: Option<Spread>,
    /// The longest time without an answered stateless call.
    pub stateless_gap_seconds: f64,
    /// Connections that broke.
    pub broken: usize,
    /// Sessions that a gateway did not know.
    pub sessions_forgotten: usize,
}

/// How something is spread.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Spread {
    /// Of how many.
    pub count: usize,
    /// The middle.
    pub p50: f64,
    /// All but one of a hundred are below.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}
