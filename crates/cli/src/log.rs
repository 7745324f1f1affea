//! Where the log goes: a file or stderr, and never stdout, which belongs to the agent.
//!
//! Everything that this binary writes there while it runs lines goes through a [`Writer`], so that no task waits for
//! whoever reads it and no write can fail upward: the log, what is told to the user, and panics. What others chose (names,
//! bodies, stderr) is made harmless there too, in [`one_line`]: no call of a logging macro can forget it.

mod json;
mod level;
mod writer;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Display, Write as _};
use std::io;
use std::panic::PanicHookInfo;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linetender::{hide_secrets, visible};
use linetender_holder::trusted;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt, reload};

use crate::args::{LogFlags, LogFormat};
use json::Json;
pub(crate) use level::Level;
use writer::{Target, Writer};

/// How long the last messages may take at the end of the process.
const LAST: Duration = Duration::from_millis(250);

/// The most bytes of one line, its end included.
const LONGEST: usize = 8 * 1024;

/// How much of a message is looked at: the rest can neither be shown nor change what is shown.
const LOOKED_AT: usize = 64 * 1024;

/// What is written to stderr. Started by the first who writes.
static STDERR: OnceLock<Writer> = OnceLock::new();

/// Whether somebody may read that.
static HAS_STDERR: AtomicBool = AtomicBool::new(true);

/// What is written to the file that was named instead of stderr.
static FILE: OnceLock<Writer> = OnceLock::new();

/// The form of its lines, once it was started.
static FORM: OnceLock<LogFormat> = OnceLock::new();

/// What changes its level while the process runs.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Writes what is left when it is dropped, within [`LAST`].
pub(crate) struct Flush;

impl Drop for Flush {
    fn drop(&mut self) {
        flush();
    }
}

/// Writes what is left, within [`LAST`].
pub(crate) fn flush() {
    for writer in [FILE.get(), STDERR.get()].into_iter().flatten() {
        writer.flush(LAST / 2);
    }
}

/// Starts the log, and sends panics there too. The stderr of servers that is passed on goes to ours.
pub(crate) fn start(flags: &LogFlags) -> io::Result<()> {
    let writer = match &flags.file {
        Some(file) => {
            let target = open(file)?;
            FILE.get_or_init(|| Writer::start(target))
        }
        None => stderr(),
    };
    let form = *FORM.get_or_init(|| flags.format);
    let (filter, handle) = reload::Layer::new(flags.level.targets());
    let log = fmt::layer().with_target(false).with_ansi(false).log_internal_errors(false);
    let log = log.with_writer(move || Events(writer, form));
    let log = match form {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.event_format(Json).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(log).init();
    let _ = FILTER.set(handle);
    linetender::pass_stderr_to(|lines| stderr().push(lines));
    std::panic::set_hook(Box::new(|panic| writer.push(report(panic).as_bytes())));
    Ok(())
}

/// Changes how much is logged from now on: a level or directives, as `--log-level` takes them.
///
/// # Errors
/// If it is no level, or if this process has no log.
pub(crate) fn set_level(level: &str) -> Result<(), String> {
    let level: Level = level.parse()?;
    let filter = FILTER.get().ok_or("this process has no log")?;
    filter.reload(level.targets()).map_err(|error| error.to_string())
}

/// Tells the user something, on stderr and on one line.
pub(crate) fn say(text: impl Display) {
    stderr().push(formed("INFO", &text.to_string()).as_bytes());
}

/// A message in the form of the log.
fn formed(level: &str, text: &str) -> String {
    match FORM.get() {
        Some(LogFormat::Json) => json::said(level, text),
        Some(LogFormat::Text) | None => one_line(text),
    }
}

/// Where the log's events go, each in one piece.
struct Events(&'static Writer, LogFormat);

impl io::Write for Events {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        match self.1 {
            LogFormat::Text => {
                let text = String::from_utf8_lossy(event);
                self.0.push(one_line(text.strip_suffix('\n').unwrap_or(&text)).as_bytes());
            }
            // It was made harmless field by field.
            LogFormat::Json => self.0.push(event),
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A message as one line with its line break: without the secrets that we were configured with, with everything spelt out
/// that cannot be seen, and no longer than [`LONGEST`].
fn one_line(text: &str) -> String {
    let looked_at = visible::first_bytes(text, LOOKED_AT);
    let mut line = visible::line(&hide_secrets(looked_at)).into_owned();
    let unseen = text.len() - looked_at.len();
    if line.len() + unseen >= LONGEST {
        let kept = visible::first_bytes(&line, LONGEST - 64).len();
        let left_out = line.len() - kept + unseen;
        line.truncate(kept);
        let _ = write!(line, "… ({left_out} more bytes)");
    }
    line.push('\n');
    line
}

/// From now on what would be told on stderr goes to the log's file, once there is one: a Windows service has no stderr.
#[cfg(windows)]
pub(crate) fn without_stderr() {
    HAS_STDERR.store(false, Ordering::Relaxed);
}

fn stderr() -> &'static Writer {
    if !HAS_STDERR.load(Ordering::Relaxed)
        && let Some(file) = FILE.get()
    {
        return file;
    }
    STDERR.get_or_init(|| Writer::start(Target::Stderr))
}

/// Opens a log file. Opening a FIFO waits for a reader, and that is left to the thread.
fn open(path: &Path) -> io::Result<Target> {
    Ok(match trusted::log(path)? {
        trusted::Log::Open(file) => Target::File(file),
        trusted::Log::Fifo(path) => Target::Fifo(path),
    })
}

/// One line about a panic, and a backtrace if the environment asks for one.
fn report(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed").to_owned();
    let payload = panic.payload();
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or("no message");
    let at = panic.location().map(ToString::to_string).unwrap_or_default();
    let mut text =
        formed("ERROR", &format!("linetender: internal error: thread {name} panicked at {at}: {message}"));
    let trace = Backtrace::capture();
    let is_text = FORM.get() != Some(&LogFormat::Json);
    if is_text && trace.status() == BacktraceStatus::Captured {
        let _ = writeln!(text, "{trace}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, one_line};

    #[test]
    fn the_level_can_be_changed_while_the_process_runs() {
        assert!(super::set_level("debug").is_err(), "there is no log yet");
        let flags =
            super::LogFlags { file: None, level: "info".parse().unwrap(), format: super::LogFormat::Text };
        super::start(&flags).unwrap();
        assert!(!tracing::enabled!(tracing::Level::DEBUG));
        super::set_level("debug").unwrap();
        assert!(tracing::enabled!(tracing::Level::DEBUG));
        assert!(super::set_level("loud").is_err() && tracing::enabled!(tracing::Level::DEBUG));
        super::set_level("error").unwrap();
        assert!(!tracing::enabled!(tracing::Level::INFO));
    }

    #[test]
    fn a_message_is_one_line_whatever_it_holds() {
        let forged =
            one_line("tool=bad\n1999-12-31T23:59:59Z  INFO server up\r\u{1b}[31m\u{2028}\u{202e}\u{9b}");
        assert_eq!(
            forged,
            "tool=bad\\n1999-12-31T23:59:59Z  INFO server up\\r\\u{1b}[31m\\u{2028}\\u{202e}\\u{9b}\n"
        );
        for text in ["N".repeat(5_000_000), "\u{1b}".repeat(5000), "ä".repeat(LONGEST / 2)] {
            let line = one_line(&text);
            assert!(line.len() <= LONGEST && line.ends_with(" more bytes)\n"), "{}", line.len());
        }
        assert_eq!(one_line(&"N".repeat(LONGEST - 1)).len(), LONGEST, "what fits is not cut");
    }
}
