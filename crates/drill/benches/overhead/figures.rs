//! Two things measured alternately, and what their ratio is worth.

use std::fmt;
use std::time::{Duration, Instant};

use linetender_drill::figures::{interval, median};

/// What came of the alternations.
#[derive(Default)]
pub struct Figures {
    ours: Vec<f64>,
    theirs: Vec<f64>,
    ratios: Vec<f64>,
}

impl Figures {
    pub fn push(&mut self, mine: f64, other: f64) {
        self.ours.push(mine);
        self.theirs.push(other);
        self.ratios.push(mine / other);
    }

    /// The words above the columns.
    pub fn head(what: &str) -> String {
        let (line, rmcp) = (format!("line {what}"), format!("rmcp {what}"));
        format!("{line:>14} {rmcp:>14} {:>8} {:>18}", "ratio", "95 % interval")
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = interval(&self.ratios);
        let (ours, theirs, ratio) = (median(&self.ours), median(&self.theirs), median(&self.ratios));
        let between = format!("{low:.3} … {high:.3}");
        write!(f, "{ours:>14.1} {theirs:>14.1} {ratio:>8.3} {between:>18}")
    }
}

/// The median time of a call, in microseconds, with so many in flight.
#[expect(clippy::disallowed_methods, reason = "this is a measurement, and its tasks are awaited here")]
pub async fn each<F: Future<Output = ()> + Send + 'static>(
    calls: usize,
    in_flight: usize,
    call: impl Fn() -> F,
) -> f64 {
    let mut workers = Vec::new();
    for _ in 0..in_flight {
        let calls: Vec<F> = (0..calls / in_flight).map(|_| call()).collect();
        workers.push(tokio::spawn(async move {
            let mut times = Vec::with_capacity(calls.len());
            for call in calls {
                let start = Instant::now();
                call.await;
                times.push(start.elapsed());
            }
            times
        }));
    }
    let mut times: Vec<Duration> = Vec::new();
    for worker in workers {
        times.extend(worker.await.expect("a worker"));
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
