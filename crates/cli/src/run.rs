//! `linetender run -- COMMAND`: one server behind, one agent in front.

pub(crate) mod name;
mod target;

use std::io::IsTerminal as _;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::{HttpTransport, Rig, Server, ServerState, StdioServer, session};
use linetender_holder::{Holder, Memory};
use tokio::sync::Notify;

use crate::keys::{self, KeyMaker};
use crate::pipes::Pipes;
use crate::stop::Signals;
use crate::traces::Traces;
use crate::{args, hold, log, places, program, runtime, share, stop};

/// What the shell says of a command that cannot be understood.
const MISUSED: u8 = 2;

pub(crate) fn run(args: &args::Run) -> ExitCode {
    let keep = hold::Keep::of(args);
    let server = match server(args) {
        Ok(server) => server,
        Err(sentence) => {
            log::say(format_args!("linetender: {sentence}"));
            return ExitCode::from(MISUSED);
        }
    };
    if let Err(error) = log::start(&args.log) {
        let file = args.log.file.as_deref().unwrap_or(Path::new("stderr")).display();
        log::say(format_args!("linetender: cannot open the log {file}: {error}"));
        return ExitCode::FAILURE;
    }
    if std::io::stdin().is_terminal() {
        log::say(
            "linetender: waiting for an agent on stdin. Put this command into an agent's config; see `linetender run --help`.",
        );
    }
    let runtime = match runtime::build(&mut tokio::runtime::Builder::new_current_thread()) {
        Ok(runtime) => runtime,
        Err(error) => {
            log::say(format_args!("linetender: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // A server that kills its reaper leaves its orphans to us. One that is shared is the keeper's.
    if !args.share {
        linetender::guard::adopt_orphans();
    }
    stop::insist(stop::of_run());
    let memory = if args.no_memory { None } else { memory() };
    let code = runtime.block_on(async {
        let holder = hold::begin("run", Some(server.name()), keep);
        holder.obeyed_by(Arc::new(program::Runs));
        let traces = Traces::begin(&holder);
        let code = serve(server, memory, &holder).await;
        traces.end(hold::LAST_ENTRY).await;
        code
    });
    // Reading from stdin may still block a thread; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

/// The server that was meant: an address, or a command. If it cannot be meant, a sentence that says what to do.
fn server(args: &args::Run) -> Result<Server, String> {
    let first = args.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let first = args::address(&first)?;
    let server: Server = if is_address(&first) {
        if args.policy.dir.is_some() {
            return Err("--dir applies to a command, not to a URL".to_owned());
        }
        by_address(&first, args.name.as_deref(), &args.header, args.transport.into())
    } else if let Some(sentence) = target::refusal(&first, args.policy.dir.as_deref()) {
        return Err(sentence);
    } else {
        if args.transport != args::Transport::Auto {
            return Err("--transport applies to a URL, not to a command".to_owned());
        }
        if !args.header.is_empty() {
            return Err(
                "--header applies to a URL, not to a command; pass settings in the environment".to_owned()
            );
        }
        let server = command(args).stderr(args.stderr.into());
        let server = if args.share {
            args.env.iter().try_fold(server, with_variable)?
        } else {
            // The agent put the server's tokens into our environment: it is passed on whole.
            server.inherit_env()
        };
        if let Some(dir) = &args.policy.dir { server.dir(dir) } else { server }.into()
    };
    let server = args.policy.apply(server.tool_errors(args.tool_errors.into()))?;
    if args.share { shared(&server, args.linger) } else { Ok(server) }
}

/// The server of this command, with the variables that any server gets.
pub(crate) fn command(args: &args::Run) -> StdioServer {
    let name = args.name.clone().unwrap_or_else(|| name::of(&args.command));
    Server::stdio(name, args.command.iter())
}

fn with_variable(server: StdioServer, name: &String) -> Result<StdioServer, String> {
    match places::variable(name) {
        Some(value) => Ok(server.env(name, value)),
        None => Err(format!("--env {name}: the variable is not set")),
    }
}

/// The same server, held by the keeper of this user.
fn shared(server: &Server, linger: Option<Duration>) -> Result<Server, String> {
    if server.settings().state == ServerState::Process {
        return Err(
            "--share would mix the state that several agents keep in this server: remove it".to_owned()
        );
    }
    let Some(program) = server.to_stdio() else {
        return Err(
            "--share applies to a command, not to a URL: a server at a URL is shared already".to_owned()
        );
    };
    share::through_keeper(server, program, linger)
}

/// Whether a word is an address, and not a program.
pub(crate) fn is_address(word: &str) -> bool {
    let is_socket = word.starts_with("unix:") && !Path::new(word).exists();
    is_socket || word.starts_with("http://") || word.starts_with("https://")
}

/// The server at an address, with these headers.
pub(crate) fn by_address(
    address: &str,
    name: Option<&str>,
    headers: &[(String, String)],
    transport: HttpTransport,
) -> Server {
    let is_socket = address.starts_with("unix:");
    let host =
        if is_socket { name::of_socket(address) } else { address.split('/').nth(2).unwrap_or_default() };
    // Credentials are refused there, but not before it has a name.
    let host = host.rsplit('@').next().unwrap_or(host);
    let server = Server::http(name.unwrap_or(host), address).transport(transport);
    let fixed = headers.iter().filter(|(_, value)| !value.contains(keys::FILE));
    let server = fixed.fold(server, |server, (name, value)| server.header(name, value));
    KeyMaker::default().fit_one(server, address, headers).into()
}

/// What servers said of themselves, so that an agent need not wait for one to start.
fn memory() -> Option<Memory> {
    let folder = places::cache()?.join("servers");
    Memory::open(folder).inspect_err(|error| tracing::warn!(%error, "server cache disabled")).ok()
}

/// Serves the agent until it goes, or a signal says so.
async fn serve(server: Server, memory: Option<Memory>, holder: &Holder) -> ExitCode {
    let (mut signals, stop) = (Signals::of(stop::of_run()), Notify::new());
    let mut signal = None;
    linetender::raise_descriptor_limit();
    let rig = memory.into_iter().fold(Rig::new().followed_by(holder.clone()), Rig::remembering);
    let Pipes { input, output, gone, borrowed } = Pipes::take();
    let over = async {
        tokio::select! {
            () = stop.notified() => {}
            () = gone.for_good() => {}
        }
    };
    // It lives as long as this process: the second signal ends us, and not the grace of a server that saves its work.
    let mut serve = pin!(session::serve(server, &rig, input, output, over));
    let asked_twice = async {
        let first = signals.next().await;
        signal = Some(first);
        linetender::pass_on(first);
        stop.notify_one();
        // Whoever asks again does not want to wait: the reapers clean up.
        linetender::pass_on(signals.next().await);
    };
    let (why, code) = tokio::select! {
        ended = &mut serve => {
            let why = hold::why(ended);
            tracing::info!(reason = why, "session ended");
            (why, hold::code(ended))
        }
        () = asked_twice => {
            tracing::warn!("second signal: exiting without waiting for the server");
            ("stopped by a second signal", ExitCode::SUCCESS)
        }
    };
    holder.end(why, hold::LAST_ENTRY).await;
    drop(borrowed);
    signal.map_or(code, |signal| ExitCode::from(128 + signal))
}
