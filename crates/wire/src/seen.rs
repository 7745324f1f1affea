//! What the wire saw of an end, in detail that a person can act on.

mod login;
mod name;
mod nt_status;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use linetender_core::{Cause, Class};

use crate::redact::Redacted;

/// The detail of a cause, cheap to clone: it goes into the state, the journal and every failed call.
pub type Detail = Arc<Seen>;

/// Observed cause of the end of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Seen {
    /// The program cannot be started.
    NotRunnable {
        /// As configured.
        program: Redacted,
        /// Where it was looked for, if it was looked for.
        searched: Redacted,
        /// Error of the operating system.
        reason: String,
    },
    /// The working directory cannot be entered.
    NoDir {
        /// As configured.
        dir: Redacted,
        /// The system's words.
        reason: String,
    },
    /// No usable reaper program.
    NoReaper {
        /// What is missing and how to fix it.
        reason: String,
    },
    /// The program runs, but its output cannot be MCP.
    NotAServer {
        /// What it writes.
        words: Redacted,
    },
    /// This machine cannot start a process (resource limits).
    NoProcess {
        /// The system's words.
        reason: String,
    },
    /// This machine cannot open a connection: out of descriptors or memory.
    NoSocket {
        /// The system's words.
        reason: String,
    },
    /// The server process exited or was killed.
    Exited {
        /// How.
        exit: Exit,
        /// The end of what it wrote to stderr.
        stderr: Redacted,
    },
    /// The container cannot have its name: another container has it.
    NameTaken {
        /// The name.
        name: Redacted,
        /// How the client ended.
        exit: Exit,
        /// The end of what it wrote to stderr.
        stderr: Redacted,
    },
    /// The container client ended since it could not write the file that linetender had named for the container's id.
    CidfileRefused {
        /// The end of what it wrote to stderr.
        stderr: Redacted,
    },
    /// A container of an earlier start may still run, and cannot be ended.
    ContainerStays {
        /// The beginning of its id.
        id: String,
        /// Why not.
        reason: Redacted,
    },
    /// The server closed a pipe but kept running, or the pipe broke.
    Closed {
        /// Which.
        what: Pipe,
        /// The end of what it wrote to stderr.
        stderr: Redacted,
    },
    /// linetender's reaper of the process tree was killed.
    ReaperDied,
    /// This process owned the server for so long, and did not get an extension.
    LeaseOver,
    /// The linetender process that holds a shared server ended or was killed.
    OwnerGone,
    /// The linetender process that holds a shared server went on purpose.
    OwnerLeft,
    /// The linetender process that holds a shared server does not answer.
    OwnerHangs,
    /// The gateway that runs the server, another one of the fleet, ended or cannot be reached.
    NodeGone,
    /// The gateway that runs the server, another one of the fleet, lets another one have it.
    NodeLeft,
    /// The gateway that runs the server, another one of the fleet, did not take the order.
    NodeRefused {
        /// Why.
        reason: String,
    },
    /// The handshake failed: an error, or an invalid result.
    Handshake {
        /// What it said.
        said: Redacted,
    },
    /// The server exited or disconnected on protocol version detection.
    EndedOnProbe {
        /// How.
        exit: Option<Exit>,
    },
    /// The server is unreachable.
    Unreachable {
        /// How.
        words: Redacted,
        /// A configuration error: bad URL, bad certificate, redirect to another origin.
        config: bool,
    },
    /// The HTTP exchange failed after the connection was up: while writing the request or reading the response.
    Broken {
        /// Where and how.
        words: Redacted,
    },
    /// Connection refused.
    Refused {
        /// Which address.
        words: Redacted,
    },
    /// Unknown host name.
    NoSuchHost {
        /// Which name.
        words: Redacted,
    },
    /// Unexpected HTTP status.
    Http {
        /// The status.
        status: u16,
        /// What it said.
        words: Redacted,
    },
    /// The response is not valid MCP, although the endpoint may be.
    Unusable {
        /// What came instead.
        words: Redacted,
    },
    /// The server no longer recognizes the session.
    SessionLost,
    /// The server did not recognize the session on its first use.
    SessionNeverKnown,
    /// The server answers as one that was never initialized: it was restarted behind its process or its address.
    NotInitialized {
        /// What it says.
        said: Redacted,
    },
    /// The event stream that every answer comes on ended (HTTP+SSE of 2024-11-05), and the session with it.
    StreamEnded {
        /// How it broke; nothing if the server closed it.
        words: Redacted,
    },
    /// The event stream names no URL that messages may be sent to (HTTP+SSE of 2024-11-05).
    BadEndpoint {
        /// What is wrong with it.
        words: Redacted,
    },
    /// The session id that the server gave cannot be sent back to it.
    BadSession {
        /// What is wrong with it.
        words: Redacted,
    },
    /// The URL is not an MCP endpoint.
    NotMcp {
        /// The beginning of what it answered.
        head: Redacted,
    },
    /// Authentication required.
    WantsAuth {
        /// What kind, in its words.
        challenge: Redacted,
    },
    /// Authentication required, and somebody has to log in.
    NeedsLogin {
        /// Why, and which command to type.
        words: Redacted,
    },
    /// Authentication required, and no credential can be had at the moment.
    NoKey {
        /// Why.
        words: Redacted,
        /// When to ask again, if whoever gives them said so.
        after: Option<Duration>,
    },
    /// The server asked to retry later.
    Throttled {
        /// The HTTP status that said so.
        status: u16,
        /// When.
        after: Option<Duration>,
    },
    /// The server does not support the cached protocol version.
    OtherEra,
    /// A linetender task panicked.
    Internal {
        /// Which.
        task: &'static str,
    },
    /// An error during shutdown.
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
            Self::NotRunnable { .. }
            | Self::NoDir { .. }
            | Self::NoReaper { .. }
            | Self::NotAServer { .. } => Class::Config,
            Self::NoProcess { .. }
            | Self::NoSocket { .. }
            | Self::OwnerLeft
            | Self::LeaseOver
            // The next start does without the file.
            | Self::CidfileRefused { .. }
            // The server is not to blame for what happens to gateways.
            | Self::NodeGone
            | Self::NodeLeft
            | Self::NodeRefused { .. } => Class::Local,
            Self::Exited { .. } | Self::NameTaken { .. } | Self::ReaperDied | Self::OwnerGone => Class::Exit,
            Self::OwnerHangs => Class::Silent,
            Self::Closed { .. } | Self::Internal { .. } | Self::Teardown { .. } => Class::Transport,
            Self::Handshake { .. } => Class::Handshake,
            Self::EndedOnProbe { .. } | Self::OtherEra => Class::EraProbe,
            Self::Unreachable { config: true, .. }
            | Self::NotMcp { .. }
            | Self::BadEndpoint { .. }
            | Self::BadSession { .. } => Class::Config,
            Self::Unreachable { config: false, .. }
            | Self::Refused { .. }
            | Self::NoSuchHost { .. }
            | Self::Broken { .. }
            | Self::ContainerStays { .. }
            | Self::NoKey { .. }
            | Self::Http { .. } => Class::Transport,
            Self::Unusable { .. } => Class::Protocol,
            Self::SessionLost
            | Self::SessionNeverKnown
            | Self::NotInitialized { .. }
            | Self::StreamEnded { .. } => Class::SessionLost,
            Self::WantsAuth { .. } | Self::NeedsLogin { .. } => Class::Auth,
            Self::Throttled { .. } => Class::Overload,
        };
        let after = match self {
            Self::Throttled { after, .. } | Self::NoKey { after, .. } => after,
            _ => None,
        };
        let refused = self.is_login_refused();
        let cause = Cause::failed(class, Arc::new(self));
        let cause = if refused { cause.with_login_refused() } else { cause };
        match after {
            Some(after) => cause.with_retry_after(after),
            None => cause,
        }
    }

    /// Whether the server was reached.
    pub const fn was_reached(&self) -> bool {
        matches!(
            self,
            Self::Http { .. }
                | Self::Broken { .. }
                | Self::Unusable { .. }
                | Self::NotMcp { .. }
                | Self::WantsAuth { .. }
                | Self::SessionLost
                | Self::SessionNeverKnown
                | Self::NotInitialized { .. }
                | Self::StreamEnded { .. }
                | Self::BadEndpoint { .. }
        )
    }

    /// True if the server says that its login was refused, on stderr before its end or as its answer to the handshake.
    fn is_login_refused(&self) -> bool {
        match self {
            Self::Exited { stderr, .. } | Self::Closed { stderr, .. } => login::is_refused(stderr.as_str()),
            Self::Handshake { said } => login::is_refused(said.as_str()),
            _ => false,
        }
    }

    /// The same cause for a server that was just probed with `server/discover`, on which some exit. One whose login was refused
    /// did not exit for that, and is not started again at once.
    #[must_use]
    pub fn on_probe(self) -> Self {
        match self {
            refused if refused.is_login_refused() => refused,
            Self::Exited { exit, .. } => Self::EndedOnProbe { exit: Some(exit) },
            Self::Closed { .. } => Self::EndedOnProbe { exit: None },
            other => other,
        }
    }

    /// Whether this machine was the reason, and not the server.
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::NoProcess { .. } | Self::NoSocket { .. })
    }

    /// The same in words without what only the operator of this machine is to read: the `PATH` that was searched (X20).
    pub fn to_outsiders(&self) -> String {
        match self {
            Self::NotRunnable { program, reason, .. } => format!("cannot run {program}: {reason}"),
            other => other.to_string(),
        }
    }

    /// The last lines of stderr, if there are any.
    pub fn stderr(&self) -> Option<&Redacted> {
        match self {
            Self::Exited { stderr, .. }
            | Self::NameTaken { stderr, .. }
            | Self::CidfileRefused { stderr }
            | Self::Closed { stderr, .. }
                if !stderr.is_empty() =>
            {
                Some(stderr)
            }
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
            Self::NoDir { dir, reason } => write!(f, "cannot enter the working directory {dir}: {reason}"),
            Self::NoReaper { reason } => write!(f, "cannot start the reaper of the server process: {reason}"),
            Self::NotAServer { words } => write!(f, "the program is not an MCP server: {words}"),
            Self::NoProcess { reason } => write!(f, "this machine cannot start a process: {reason}"),
            Self::NoSocket { reason } => write!(f, "this machine cannot open a connection: {reason}"),
            Self::Exited { exit, .. } => write!(f, "the server process {exit}"),
            Self::NameTaken { name, exit, .. } => write!(
                f,
                "the container name {name} is in use by another container (the server process {exit}): stop and remove that \
                 container, or let each start have a name of its own (no --name)"
            ),
            Self::CidfileRefused { .. } => f.write_str(
                "the container client could not write the file that linetender names with --cidfile; it is started without",
            ),
            Self::ContainerStays { id, reason } => {
                write!(f, "container {id} of an earlier start may still run and cannot be ended: {reason}")
            }
            Self::Closed { what: Pipe::Stdin, .. } => f.write_str("the server closed its stdin"),
            Self::Closed { what: Pipe::Stdout, .. } => f.write_str("the server closed its stdout"),
            Self::ReaperDied => f.write_str("linetender's reaper process for this server was killed"),
            Self::LeaseOver => f.write_str("this gateway's lease on the server ended, and the server was stopped"),
            Self::NodeGone => f.write_str("the gateway that runs this server ended or cannot be reached"),
            Self::NodeLeft => f.write_str("the server moved to another gateway"),
            Self::NodeRefused { reason } => write!(f, "the gateway that runs this server refused: {reason}"),
            Self::OwnerGone => f.write_str("the linetender process that shares this server ended"),
            Self::OwnerLeft => f.write_str("the linetender process that shares this server was replaced"),
            Self::OwnerHangs => f.write_str("the linetender process that shares this server does not answer"),
            Self::Handshake { said } => write!(f, "the server rejected the MCP handshake: {said}"),
            Self::EndedOnProbe { exit: Some(exit) } => {
                write!(f, "the server process {exit} during protocol version detection (server/discover)")
            }
            Self::EndedOnProbe { exit: None } => f.write_str("the server closed the connection during protocol version detection (server/discover)"),
            Self::Unreachable { words, .. } | Self::Refused { words } | Self::NoSuchHost { words } => {
                write!(f, "the server is unreachable: {words}")
            }
            Self::Broken { words } => write!(f, "HTTP transport error: {words}"),
            Self::Http { status, words } if words.is_empty() => {
                write!(f, "the server returned HTTP {status}")
            }
            Self::Http { status, words } => write!(f, "the server returned HTTP {status}: {words}"),
            Self::Unusable { words } => write!(f, "unexpected response from the server: {words}"),
            Self::SessionLost => f.write_str("the server no longer recognizes the MCP session"),
            Self::SessionNeverKnown => f.write_str(
                "the server does not recognize the MCP session it has just created: behind a load balancer, check session \
                 affinity (sticky sessions)",
            ),
            Self::NotInitialized { said } => {
                write!(f, "the server was restarted without the MCP handshake; it answered: {said}")
            }
            Self::StreamEnded { words } if words.is_empty() => f.write_str("the server closed its event stream"),
            Self::StreamEnded { words } => write!(f, "the event stream of the server broke: {words}"),
            Self::BadEndpoint { words } => {
                write!(f, "the endpoint that the server names on its event stream cannot be used: {words}")
            }
            Self::BadSession { words } => {
                write!(f, "the session id that the server gave cannot be used: {words}")
            }
            Self::NotMcp { head } => write!(f, "not an MCP endpoint; it returned: {head}"),
            Self::WantsAuth { challenge } if challenge.is_empty() => {
                f.write_str("the server requires authentication")
            }
            Self::WantsAuth { challenge } => write!(f, "the server requires authentication: {challenge}"),
            Self::NeedsLogin { words } => write!(f, "the server requires a login: {words}"),
            Self::NoKey { words, .. } => write!(f, "no credentials for the server at the moment: {words}"),
            Self::Throttled { status, after: None } => {
                write!(f, "the server asked to retry later (HTTP {status})")
            }
            Self::Throttled { status, after: Some(after) } => {
                let seconds = after.as_millis().div_ceil(1000);
                write!(f, "the server asked to retry in {seconds} s (HTTP {status})")
            }
            Self::OtherEra => f.write_str("the server does not support the protocol version that it was detected with"),
            Self::Internal { task } => write!(f, "internal error in linetender ({task} panicked)"),
            Self::Teardown { what } => f.write_str(what),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // A shell tells of a child's signal by this number; so does an image's init.
            Self::Status(status @ 129..=192) => match signal_name(status - 128) {
                Some(name) => write!(f, "exited with status {status} ({name}, as a shell reports it)"),
                None => write!(f, "exited with status {status}"),
            },
            // On Windows a crash is a status, which is known by its hexadecimal digits.
            Self::Status(status @ ..0) => {
                let code = status.cast_unsigned();
                match nt_status::name(code) {
                    Some(name) => write!(f, "exited with status {code:#010x} ({name})"),
                    None => write!(f, "exited with status {code:#010x}"),
                }
            }
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
