//! What the wire saw of an end, in detail that a person can act on.

use std::fmt;
use std::sync::Arc;

use linetender_core::{Cause, Class};

use crate::redact::Redacted;

/// The detail of a cause, cheap to clone: it goes into the state, the journal and every failed call.
pub type Detail = Arc<Seen>;

/// What was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Seen {
    /// The program cannot be run.
    NotRunnable {
        /// As configured.
        program: Redacted,
        /// Where it was looked for, if it was looked for.
        searched: Redacted,
        /// The system's words.
        reason: String,
    },
    /// This machine could not start a process.
    NoProcess {
        /// The system's words.
        reason: String,
    },
    /// The process ended.
    Exited {
        /// How.
        exit: Exit,
        /// The end of what it wrote to stderr.
        stderr: Redacted,
    },
    /// It closed its output and lives on, or a pipe broke.
    Closed {
        /// Which.
        what: Pipe,
        /// The end of what it wrote to stderr.
        stderr: Redacted,
    },
    /// Our reaper of its process tree was killed.
    ReaperDied,
    /// It answered the handshake with an error, or with something else that is no handshake.
    Handshake {
        /// What it said.
        said: Redacted,
    },
    /// It ended when it was asked for its era.
    EndedOnProbe {
        /// How.
        exit: Option<Exit>,
    },
    /// Something went wrong while it was taken down.
    Teardown {
        /// What.
        what: String,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// By itself.
    Status(i32),
    /// By a signal.
    Signal(i32),
}

/// One of the pipes to a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pipe {
    /// Ours to it.
    Stdin,
    /// Its to us.
    Stdout,
}

impl Seen {
    /// The cause of an end of which this was seen: the table of classes.
    pub fn cause(self) -> Cause<Detail> {
        let class = match &self {
            Self::NotRunnable { .. } => Class::Config,
            Self::NoProcess { .. } => Class::Local,
            Self::Exited { .. } | Self::ReaperDied => Class::Exit,
            Self::Closed { .. } | Self::Teardown { .. } => Class::Transport,
            Self::Handshake { .. } => Class::Handshake,
            Self::EndedOnProbe { .. } => Class::EraProbe,
        };
        Cause::failed(class, Arc::new(self))
    }

    /// The last lines of stderr, if there are any.
    pub fn stderr(&self) -> Option<&Redacted> {
        match self {
            Self::Exited { stderr, .. } | Self::Closed { stderr, .. } if !stderr.is_empty() => Some(stderr),
            _ => None,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunnable { program, searched, reason } if searched.is_empty() => {
                write!(f, "cannot run {program}: {reason}")
            }
            Self::NotRunnable { program, searched, reason } => {
                write!(f, "cannot run {program}: {reason} (PATH searched: {searched})")
            }
            Self::NoProcess { reason } => write!(f, "this machine could not start a process: {reason}"),
            Self::Exited { exit, .. } => write!(f, "the server process {exit}"),
            Self::Closed { what: Pipe::Stdin, .. } => f.write_str("the server closed its input"),
            Self::Closed { what: Pipe::Stdout, .. } => f.write_str("the server closed its output"),
            Self::ReaperDied => f.write_str("linetender's reaper of the server process was killed"),
            Self::Handshake { said } => write!(f, "the server refused the handshake: {said}"),
            Self::EndedOnProbe { exit: Some(exit) } => {
                write!(f, "the server process {exit} when asked for its era")
            }
            Self::EndedOnProbe { exit: None } => f.write_str("the server hung up when asked for its era"),
            Self::Teardown { what } => f.write_str(what),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Status(status) => write!(f, "exited with status {status}"),
            Self::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

/// The names people know. The numbers are those of Linux and macOS alike.
const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Exit, Pipe, Seen};
    use crate::redact::Redacted;
    use linetender_core::{Class, Leaf};

    fn text(text: &str) -> Redacted {
        Redacted::head(text, 100)
    }

    /// The table: what was seen, its class, and the words for it.
    #[test]
    fn each_sight_has_its_class_and_its_words() {
        let stderr = || text("boom");
        for (seen, class, words) in [
            (
                Seen::NotRunnable {
                    program: text("npy"),
                    searched: text("/bin"),
                    reason: "no such file".into(),
                },
                Class::Config,
                "cannot run npy: no such file (PATH searched: /bin)",
            ),
            (
                Seen::NotRunnable {
                    program: text("./x"),
                    searched: text(""),
                    reason: "not executable".into(),
                },
                Class::Config,
                "cannot run ./x: not executable",
            ),
            (
                Seen::NoProcess { reason: "too many files".into() },
                Class::Local,
                "this machine could not start a process: too many files",
            ),
            (
                Seen::Exited { exit: Exit::Status(3), stderr: stderr() },
                Class::Exit,
                "the server process exited with status 3",
            ),
            (
                Seen::Exited { exit: Exit::Signal(9), stderr: stderr() },
                Class::Exit,
                "the server process was killed by signal 9 (SIGKILL)",
            ),
            (
                Seen::Exited { exit: Exit::Signal(40), stderr: stderr() },
                Class::Exit,
                "the server process was killed by signal 40",
            ),
            (
                Seen::Closed { what: Pipe::Stdin, stderr: stderr() },
                Class::Transport,
                "the server closed its input",
            ),
            (
                Seen::Closed { what: Pipe::Stdout, stderr: stderr() },
                Class::Transport,
                "the server closed its output",
            ),
            (Seen::ReaperDied, Class::Exit, "linetender's reaper of the server process was killed"),
            (Seen::Handshake { said: text("no") }, Class::Handshake, "the server refused the handshake: no"),
            (Seen::EndedOnProbe { exit: None }, Class::EraProbe, "the server hung up when asked for its era"),
            (
                Seen::EndedOnProbe { exit: Some(Exit::Status(1)) },
                Class::EraProbe,
                "the server process exited with status 1 when asked for its era",
            ),
            (Seen::Teardown { what: "kill: no".into() }, Class::Transport, "kill: no"),
        ] {
            assert_eq!(seen.to_string(), words);
            assert_eq!(seen.stderr().is_some(), matches!(seen, Seen::Exited { .. } | Seen::Closed { .. }));
            assert!(seen.cause().leaves().has(Leaf::Failed(class)), "{words}");
        }
    }
}
