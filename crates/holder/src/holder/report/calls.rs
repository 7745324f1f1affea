//! What is said of requests: those that have ended, those under way, and how many there were.

use std::collections::BTreeMap;
use std::time::Duration;

use linetender::{Outcome, RetryReason, UnderWay};
use linetender_wire::wall::{rfc3339, wall_clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::tally::{self, ByVerdict, Counted, ServerTally, Slow};

/// The most characters of a name that others chose.
const NAME: usize = 256;

/// Requests by verdict.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Verdicts {
    /// The server answered.
    pub answered: u64,
    /// The tool ran and says that it failed.
    pub tool_error: u64,
    /// The server, or a proxy before it, said that it did not execute it.
    pub refused: u64,
    /// linetender counted that the server cannot have executed it: most often, it was not sent.
    pub not_executed: u64,
    /// It may have been executed.
    pub unknown: u64,
    /// Its caller went away first.
    pub cancelled: u64,
}

/// One request that has ended.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct CallReport {
    /// When it ended (RFC 3339).
    pub at: String,
    /// Its number among the requests of its process.
    pub number: u64,
    /// Server name.
    pub server: String,
    /// Method.
    pub method: String,
    /// The tool, if it called one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whom it was made for, if the gateway knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// `answered`, `tool error`, `refused`, `not executed`, `unknown` or `cancelled`.
    pub verdict: String,
    /// What the verdict rests on: what linetender counted, what the server answered, or why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Number of the error, linetender's or the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Whether linetender ended it without the server.
    #[serde(default)]
    pub own: bool,
    /// The connection (generation) that it was sent on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// How often it was sent.
    pub attempts: u32,
    /// Why it was sent again, if it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<String>,
    /// Bytes of its params.
    pub bytes_sent: u64,
    /// Bytes of its answer.
    pub bytes_received: u64,
    /// Microseconds in the queue.
    pub queue_micros: u64,
    /// Microseconds of waiting for the server to be there.
    pub line_micros: u64,
    /// Microseconds with the server.
    pub server_micros: u64,
}

/// One request that has not ended.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct UnderWayReport {
    /// Its number among the requests of its process.
    pub number: u64,
    /// Server name.
    pub server: String,
    /// Method.
    pub method: String,
    /// The tool, if it calls one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whom it is made for, if the gateway knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// `queued`, `waiting for the server` or `at the server`.
    pub stage: String,
    /// The connection (generation) that it was sent on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Milliseconds since it came.
    pub millis: u64,
}

/// A request that took long.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SlowReport {
    /// Tool, or method.
    pub what: String,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// Milliseconds since it ended.
    pub ended_millis: u64,
    /// How it ended.
    pub verdict: String,
    /// Whom it was made for, if the gateway knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The connection (generation) that it was sent on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// Counts of one server since this process began, over all its connections.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ServerReport {
    /// Server name.
    pub server: String,
    /// Requests that call a tool.
    pub tool_calls: Verdicts,
    /// All other requests.
    pub other_requests: Verdicts,
    /// Of all of them, those that linetender ended without the server.
    pub own: u64,
    /// Requests that linetender sent again, by reason.
    #[serde(default)]
    pub retries: BTreeMap<String, u64>,
    /// Requests that have not ended.
    pub under_way: u64,
    /// Bytes of params.
    pub bytes_sent: u64,
    /// Bytes of answers.
    pub bytes_received: u64,
    /// Connections that came up.
    pub starts: u64,
    /// Connections that ended without being planned, by cause.
    pub ends: BTreeMap<String, u64>,
    /// Planned ends.
    pub planned_ends: u64,
    /// Median time from arrival to answer, of the last minute or two, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_micros: Option<u64>,
    /// The 99th percentile of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_micros: Option<u64>,
    /// The slowest requests of the last quarter of an hour.
    #[serde(default)]
    pub slowest: Vec<SlowReport>,
}

