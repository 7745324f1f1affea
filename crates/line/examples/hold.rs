//! Holds a line, watches its state, survives a kill.
//!
//! `cargo run -p linetender --example hold -- npx -y @modelcontextprotocol/server-everything`

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::process::ExitCode;

use linetender::{Event, Line, Server, State, StdioServer};

fn main() -> ExitCode {
    // Every server runs under a reaper, and that is this program too.
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    if argv.is_empty() {
        eprintln!("usage: hold COMMAND [ARGUMENT]...");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(hold(Server::stdio("example", argv))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn hold(server: StdioServer) -> Result<(), linetender::CallError> {
    let line = Line::open(server);
    let tools = line.list_tools().await?;
    println!("{} tools", tools.len());

    let mut events = line.events();
    let pid = line.pid().unwrap_or_default();
    println!("killing process {pid}");
    let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();

    while let Some(event) = events.next().await {
        if let Event::State(status) = event {
            let why = status.cause.as_ref().map_or(String::new(), |why| format!(": {why}"));
            println!("generation {} is {}{why}", status.generation, status.state);
            if status.state == State::Up {
                break;
            }
        }
    }
    println!("{} tools again", line.list_tools().await?.len());
    line.close().await;
    Ok(())
}
