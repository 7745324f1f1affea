//! What a holder says of itself: one JSON document with a version, so that it can grow.

mod calls;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use calls::{CallReport, ServerReport, SlowReport, UnderWayReport, Verdicts, by_reason};

use super::Inner;
use crate::journal::{LeftProcess, Reason};
use linetender::State;
use linetender_wire::wall::rfc3339;

/// The version of the document. It changes when something that was there means something else; what is new does not
/// change it, and a reader passes over it.
pub const REPORT_VERSION: u32 = 1;

/// Status report of one linetender process.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The process that reports.
    pub holder: About,
    /// Its lines, one per server connection.
    pub lines: Vec<LineReport>,
    /// What was asked of each server, and what became of it.
    #[serde(default)]
    pub servers: Vec<ServerReport>,
    /// Who shares which server, if it is a keeper.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SharedReport>,
    /// The fleet that it is in, if it is a gateway of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetReport>,
}

/// Several gateways that share their servers, as one of them sees it.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct FleetReport {
    /// Name of the fleet.
    pub fleet: String,
    /// Name of this gateway in it.
    pub node: String,
    /// Whether it is connected to NATS.
    pub connected: bool,
    /// Gateways that are there, this one among them.
    pub nodes: Vec<NodeReport>,
    /// Servers that the fleet shares.
    pub servers: Vec<PlacedReport>,
}

/// A gateway of a fleet.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct NodeReport {
    /// Its name.
    pub node: String,
    /// Version of linetender.
    pub version: String,
    /// How many servers it runs.
    pub runs: usize,
    /// Whether it is about to leave.
    pub leaves: bool,
}

/// A server that a fleet shares.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct PlacedReport {
    /// Server name.
    pub server: String,
    /// Name of the gateway that runs it; its number, if it is not there any more; absent, if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_at: Option<String>,
    /// Whether that is this gateway.
    pub here: bool,
    /// Whether it is being moved to another gateway.
    pub moves: bool,
}

/// A shared server, and who shares it.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct SharedReport {
    /// Server name.
    pub server: String,
    /// Process ids of the `linetender run --share` that use it.
    pub agents: Vec<i32>,
    /// Names of the variables that keep it apart from another server of the same command. Their values are shown nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<String>,
}

/// The process that reports.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct About {
    /// Process id.
    pub pid: u32,
    /// How agents connect: `run` or `serve`.
    pub door: String,
    /// Version of linetender.
    pub version: String,
    /// Name of the server, if it is a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<String>,
    /// Start time (RFC 3339).
    pub began: String,
    /// Milliseconds since then.
    pub began_millis: u64,
}

/// Status of one line (the supervised connection to one server).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct LineReport {
    /// Server name.
    pub server: String,
    /// State, as `Status::state`.
    pub state: String,
    /// Number of the newest generation (connection attempt).
    pub generation: u64,
    /// Time of the last state change (RFC 3339).
    pub since: String,
    /// Milliseconds since then.
    pub since_millis: u64,
    /// Cause of the last end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Reason>,
    /// Time of the last end (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Milliseconds since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_millis: Option<u64>,
    /// Restart budget left, in milli-tokens.
    pub budget_millis: u32,
    /// Size of the restart budget, in milli-tokens.
    pub budget_most_millis: u32,
    /// Budget left for connections that had served requests, in milli-tokens.
    #[serde(default)]
    pub useful_millis: u32,
    /// Size of that budget, in milli-tokens.
    #[serde(default)]
    pub useful_most_millis: u32,
    /// Next automatic retry, in words; absent while it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<String>,
    /// Milliseconds until then, if it is a matter of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_millis: Option<u64>,
    /// Health problem of a server that is up: silent, or no call answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Milliseconds since the server was last heard, while it serves. A server at a URL is asked nothing while no agent uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_millis: Option<u64>,
    /// Process id of a local server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Process id of the keeper, where `linetender run --share` shares the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<i32>,
    /// Why the server is not shared although `--share` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shared: Option<String>,
    /// Processes that left the server's tree on purpose, and outlive it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftProcess>,
    /// The last states, oldest first, the present one included.
    #[serde(default)]
    pub history: Vec<Moment>,
}

/// A state that a line was in.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Moment {
    /// State, as `Status::state`.
    pub state: String,
    /// Milliseconds since it began.
    pub ago_millis: u64,
}

/// Where a line stands, in numbers alone.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Server name.
    pub server: String,
    /// State.
    pub state: State,
    /// How much of its restart budget is left, from 0 to 1: of the two budgets, the one with less.
    pub budget: f64,
    /// Time until the next automatic try, if one is planned.
    pub next_try: Option<Duration>,
}

impl About {
    pub(super) fn of(holder: &Inner) -> Self {
        Self {
            pid: std::process::id(),
            door: holder.door.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            serves: holder.serves.clone(),
            began: rfc3339(holder.began.0),
            began_millis: u64::try_from(holder.began.1.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}
