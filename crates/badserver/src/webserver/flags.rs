//! The server as a command, so that a real process can be killed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::manners::{Answers, Fault, Manners, Speaks, Streams, UnknownSession};
use super::{Config, Wants, WebServer};

/// What was asked for on the command line.
#[derive(Debug, Default)]
struct Flags {
    config: Config,
    certificate: Option<PathBuf>,
}

/// Serves until it is killed: `--http PORT`, and how to behave.
pub fn main(args: impl Iterator<Item = String>) -> ExitCode {
    let started = Flags::parse(args).and_then(|flags| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(serve(flags))
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("badserver: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What these flags of its come to.
///
/// # Errors
/// If there is no such flag, or no such value of it.
pub fn config(args: impl Iterator<Item = String>) -> Result<Config, String> {
    Flags::parse(args).map(|flags| flags.config)
}

async fn serve(flags: Flags) -> Result<(), String> {
    let web = WebServer::start(flags.config).map_err(|error| format!("cannot start: {error}"))?;
    if let (Some(path), Some(pem)) = (flags.certificate, web.certificate_pem()) {
        std::fs::write(path, pem).map_err(|error| format!("cannot write its certificate: {error}"))?;
    }
    println!("listening on {}", web.url());
    std::future::pending().await
}

impl Flags {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self::default();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} wants a value"));
            let manners = &mut flags.config.manners;
            match flag.as_str() {
                "--http" => flags.config.port = number(&value()?)?,
                "--book" => flags.config.book = Some(value()?.into()),
                "--tls" => flags.config.tls = true,
                "--certificate" => flags.certificate = Some(value()?.into()),
                "--era" => manners.speaks = speaks(&value()?)?,
                "--stateless" => manners.stateless = true,
                "--sse" => manners.answers = Answers::Sse,
                "--primed" => manners.answers = Answers::Primed,
                "--retry-ms" => manners.retry_ms = Some(number(&value()?)?),
                "--unknown-session" => manners.unknown_session = unknown(&value()?)?,
                "--streams" => manners.streams = streams(&value()?)?,
                "--wants-key" => {
                    let wants =
                        manners.wants.get_or_insert_with(|| Wants { challenges: true, ..Wants::default() });
                    wants.keys.push(value()?);
                }
                "--contexts" => manners.contexts = true,
                "--runs-what-it-refuses" => manners.runs_what_it_refuses = true,
                "--fault" => fault(manners, &value()?)?,
                other => return Err(format!("no such flag with --http: {other}")),
            }
        }
        Ok(flags)
    }
}

fn speaks(text: &str) -> Result<Speaks, String> {
    Ok(match text {
        "both" => Speaks::Both,
        "legacy" => Speaks::Legacy,
        "modern" => Speaks::Modern,
        other => return Err(format!("no such era: {other}")),
    })
}

/// A status, or the code of an error that comes with 200.
fn unknown(text: &str) -> Result<UnknownSession, String> {
    Ok(match text {
        "404" => UnknownSession::NotFound,
        "404-id" => UnknownSession::NotFoundById,
        "400" => UnknownSession::BadRequest,
        "401" => UnknownSession::Unauthorized,
        "503" => UnknownSession::Unavailable,
        code => UnknownSession::Error(number(code)?),
    })
}

fn streams(text: &str) -> Result<Streams, String> {
    let after = |ms: &str| number(ms).map(Duration::from_millis);
    Ok(match text.split_once(':').unwrap_or((text, "")) {
        ("open", "") => Streams::Open,
        ("silent", "") => Streams::Silent,
        ("empty", "") => Streams::Empty,
        ("refused", "") => Streams::Refused,
        ("close", ms) => Streams::CloseAfter(after(ms)?),
        ("cut", ms) => Streams::CutAfter(after(ms)?),
        _ => return Err(format!("no such kind of stream: {text}")),
    })
}

/// `METHOD=TOOL` or `METHOD=TOOL:ARGUMENTS`.
fn fault(manners: &mut Manners, text: &str) -> Result<(), String> {
    let (method, tool) = text.split_once('=').ok_or_else(|| format!("not METHOD=TOOL: {text}"))?;
    let (tool, arguments) = tool.split_once(':').unwrap_or((tool, "{}"));
    let arguments: Value = serde_json::from_str(arguments).map_err(|error| format!("{text}: {error}"))?;
    manners.fault_on(method, Fault::new(tool, arguments));
    Ok(())
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}
