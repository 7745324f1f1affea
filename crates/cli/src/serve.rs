//! `linetender serve --config FILE`: many servers behind, many agents in front.

mod file;
mod follow;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use linetender::Rig;
use linetender::journal::Rotation;
use linetender_gateway::config::Config;
use linetender_gateway::{Gateway, front, stdio};
use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use tokio::sync::oneshot;

use crate::pipes::Pipes;
use crate::stop::Signals;
use crate::{args, hold, log};
use follow::Follow;
use watch::Changes;

/// How long servers may take to end.
const LAST: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &args::Serve) -> ExitCode {
    if let Err(error) = log::start(args.log.as_deref()) {
        eprintln!("linetender: cannot write the log: {error}");
        return ExitCode::FAILURE;
    }
    // It is watched before it is read: what changes between the two would be seen by nobody.
    let changes = Changes::beside(&args.config);
    let (config, text) = match read(&args.config) {
        Ok(read) => read,
        Err(report) => {
            eprintln!("{report:?}");
            return ExitCode::FAILURE;
        }
    };
    let changes = changes.unwrap_or_else(|error| {
        tracing::warn!(%error, "the config file is not watched; SIGHUP reads it again");
        Changes::unseen()
    });
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let follow = Follow::new(&args.config, text, changes);
    let code = runtime.block_on(serve(args, config, follow));
    // Reading from stdin may still block a thread; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

/// What the file says, and its text.
fn read(path: &Path) -> miette::Result<(Config, String)> {
    let text = file::text(path).map_err(|problem| miette::miette!(problem))?;
    let config = file::read(path, &text).map_err(|problem| miette::Report::new(*problem))?;
    Ok((config, text))
}

async fn serve(args: &args::Serve, mut config: Config, follow: Follow<'_>) -> ExitCode {
    if let Some(listen) = args.listen {
        config.gateway.listen = listen;
    }
    let (stops, asked) = (Signals::of([SignalKind::terminate(), SignalKind::interrupt()]), follow::asked());
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
    let attend = async {
        let mut stops = stops;
        tokio::select! {
            _ = stops.next() => {}
            never = follow.keep_up(&gateway, asked) => match never {},
        }
        tracing::info!("told to stop");
        let _ = told.send(());
        // It ends if somebody asks twice, or if the drain took longer than it may.
        tokio::select! {
            _ = stops.next() => {}
            () = tokio::time::sleep(drain + LAST) => {}
        }
        tracing::warn!("stopped at once");
    };
    let mut code = tokio::select! {
        code = serving => code,
        () = attend => ExitCode::FAILURE,
    };
    if !gateway.shutdown(LAST).await {
        tracing::warn!("some servers did not end in time; their reapers clean up");
        code = ExitCode::FAILURE;
    }
    holder.end("it was told to stop", hold::LAST_ENTRY).await;
    code
}
