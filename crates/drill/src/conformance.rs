//! A client for the official conformance suite, made of nothing but the library's public API.
//!
//! The suite starts a server for each scenario, runs the client with the server's address, and judges what it saw on the
//! wire. So the client need not know what a scenario is about: it uses everything that the server offers, as a curious
//! user would. `tools/conformance` runs the suite.

mod agent;
mod answers;
mod keys;
mod rounds;
mod task;
mod user;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::{Era, Hello, Line, Policy, Server, Settings};
use serde_json::json;

use task::Task;

/// What went wrong is only printed.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs the scenario that the environment names, against the server at the address that is the last argument.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let ran = Task::given(arguments).and_then(|task| {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(run(&task))
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance-client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(task: &Task) -> Outcome<()> {
    let logins = keys::Logins::of(task).await?;
    // The suite runs all of its servers and clients at once: one that takes seconds to answer is not of another era.
    let mut settings = Settings::default();
    settings.dial.probe_wait = Duration::from_secs(10);
    let server =
        Server::http("conformance", &task.url).policy(Policy::new(settings)?).keys(Arc::clone(&logins.keys));
    // Its server asks questions in the middle of a call, and those come to a session's agent.
    if task.scenario.starts_with("elicitation-") {
        return agent::run(server.into(), &task.version).await;
    }
    // The era is found out, as by default.
    let server = match task.era {
        Era::Legacy => server,
        Era::Modern => server.hello(Hello::Agent(who(&task.version).to_string().into())),
    };
    let line = Line::open(server);
    let used = user::run(&line, task).await;
    line.close().await;
    used
}

/// The params of an `initialize` by somebody who can answer every kind of question.
fn who(version: &str) -> serde_json::Value {
    json!({
        "protocolVersion": version,
        "capabilities": { "elicitation": {}, "roots": {}, "sampling": {} },
        "clientInfo": { "name": "linetender-conformance", "version": env!("CARGO_PKG_VERSION") },
    })
}
