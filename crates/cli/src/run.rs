//! `linetender run -- COMMAND`: one server behind, one agent in front.

use std::path::Path;
use std::process::ExitCode;

use linetender::{Rig, Server, session};

use crate::{args, log};

pub(crate) fn run(args: args::Run) -> ExitCode {
    if let Err(error) = log::start(args.log.as_deref()) {
        eprintln!("linetender: cannot write the log: {error}");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let name = args.name.unwrap_or_else(|| short_name(&args.command));
    // The agent put the server's tokens into our environment: it is passed on whole.
    let server = Server::stdio(name, args.command).inherit_env();
    let ended =
        runtime.block_on(session::serve(server, &Rig::new(), tokio::io::stdin(), tokio::io::stdout()));
    tracing::info!(?ended, "session");
    // Reading from stdin may still block a thread; nothing is left to wait for.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

/// What people would call it: the first word that names something, not `npx` or a flag. A script's text names nothing.
fn short_name(command: &[std::ffi::OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let script = words.iter().any(|word| *word == "-c");
    let named = words.iter().skip(1).find(|word| !script && !word.starts_with('-')).or(words.first());
    let name = named.map(|word| word.rsplit('/').next().unwrap_or(word).to_owned()).unwrap_or_default();
    let stem = Path::new(&name).file_stem().map_or(name.clone(), |stem| stem.to_string_lossy().into_owned());
    linetender::Redacted::head(&stem, 60).to_string()
}
