//! `linetender call`: one call of a tool, with the verdict on whether it was executed.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::{
    Answer, CallError, Deadline, Delivery, Doubt, Evidence, Line, Options, Outcome as Ended, Progress, Raw,
    Receipt, Retry, Rig, Server, UnderWay, Witness, hide_secrets, visible,
};

use crate::configured::{self, misused};
use crate::dial::{self, Dialled};
use crate::stop::Signals;
use crate::{args, stop};

/// The tool, or the server, answered with an error.
const FAILED: u8 = 1;
/// The call was not executed.
const NOT_EXECUTED: u8 = 3;
/// Whether it was, is unknown.
const UNKNOWN: u8 = 4;

/// The most bytes of arguments that are read from stdin.
const MOST: u64 = 16 << 20;

/// The most characters of a line on stderr.
const LONGEST: usize = 2000;

/// What is allowed beyond the timeouts of a shutdown before it is left to the reaper.
const SLACK: Duration = Duration::from_secs(1);

/// Tells on stderr of each re-send.
#[derive(Debug)]
struct Resends;

impl Witness for Resends {
    fn came(&self, _: &Arc<UnderWay>, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn retried(&self, call: &Arc<UnderWay>, Retry { reason, attempt, .. }: Retry) {
        tell(&format!("{} is sent again (attempt {attempt}: {})", call.method, reason.name()));
    }

    fn ended(&self, _: &Arc<UnderWay>, _: &Ended<'_>) -> Option<Receipt> {
        None
    }
}

/// How a call ended.
enum Outcome {
    Answered(Answer),
    Failed(Box<CallError>),
    /// The server did not start, so nothing was sent.
    NeverStarted(dial::Failure),
    /// A signal came: before the call was sent, or after.
    Interrupted {
        sent: bool,
    },
}

pub(crate) fn call(args: &args::Call) -> ExitCode {
    let arguments = match arguments(&args.arguments) {
        Ok(arguments) => arguments,
        Err(why) => return misused(&why),
    };
    let entry = match configured::entry(&args.server, &args.from) {
        Ok(entry) => entry,
        Err(why) => return misused(&why),
    };
    let runtime = match configured::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return misused(&format!("cannot start: {error}")),
    };
    let deadline = args.timeout.map_or(entry.server.calls_end(), Deadline::after);
    let outcome = runtime.block_on(made(&entry.server, &args.tool, &arguments, deadline));
    let (code, verdict) = verdict(&args.tool, &outcome);
    if let Outcome::Answered(answer) = &outcome {
        let text = if args.json { visible::json(answer.raw()).into_owned() } else { in_text(answer) };
        if writeln!(std::io::stdout(), "{}", text.trim_end()).is_err() {
            tell(&verdict);
            return ExitCode::from(FAILED);
        }
    }
    tell(&verdict);
    ExitCode::from(code)
}

