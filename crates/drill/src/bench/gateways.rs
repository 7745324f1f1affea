//! Endpoints measured from the agents' side: anything that speaks Streamable HTTP, whatever stands behind it.
//!
//! An endpoint is an address, so that a server itself, a relay of bytes, a gateway of ours and one of somebody else's are measured
//! by one client in one run, alternately. A server on pipes is a command: it has no address of its own.

mod endpoint;
mod http;
mod idle;
mod pipe;
mod process;
mod relay;
mod speech;
mod table;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use endpoint::Endpoint;
pub use idle::idle;
pub use relay::relay;
pub use speech::Era;
pub use table::{Row, Table};

/// From how many bytes on an answer is large.
const LARGE: usize = 100_000;

/// What is measured of endpoints that are called.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The era of the agents.
    pub era: Era,
    /// How often each endpoint has its turn.
    pub rounds: usize,
    /// How many bytes an answer has.
    pub sizes: Vec<usize>,
    /// How many calls are under way at once.
    pub in_flight: Vec<usize>,
    /// How many calls one measurement has; of large answers an eighth.
    pub calls: usize,
    /// The endpoints: `NAME=URL`, or `NAME=COMMAND`; `NAME:PREFIX=…` if tools have a prefix there, `NAME@PID=…` if the
    /// processor time of a process is to be told too. The first is what the others add to, the last what is held against them.
    pub endpoints: Vec<String>,
}

/// What one measurement is.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many bytes an answer has.
    pub bytes: usize,
    /// How many calls are under way at once.
    pub in_flight: usize,
    /// How many calls there are.
    pub calls: usize,
}

impl Plan {
    /// All that is of interest, often enough to be sure of it.
    pub fn new(era: Era, endpoints: Vec<String>) -> Self {
        let (sizes, in_flight) = (vec![100, 10_000, 1_000_000], vec![1, 16, 64]);
        Self { era, rounds: 20, sizes, in_flight, calls: 512, endpoints }
    }
}

impl Load {
    /// As many calls as take about the same time, whatever they carry; at least two of each caller.
    fn new(bytes: usize, in_flight: usize, calls: usize) -> Self {
        let calls = if bytes < LARGE { calls } else { calls / 8 };
        Self { bytes, in_flight, calls: calls.max(2 * in_flight) }
    }
}

/// Calls through each endpoint in turn, so many times. Each table is handed over as soon as it is there.
///
/// # Errors
/// If an endpoint is none, or a call fails.
pub async fn calls(plan: &Plan, mut told: impl FnMut(&Table)) -> Result<(), String> {
    let mut endpoints = Vec::new();
    for text in &plan.endpoints {
        endpoints.push(Endpoint::open(text, plan.era).await?);
    }
    if endpoints.is_empty() {
        return Err("which endpoints?".into());
    }
    for &bytes in &plan.sizes {
        for &in_flight in &plan.in_flight {
            let load = Load::new(bytes, in_flight, plan.calls);
            told(&alternately(&mut endpoints, load, plan.rounds).await?);
        }
    }
    Ok(())
}

/// The first round warms up and is thrown away; every other one goes the other way round.
async fn alternately(endpoints: &mut [Endpoint], load: Load, rounds: usize) -> Result<Table, String> {
    let mut table = Table::new(load, endpoints.iter().map(|endpoint| endpoint.name.clone()).collect());
    for round in 0..=rounds.max(1) {
        let mut row = vec![None; endpoints.len()];
        for step in 0..endpoints.len() {
            let at = if round % 2 == 0 { step } else { endpoints.len() - 1 - step };
            row[at] = Some(endpoints[at].measure(load).await?);
        }
        if round > 0 {
            table.push(row.into_iter().flatten().collect());
        }
    }
    Ok(table)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
fn now() -> Instant {
    Instant::now()
}
