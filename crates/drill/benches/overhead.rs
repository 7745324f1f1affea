//! What a line costs over the bare SDK: the same server, called alternately through both.
//!
//! `cargo bench -p linetender-drill --bench overhead`, or `… -- 40` for that many alternations.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linetender::{Era, Eras, Line, Server};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;

const BADSERVER: &str = env!("CARGO_BIN_EXE_badserver");

/// Calls of one measurement.
const CALLS: usize = 3000;

type Bare = Arc<RunningService<RoleClient, ()>>;

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let alternations = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(24);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(run(alternations));
    ExitCode::SUCCESS
}

async fn run(alternations: usize) {
    let line = Line::open(Server::stdio("bad", [BADSERVER]).eras(Eras::Only(Era::Legacy)));
    line.ready().await.expect("a line");
    let transport = TokioChildProcess::new(tokio::process::Command::new(BADSERVER)).expect("a child");
    let bare: Bare = Arc::new(().serve(transport).await.expect("a client"));

    println!("{CALLS} calls a measurement, {alternations} alternations; a ratio below 1 is in our favour");
    println!(
        "{:>10} {:>12} {:>12} {:>8} {:>18}",
        "in flight", "line p50 µs", "rmcp p50 µs", "ratio", "95 % interval"
    );
    for in_flight in [1, 16, 64] {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        // The first measurement of each warms up and is thrown away.
        for round in 0..=alternations {
            let (mine, other) = if round % 2 == 0 {
                let mine = measure(in_flight, || by_line(line.clone())).await;
                (mine, measure(in_flight, || by_rmcp(Arc::clone(&bare))).await)
            } else {
                let other = measure(in_flight, || by_rmcp(Arc::clone(&bare))).await;
                (measure(in_flight, || by_line(line.clone())).await, other)
            };
            if round > 0 {
                ours.push(mine);
                theirs.push(other);
                ratios.push(mine / other);
            }
        }
        let (low, high) = interval(&ratios);
        println!(
            "{in_flight:>10} {:>12.1} {:>12.1} {:>8.3} {:>18}",
            median(&mut ours),
            median(&mut theirs),
            median(&mut ratios.clone()),
            format!("{low:.3} … {high:.3}"),
        );
    }
    line.close().await;
}

async fn by_line(line: Line) {
    let answer = line.call_tool("echo", r#"{"message":"hello"}"#).await.expect("an answer");
    assert!(answer.error().is_none());
}

async fn by_rmcp(bare: Bare) {
    let mut arguments = serde_json::Map::new();
    arguments.insert("message".into(), "hello".into());
    let params = CallToolRequestParams::new("echo").with_arguments(arguments);
    bare.peer().call_tool(params).await.expect("an answer");
}

/// The median time of a call, in microseconds, with so many in flight.
#[expect(clippy::disallowed_methods, reason = "this is a measurement, and its tasks are awaited here")]
async fn measure<F: Future<Output = ()> + Send + 'static>(in_flight: usize, call: impl Fn() -> F) -> f64 {
    let mut workers = Vec::new();
    for _ in 0..in_flight {
        let calls: Vec<F> = (0..CALLS / in_flight).map(|_| call()).collect();
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

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The 95 % interval of the median of ratios, by order statistics (no assumption about their distribution).
fn interval(ratios: &[f64]) -> (f64, f64) {
    let mut sorted = ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small counts"
    )]
    let half = (0.98 * (sorted.len() as f64).sqrt()).ceil() as usize;
    let middle = sorted.len() / 2;
    (sorted[middle.saturating_sub(half)], sorted[(middle + half).min(sorted.len() - 1)])
}
