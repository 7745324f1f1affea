//! What a line costs over the bare SDK: the same server, called alternately through both.
//!
//! `cargo bench -p linetender-drill --bench overhead`, or `… -- 40` for that many alternations.

#![allow(unreachable_pub, reason = "nobody can reach into a bench")]

#[path = "overhead/figures.rs"]
mod figures;

use std::process::ExitCode;
use std::sync::Arc;

use figures::{Figures, each};
use linetender::{Era, Eras, Line, Raw, Server};
use linetender_badserver::AS_SERVER;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;

/// Calls of one measurement.
const CALLS: usize = 3000;

type Bare = Arc<RunningService<RoleClient, ()>>;

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    if let Some(done) = linetender_badserver::run_if_asked() {
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
    let this = std::env::current_exe().expect("a path");
    let argv = [this.as_os_str(), AS_SERVER.as_ref()];
    let line = Line::open(Server::stdio("bad", argv).eras(Eras::Only(Era::Legacy)));
    line.ready().await.expect("a line");
    let mut command = tokio::process::Command::new(&this);
    command.arg(AS_SERVER);
    let transport = TokioChildProcess::new(command).expect("a child");
    let bare: Bare = Arc::new(().serve(transport).await.expect("a client"));

    println!("{CALLS} calls a measurement, {alternations} alternations; a ratio below 1 is in our favour");
    println!("{:>10} {}", "in flight", Figures::head("p50 µs"));
    for in_flight in [1, 16, 64] {
        let mut figures = Figures::default();
        // The first measurement of each warms up and is thrown away.
        for round in 0..=alternations {
            let (mine, other) = if round % 2 == 0 {
                let mine = each(CALLS, in_flight, || by_line(line.clone())).await;
                (mine, each(CALLS, in_flight, || by_rmcp(Arc::clone(&bare))).await)
            } else {
                let other = each(CALLS, in_flight, || by_rmcp(Arc::clone(&bare))).await;
                (each(CALLS, in_flight, || by_line(line.clone())).await, other)
            };
            if round > 0 {
                figures.push(mine, other);
            }
        }
        println!("{in_flight:>10} {figures}");
    }
    line.close().await;
}

async fn by_line(line: Line) {
    line.call_tool("echo", Raw(r#"{"message":"hello"}"#)).await.expect("an answer");
}

async fn by_rmcp(bare: Bare) {
    let mut arguments = serde_json::Map::new();
    arguments.insert("message".into(), "hello".into());
    let params = CallToolRequestParams::new("echo").with_arguments(arguments);
    bare.peer().call_tool(params).await.expect("an answer");
}