impl From<ByVerdict> for Verdicts {
    fn from([answered, tool_error, refused, not_executed, unknown, cancelled]: ByVerdict) -> Self {
        Self { answered, tool_error, refused, not_executed, unknown, cancelled }
    }
}

impl Verdicts {
    /// All of them.
    pub const fn total(&self) -> u64 {
        let Self { answered, tool_error, refused, not_executed, unknown, cancelled } = *self;
        answered + tool_error + refused + not_executed + unknown + cancelled
    }

    /// Names and counts.
    pub fn named(&self) -> [(&'static str, u64); tally::VERDICTS] {
        let Self { answered, tool_error, refused, not_executed, unknown, cancelled } = *self;
        let counts = [answered, tool_error, refused, not_executed, unknown, cancelled];
        std::array::from_fn(|at| (tally::VERDICT_NAMES[at], counts[at]))
    }
}

impl CallReport {
    pub(crate) fn ended(server: &str, call: &UnderWay, outcome: &Outcome<'_>) -> Self {
        let Outcome { verdict, code, own, generation, attempts, retried, bytes, times, .. } = outcome;
        Self {
            at: rfc3339(wall_clock()),
            number: call.number,
            server: server.to_owned(),
            method: short(&call.method),
            tool: call.tool.as_deref().map(short),
            principal: call.principal.as_deref().map(short),
            verdict: verdict.name().to_owned(),
            detail: verdict.delivery().reason().map(str::to_owned),
            code: *code,
            own: *own,
            generation: *generation,
            attempts: *attempts,
            retried: retried.iter().map(|reason| reason.name().to_owned()).collect(),
            bytes_sent: bytes.0 as u64,
            bytes_received: bytes.1 as u64,
            queue_micros: micros(times.queue),
            line_micros: micros(times.line),
            server_micros: micros(times.server),
        }
    }
}

impl UnderWayReport {
    pub(crate) fn of(server: &str, call: &UnderWay) -> Self {
        Self {
            number: call.number,
            server: server.to_owned(),
            method: short(&call.method),
            tool: call.tool.as_deref().map(short),
            principal: call.principal.as_deref().map(short),
            stage: call.stage().name().to_owned(),
            generation: call.generation(),
            millis: millis(call.since.elapsed()),
        }
    }
}

impl ServerReport {
    pub(crate) fn of(tally: &ServerTally) -> Self {
        let Counted { tools, others, own, retries, bytes, recent, ends, planned, starts, under_way, .. } =
            tally.counted();
        let slowest = tally.slowest();
        Self {
            server: tally.name().to_string(),
            tool_calls: tools.into(),
            other_requests: others.into(),
            own,
            retries: named_retries(&retries),
            under_way: under_way as u64,
            bytes_sent: bytes.0,
            bytes_received: bytes.1,
            starts,
            ends: ends.into_iter().map(|(leaf, count)| (leaf.to_owned(), count)).collect(),
            planned_ends: planned,
            p50_micros: recent.quantile(0.5).map(micros),
            p99_micros: recent.quantile(0.99).map(micros),
            slowest: slowest.into_iter().map(SlowReport::from).collect(),
        }
    }
}

impl From<Slow> for SlowReport {
    fn from(Slow { ended, took, what, verdict, principal, generation }: Slow) -> Self {
        Self {
            what: what.into(),
            millis: millis(took),
            ended_millis: millis(Instant::now().duration_since(ended)),
            verdict: verdict.name().to_owned(),
            principal: principal.as_deref().map(short),
            generation,
        }
    }
}

/// Spells counts by reason: `auth 1, session-lost 3`.
pub fn by_reason(counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<_> = counts.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    counts.join(", ")
}

/// The reasons that were counted, by name.
fn named_retries(counts: &[u64; RetryReason::ALL.len()]) -> BTreeMap<String, u64> {
    let named = RetryReason::ALL.iter().zip(counts).filter(|(_, count)| **count > 0);
    named.map(|(reason, count)| (reason.name().to_owned(), *count)).collect()
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((cut, _)) => format!("{}…", &name[..cut]),
        None => name.to_owned(),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
