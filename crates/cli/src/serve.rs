//! `linetender serve --config FILE`: many servers behind, many agents in front.

mod admin;
pub(crate) mod file;
#[cfg(not(feature = "fleet"))]
#[path = "serve/alone.rs"]
mod fleet;
#[cfg(feature = "fleet")]
mod fleet;
mod follow;
mod still;
mod watch;

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::Rig;
use linetender::session::Ended;
use linetender_gateway::config::{Config, Settings};
use linetender_gateway::front::{CannotOpen, Doors};
use linetender_gateway::{Gateway, front, stdio};
use linetender_holder::Holder;
use linetender_holder::journal::Rotation;
use tokio::sync::oneshot;

use crate::bearers::AgentTokens;
use crate::keys::KeyMaker;
use crate::pipes::Pipes;
use crate::stop::Signals;
use crate::traces::Traces;
use crate::{args, audit, hold, log, places, program, runtime, stop, watchdog};
use fleet::InFleet;
use follow::Follow;
use watch::Changes;

/// How long servers may take to end.
const LAST: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &args::Serve) -> ExitCode {
    if args.schema {
        return printed(&format!("{:#}\n", linetender_gateway::config::schema()));
    }
    // A service has nothing but the log to say what goes wrong, also with the service manager.
    let logs = log::start(&args.log);
    if let Err(error) = &logs {
        let file = args.log.file.as_deref().unwrap_or(Path::new("stderr")).display();
        log::say(format_args!("linetender: cannot open the log {file}: {error}"));
    }
    let logs = logs.is_ok();
    #[cfg(windows)]
    if args.service {
        let args = args.clone();
        return watchdog::as_service(move || if logs { from_start_to_end(&args) } else { ExitCode::FAILURE });
    }
    if logs { from_start_to_end(args) } else { ExitCode::FAILURE }
}

