//! An `rmcp` client whose server is killed, and which does not mind.
//!
//! `cargo run -p linetender-rmcp --example survives -- npx -y @modelcontextprotocol/server-everything`

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::process::ExitCode;

use linetender::{Line, Server, State};
use rmcp::ServiceExt as _;

fn main() -> ExitCode {
    // Every server runs under a reaper, and that is this program too.
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    if argv.is_empty() {
        eprintln!("usage: survives COMMAND [ARGUMENT]...");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(survive(Server::stdio("example", argv).into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn survive(server: Server) -> Result<(), Box<dyn std::error::Error>> {
    // A program that need not look at the line writes `linetender_rmcp::transport(server)` and is done. This one wants to
    // know whom to kill.
    let line = Line::open(server);
    let client = ().serve(linetender_rmcp::shared(&line)).await?;
    println!("{} tools", client.list_all_tools().await?.len());

    let pid = line.pid().unwrap_or_default();
    println!("killing process {pid}");
    let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    line.wait_for(|status| status.generation > 1 && status.state == State::Up).await;

    println!("{} tools again, of the same client", client.list_all_tools().await?.len());
    println!("its transport is closed: {}", client.is_transport_closed());
    client.cancel().await?;
    line.close().await;
    Ok(())
}
