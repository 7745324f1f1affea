//! Where the log goes: a file or stderr, and never stdout, which belongs to the agent.
//!
//! Everything that this binary writes there while it runs lines goes through a [`Writer`], so that no task waits for
//! whoever reads it and no write can fail upward: the log, what is told to the user, and panics.

mod writer;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Display, Write as _};
use std::io;
use std::panic::PanicHookInfo;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use linetender_holder::trusted;
use tracing::level_filters::LevelFilter;

use writer::{Target, Writer};

/// How long the last messages may take at the end of the process.
const LAST: Duration = Duration::from_millis(250);

/// What is written to stderr. Started by the first who writes.
static STDERR: OnceLock<Writer> = OnceLock::new();

/// What is written to the file that was named instead of stderr.
static FILE: OnceLock<Writer> = OnceLock::new();

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
pub(crate) fn start(file: Option<&Path>) -> io::Result<()> {
    let writer = match file {
        Some(file) => {
            let target = open(file)?;
            FILE.get_or_init(|| Writer::start(target))
        }
        None => stderr(),
    };
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).with_target(false).with_ansi(false);
    log.log_internal_errors(false).with_writer(|| writer.clone()).init();
    linetender::pass_stderr_to(|lines| stderr().push(lines));
    std::panic::set_hook(Box::new(|panic| writer.push(report(panic).as_bytes())));
    Ok(())
}

/// Tells the user something, on stderr.
pub(crate) fn say(text: impl Display) {
    stderr().push(format!("{text}\n").as_bytes());
}

fn stderr() -> &'static Writer {
    STDERR.get_or_init(|| Writer::start(Target::Stderr))
}

/// Opens a log file. Opening a FIFO waits for a reader, and that is left to the thread.
fn open(path: &Path) -> io::Result<Target> {
    Ok(match trusted::log(path)? {
        trusted::Log::Open(file) => Target::File(file),
        trusted::Log::Fifo(path) => Target::Fifo(path),
    })
}

/// One line about a panic, and a backtrace if the environment asks for one. Foreign text in it stays on its line.
fn report(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed").to_owned();
    let payload = panic.payload();
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or("no message").escape_debug();
    let at = panic.location().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("linetender: internal error: thread {name} panicked at {at}: {message}\n");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        let _ = writeln!(text, "{trace}");
    }
    text
}
