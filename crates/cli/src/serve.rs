//! `linetender serve --config FILE`: many servers behind, many agents in front.

mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use linetender::Rig;
use linetender::journal::Rotation;
use linetender_gateway::config::{self, Config};
use linetender_gateway::{Gateway, front, stdio};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::pipes::Pipes;
use crate::{args, hold, log};
use watch::Changes;

/// How long servers may take to end.
const LAST: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &args::Serve) -> ExitCode {
    if let Err(error) = log::start(args.log.as_deref()) {
        eprintln!("linetender: cannot write the log: {error}");
        return ExitCode::FAILURE;
    }
    let config = match text(&args.config).and_then(|text| read(&args.config, &text)) {
        Ok(config) => config,
        Err(report) => {
            eprintln!("{report:?}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(serve(args, config));
    // Reading from stdin may still block a thread; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

/// A config file as it is now.
fn text(path: &Path) -> miette::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| miette::miette!("{} cannot be read: {error}", path.display()))
}

/// What it says. What nobody understands in it is told.
fn read(path: &Path, text: &str) -> miette::Result<Config> {
    let name = path.display().to_string();
    let config = config::load(&name, text, &variable).map_err(|problem| miette::Report::new(*problem))?;
    for warning in &config.warnings {
        tracing::warn!(file = name, line = warning.line(), advice = warning.advice(), "{warning}");
    }
    Ok(config)
}

#[expect(clippy::disallowed_methods, reason = "this is where the config file's variables come from")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn serve(args: &args::Serve, mut config: Config) -> ExitCode {
    if let Some(listen) = args.listen {
        config.gateway.listen = listen;
    }
    let drain = Duration::from_millis(config.gateway.drain);
    let listen = config.gateway.listen;
    let keep = if args.no_journal { hold::Keep::Nothing } else { hold::Keep::Journal(Rotation::default()) };
    let holder = hold::begin("serve", None, keep);
    let gateway = Gateway::start_on(Rig::new().held_by(&holder), config);
    let (told, stop) = oneshot::channel();
    let stopped = async {
        let _ = stop.await;
    };
    let serving = async {
        if args.stdio {
            let Pipes { input, output, gone, borrowed } = Pipes::take();
            let over = async {
                tokio::select! {
                    () = stopped => {}
                    () = gone.for_good() => {}
                }
            };
            let ended = stdio::serve(&gateway, input, output, over).await;
            drop(borrowed);
            tracing::info!(?ended, "session");
            return ExitCode::SUCCESS;
        }
        let listener = match TcpListener::bind(listen).await {
            Ok(listener) => listener,
            Err(error) => {
                eprintln!("linetender: cannot listen on {listen}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let at = listener.local_addr().unwrap_or(listen);
        tracing::info!(address = %format_args!("http://{at}/mcp"), "serving");
        match front::serve(&gateway, listener, stopped).await {
            Ok(served) => {
                tracing::info!(?served, "stopped");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("linetender: cannot serve any more: {error}");
                ExitCode::FAILURE
            }
        }
    };
    let mut code = tokio::select! {
        code = serving => code,
        () = attend(&args.config, &gateway, told, drain) => ExitCode::FAILURE,
    };
    if !gateway.shutdown(LAST).await {
        tracing::warn!("some servers did not end in time; their reapers clean up");
        code = ExitCode::FAILURE;
    }
    holder.end("it was told to stop", hold::LAST_ENTRY).await;
    code
}

/// Reads the file again when it changes, and passes on that it is to stop. Ends if somebody asks twice, or if the drain
/// took longer than it may.
async fn attend(file: &Path, gateway: &Gateway, stop: oneshot::Sender<()>, drain: Duration) {
    let mut stops = [SignalKind::terminate(), SignalKind::interrupt()].map(|kind| signal(kind).ok());
    let mut hangup = signal(SignalKind::hangup()).ok();
    let mut last = text(file).map_err(|problem| problem.to_string());
    let mut changes = Changes::beside(file).unwrap_or_else(|error| {
        tracing::warn!(%error, "the config file is not watched; SIGHUP reads it again");
        Changes::unseen()
    });
    loop {
        let [term, int] = &mut stops;
        let forced = tokio::select! {
            () = next(term) => break,
            () = next(int) => break,
            () = next(&mut hangup) => true,
            () = changes.next() => false,
        };
        // Something else in its folder may have changed, such as the log: what is as it was is not told again.
        let now = text(file).map_err(|problem| problem.to_string());
        if now == last && !forced {
            continue;
        }
        match now.clone().map_err(|problem| miette::miette!(problem)).and_then(|text| read(file, &text)) {
            Ok(config) => {
                let change = gateway.apply(config);
                tracing::info!(
                    added = ?change.added, replaced = ?change.replaced, removed = ?change.removed, kept = ?change.kept,
                    "the config was read again"
                );
            }
            // Only the headline: the file may hold secrets.
            Err(problem) => tracing::error!(%problem, "the config cannot be used; nothing is changed"),
        }
        last = now;
    }
    tracing::info!("told to stop");
    let _ = stop.send(());
    let [term, int] = &mut stops;
    tokio::select! {
        () = next(term) => {}
        () = next(int) => {}
        () = tokio::time::sleep(drain + LAST) => {}
    }
    tracing::warn!("stopped at once");
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