fn from_start_to_end(args: &args::Serve) -> ExitCode {
    let path = match file::path(args.config.as_deref()) {
        Ok(path) => path,
        Err(why) => {
            log::say(format_args!("linetender: {why}"));
            return ExitCode::FAILURE;
        }
    };
    // It is watched before it is read: what changes between the two would be seen by nobody.
    let changes = Changes::beside(&path);
    let (config, text) = match read(&path) {
        Ok(read) => read,
        Err(why) => {
            log::say(format_args!("linetender: {why}"));
            return ExitCode::FAILURE;
        }
    };
    let config = overridden(args, config);
    if args.check {
        return checked(args, &path, &config);
    }
    let changes = changes.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot watch the config file; run `linetender reload` after a change");
        Changes::unseen()
    });
    // A server that kills its reaper leaves its orphans to us.
    linetender::guard::adopt_orphans();
    let runtime = match runtime::build(&mut tokio::runtime::Builder::new_multi_thread()) {
        Ok(runtime) => runtime,
        Err(error) => {
            log::say(format_args!("linetender: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    tracing::info!(config = %path.display(), servers = config.servers.len(), "starting");
    let follow = Follow::new(args, &path, text, changes, KeyMaker::default());
    let code = runtime.block_on(serve(args, config, follow));
    // Reading from stdin may still block a thread; nothing is left to wait for.
    runtime.shutdown_background();
    code
}

/// What was said on the command line comes before what the file says.
fn overridden(args: &args::Serve, mut config: Config) -> Config {
    if let Some(listen) = args.listen {
        config.gateway.listen = listen;
    }
    config.gateway.insecure |= args.insecure;
    config
}

/// Says what a file has that can be served.
fn checked(args: &args::Serve, path: &Path, config: &Config) -> ExitCode {
    let tokens = || AgentTokens::of(&config.gateway, path).err();
    if let Err(refusal) = admin::check(&config.gateway, path) {
        log::say(format_args!("linetender: {refusal}"));
        return ExitCode::FAILURE;
    }
    let unusable = || Doors::check_tls(&config.gateway).err().map(|why| why.to_string()).or_else(tokens);
    if let Some(refusal) = config.gateway.refusal().or_else(unusable).filter(|_| !args.stdio) {
        log::say(format_args!("linetender: {refusal}"));
        return ExitCode::FAILURE;
    }
    let servers: Vec<_> = config.servers.iter().map(|entry| entry.server.name()).collect();
    let (path, listen) = (path.display(), config.gateway.listen);
    let scheme =
        if config.gateway.tls_certificate.is_some() && listen.address().is_some() { "https://" } else { "" };
    let known = if config.gateway.auth.is_on() { ", agents need a token" } else { "" };
    let many = if servers.len() == 1 { "" } else { "s" };
    let line = format!(
        "{path}: OK, {} server{many} ({}), listens on {scheme}{listen}{known}",
        servers.len(),
        servers.join(", ")
    );
    printed(&format!("{}\n", linetender::visible::line(&line)))
}

fn printed(text: &str) -> ExitCode {
    let written = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the file says, and its text.
fn read(path: &Path) -> Result<(Config, String), String> {
    let text = file::text(path)?;
    let config = file::read(path, &text, None).map_err(|problem| problem.report())?;
    Ok((config, text))
}

/// Why it ended: for whoever started it, and for the journal.
struct Over {
    code: ExitCode,
    why: &'static str,
}

async fn serve(args: &args::Serve, mut config: Config, follow: Follow<'_>) -> ExitCode {
    // Before a server is started in vain.
    // Whoever is on our own pipes shows no token.
    let tokens = if args.stdio { Ok(None) } else { AgentTokens::of(&config.gateway, follow.path()) };
    let opened = tokens.and_then(|tokens| {
        let audit = audit::open(&config.gateway.audit)?;
        let front = Front::open(args, &config.gateway, tokens.clone()).map_err(|why| why.to_string())?;
        Ok((front, tokens, audit))
    });
    let (front, tokens, audit) = match opened {
        Ok(opened) => opened,
        Err(sentence) => {
            log::say(format_args!("linetender: {sentence}"));
            return ExitCode::FAILURE;
        }
    };
    let opened = async {
        let admin = admin::open(&config.gateway, follow.path()).await?;
        Ok::<_, String>((
            admin,
            InFleet::join(&config.gateway.fleet, config.durable_kept().unwrap_or_default()).await?,
        ))
    };
    let (admin, fleet) = match opened.await {
        Ok(opened) => opened,
        Err(sentence) => {
            log::say(format_args!("linetender: {sentence}"));
            return ExitCode::FAILURE;
        }
    };
    // Before anybody can know that it runs.
    let mut stops = Signals::of(stop::GATEWAY);
    stop::insist(stop::GATEWAY);
    let asked = follow::asked();
    let keep = if args.no_journal { hold::Keep::Nothing } else { hold::Keep::Journal(Rotation::default()) };
    let holder = hold::begin("serve", None, keep);
    let of_fleet = fleet.clone();
    let reports = move || of_fleet.as_ref().map(|fleet| fleet.report());
    holder.obeyed_by(Arc::new(program::Serves { fleet: Box::new(reports) }));
    if let Some(auditor) = audit {
        holder.audit_with(auditor);
    }
    let traces = Traces::begin(&holder);
    linetender::raise_descriptor_limit();
    let follow = follow.with(tokens).within(fleet.clone());
    follow.fit(&mut config);
    let gateway = started(config, &holder, fleet.as_ref());
    // Until the end: whoever watches sees it coming.
    let _administered = admin.map(|admin| admin::serve(admin, &holder));
    let (stop, stopped) = oneshot::channel();
    let mut agents = pin!(agents(front, &gateway, stopped));
    let gone = tokio::select! {
        over = &mut agents => Some(over),
        _ = stops.next() => None,
        never = watchdog::run() => match never {},
        never = follow.keep_up(&gateway, asked) => match never {},
    };
    watchdog::ends();
    // If they left by themselves, nobody has asked yet.
    let still_to_ask = if gone.is_some() { 2 } else { 1 };
    let asked_twice = async {
        for _ in 0..still_to_ask {
            stops.next().await;
        }
    };
    let end = async {
        let over = if let Some(over) = gone {
            over
        } else {
            tracing::info!("stopping on a signal");
            if let Some(fleet) = &fleet {
                // Its agents are served meanwhile.
                tokio::select! {
                    () = fleet.leave() => {}
                    over = &mut agents => return over,
                }
            }
            let _ = stop.send(());
            agents.await
        };
        if gateway.shutdown(LAST).await {
            if let Some(fleet) = &fleet {
                fleet.left().await;
            }
            return over;
        }
        tracing::warn!("some servers did not exit in time; killing them");
        Over { code: ExitCode::FAILURE, ..over }
    };
    let Over { code, why } = tokio::select! {
        over = end => over,
        // Whoever asks again does not want to wait: the reapers clean up.
        () = asked_twice => {
            tracing::warn!("second signal: exiting without waiting for the servers");
            Over { code: ExitCode::FAILURE, why: "stopped by a second signal" }
        }
    };
    holder.end(why, hold::LAST_ENTRY).await;
    traces.end(hold::LAST_ENTRY).await;
    code
}

/// Starts the gateway, as one of several if there is a fleet.
fn started(config: Config, holder: &Holder, fleet: Option<&Arc<InFleet>>) -> Gateway {
    let rig = Rig::new().followed_by(holder.clone());
    let Some(fleet) = fleet else { return Gateway::start_on(rig, config) };
    let shared = fleet::shared(&config);
    let gateway = Gateway::start_among(rig, config, fleet.calls());
    fleet.shares(shared, &gateway);
    fleet.among(&gateway);
    gateway
}

/// Where agents come in.
enum Front {
    Stdio,
    Http(Doors),
}

impl Front {
    fn open(
        args: &args::Serve,
        settings: &Settings,
        tokens: Option<AgentTokens>,
    ) -> Result<Self, CannotOpen> {
        if args.stdio {
            return Ok(Self::Stdio);
        }
        let usual = places::usual_socket();
        let doors = Doors::open(settings, usual.as_deref())?;
        Ok(Self::Http(match tokens {
            Some(tokens) => doors.verified_by(Arc::new(tokens)),
            None => doors,
        }))
    }
}

/// Serves agents until they are gone, or until somebody wants it to stop.
async fn agents(front: Front, gateway: &Gateway, stop: oneshot::Receiver<()>) -> Over {
    let stopped = async {
        let _ = stop.await;
    };
    let Front::Http(doors) = front else {
        let Pipes { input, output, gone, borrowed } = Pipes::take();
        let ended = tokio::select! {
            ended = stdio::serve(gateway, input, output, stopped) => ended,
            // Nobody is left who would read an answer.
            () = gone.for_good() => Ended::AgentGone,
        };
        drop(borrowed);
        tracing::info!(reason = hold::why(ended), "session ended");
        return Over { code: hold::code(ended), why: hold::why(ended) };
    };
    if let Some(path) = doors.socket() {
        tracing::info!(socket = %path.display(), "serving");
    }
    if let Some(url) = doors.url() {
        tracing::info!(address = %url, "serving");
    }
    match front::serve(gateway, doors, stopped).await {
        Ok(served) => {
            tracing::info!(?served, "gateway stopped");
            Over { code: ExitCode::SUCCESS, why: "stopped by a signal" }
        }
        Err(error) => {
            log::say(format_args!("linetender: the listener failed: {error}"));
            Over { code: ExitCode::FAILURE, why: "the listener failed" }
        }
    }
}