/// The arguments as they were typed, if they are an object.
fn arguments(word: &str) -> Result<String, String> {
    let text = if word == "-" {
        let mut text = String::new();
        let read = std::io::stdin().take(MOST + 1).read_to_string(&mut text);
        read.map_err(|error| format!("cannot read the arguments from stdin: {error}"))?;
        if text.len() as u64 > MOST {
            return Err(format!("the arguments are longer than {} MiB", MOST >> 20));
        }
        text
    } else {
        word.to_owned()
    };
    match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(_)) => Ok(text.trim().to_owned()),
        Ok(_) => Err("the arguments are not a JSON object, such as '{\"message\": \"hello\"}'".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

/// Starts the server, makes the call, and stops the server.
async fn made(server: &Server, tool: &str, arguments: &str, deadline: Deadline) -> Outcome {
    let mut signals = Signals::of(stop::SHIM);
    let quiet = dial::quiet(server);
    let line = Rig::new().dialling_once().lazy(quiet.clone());
    line.seen_by(Arc::new(Resends));
    let longest = dial::longest(&quiet);
    let started = tokio::select! {
        Dialled { outcome, .. } = dial::dialled(&line, longest) => outcome,
        _ = signals.next() => {
            stopped(&quiet, &line).await;
            return Outcome::Interrupted { sent: false };
        }
    };
    let outcome = match started {
        Err(failure) => Outcome::NeverStarted(failure),
        Ok(()) => answered(&line, tool, arguments, deadline, &mut signals).await,
    };
    if let Outcome::Interrupted { .. } = outcome {
        cancellation_read(&line).await;
    }
    stopped(&quiet, &line).await;
    outcome
}

/// Makes the call, and tells of its progress.
async fn answered(
    line: &Line,
    tool: &str,
    arguments: &str,
    deadline: Deadline,
    signals: &mut Signals,
) -> Outcome {
    let (options, mut progress) = Options::default().deadline(deadline).progress();
    let call = line.call_tool_with(tool, Raw(arguments), options);
    let told = async {
        while let Some(step) = progress.next().await {
            tell(&step_in_words(&step));
        }
    };
    tokio::select! {
        (made, ()) = async { tokio::join!(call, told) } => {
            made.map_or_else(|error| Outcome::Failed(Box::new(error)), Outcome::Answered)
        }
        // Its caller drops it, and the server is told that it is cancelled.
        _ = signals.next() => Outcome::Interrupted { sent: true },
    }
}

/// Waits until the server has read that a call is cancelled: it reads in order, so an answer to anything else shows that.
async fn cancellation_read(line: &Line) {
    let asked = line.request("tools/list", serde_json::json!({}), Options::default());
    let _ = tokio::time::timeout(SLACK, asked).await;
}

async fn stopped(server: &Server, line: &Line) {
    let _ = tokio::time::timeout(server.settings().close.worst() + SLACK, line.close()).await;
}

/// The exit code, and the verdict in words.
fn verdict(tool: &str, outcome: &Outcome) -> (u8, String) {
    match outcome {
        Outcome::Answered(answer) if answer.is_tool_error() => {
            (FAILED, format!("answered: the tool {tool} ran and reported an error"))
        }
        Outcome::Answered(_) => (0, format!("answered: the tool {tool} was executed")),
        Outcome::NeverStarted(failure) => (
            NOT_EXECUTED,
            format!("not executed: the server did not start, so nothing was sent: {}", failure.in_one()),
        ),
        Outcome::Interrupted { sent: false } => {
            (NOT_EXECUTED, "not executed: interrupted before the call was sent".to_owned())
        }
        Outcome::Interrupted { sent: true } => {
            (UNKNOWN, format!("unknown: {}; {CHECK}", doubt(Doubt::Cancelled)))
        }
        Outcome::Failed(error) => {
            let cause = error.cause.trim_end_matches('.');
            match error.delivery {
                Delivery::NotExecuted(evidence) => {
                    (NOT_EXECUTED, format!("not executed: {cause}. How that is known: {}", counted(evidence)))
                }
                Delivery::Refused(_) => (UNKNOWN, format!("refused: {cause}; {REFUSED}; {CHECK}")),
                Delivery::Unknown(why) => (UNKNOWN, format!("unknown: {cause}; {}; {CHECK}", doubt(why))),
                Delivery::Answered => (FAILED, format!("answered: {cause}")),
            }
        }
    }
}

/// What a person does next if the outcome is unknown.
const CHECK: &str = "check for its effects before you repeat it";

/// What linetender knows of a call that the server refused.
const REFUSED: &str = "the server says that it did not execute it, and linetender cannot check that";

/// What linetender counted of a call that was not executed.
const fn counted(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Residue => "the server ended before it had read any of it",
        Evidence::NoByteWritten => "no byte of it was written to the connection",
        _ => "linetender had not sent any of it",
    }
}

/// Why it is not known whether a call was executed.
fn doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Deadline => "its time was up while the server had it",
        Doubt::Cancelled => "interrupted while the server had it; it was told to cancel the call",
        Doubt::Lost => "the server had it and did not answer it",
        _ => "it may have been executed",
    }
}

/// The text of a result; what is no text is named.
fn in_text(answer: &Answer) -> String {
    let text = answer.text();
    if !text.is_empty() {
        return visible::block(&text).into_owned();
    }
    let structured = answer.parse_structured::<serde_json::Value>();
    match structured {
        Ok(value) => visible::json(&format!("{value:#}")).into_owned(),
        Err(_) => String::new(),
    }
}

fn step_in_words(step: &Progress) -> String {
    let far = match (step.progress, step.total) {
        (Some(far), Some(total)) => format!("{far} of {total}"),
        (Some(far), None) => far.to_string(),
        _ => String::new(),
    };
    let message = step.message.as_deref().unwrap_or_default();
    format!("progress: {far}{}{message}", if far.is_empty() || message.is_empty() { "" } else { ", " })
}

fn tell(words: &str) {
    eprintln!("linetender: {}", visible::cut(&hide_secrets(words), LONGEST));
}
