//! How an exchange broke, as facts: in which phase, after how many bytes, and what that says about the call.

use std::fmt;

use linetender_core::LossReport;

use crate::redact::Redacted;
use crate::seen::Seen;

/// The most characters of foreign text in a sentence of ours.
const SHOWN: usize = 300;

/// An exchange that brought no response, or half of one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// When it broke.
    pub phase: Phase,
    /// How many bytes of the request had been written; `None` where a shared connection cannot tell.
    pub written: Option<u64>,
    /// How many bytes of the response's body had come.
    pub received: u64,
    /// What the core is told about the call.
    pub report: LossReport,
    /// What went wrong, for a person.
    pub words: Redacted,
}

/// The steps of an exchange, in their order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The address cannot be used as it is configured.
    Url,
    /// Its name was being looked up.
    Dns {
        /// It was said that there is no such host; else that may be known later.
        no_such_host: bool,
    },
    /// This machine could not make a connection to anybody.
    Machine,
    /// A connection was being made.
    Connect,
    /// A connection was refused: nobody listens there now.
    Refused,
    /// The proxy was being asked for a tunnel.
    Proxy {
        /// It wants credentials, or cannot be used as it is configured.
        config: bool,
    },
    /// TLS was being agreed on.
    Tls {
        /// The certificate was refused: asking again brings the same one.
        certificate: bool,
    },
    /// The caller withdrew the request before it was written.
    Withdrawn,
    /// The request was being written.
    Request,
    /// The head of the response was being awaited, or cannot be used.
    Head,
    /// A redirect that is not followed.
    Redirect,
    /// The body was being read.
    Body,
    /// The body is longer than the limit.
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// There is no room for the body.
    NoRoom,
}

impl Broken {
    /// Before a connection stood: nothing was written.
    pub(super) fn unsent(phase: Phase, words: impl fmt::Display) -> Self {
        Self {
            phase,
            written: Some(0),
            received: 0,
            report: LossReport::NoByteWritten,
            words: Redacted::head(&words.to_string(), SHOWN),
        }
    }

    /// After that.
    pub(super) fn sent(phase: Phase, written: Option<u64>, words: impl fmt::Display) -> Self {
        let report = if written == Some(0) { LossReport::NoByteWritten } else { LossReport::Nothing };
        Self { phase, written, received: 0, report, words: Redacted::head(&words.to_string(), SHOWN) }
    }

    /// Forgets what is known about the call, because an earlier hop may have executed it.
    #[must_use]
    pub fn after_earlier_hop(self) -> Self {
        Self { report: LossReport::Nothing, ..self }
    }

    /// Whether the same attempt would fail the same way until somebody changes something.
    pub const fn is_config(&self) -> bool {
        matches!(
            self.phase,
            Phase::Url | Phase::Tls { certificate: true } | Phase::Proxy { config: true } | Phase::Redirect
        )
    }

    /// What it is for the line, should the line end by it.
    pub fn seen(&self) -> Seen {
        match self.phase {
            Phase::Machine => Seen::NoSocket { reason: self.words.to_string() },
            Phase::Refused => Seen::Refused { words: Redacted::head(&self.to_string(), 2 * SHOWN) },
            Phase::Dns { no_such_host: true } => {
                Seen::NoSuchHost { words: Redacted::head(&self.to_string(), 2 * SHOWN) }
            }
            // By then there was a connection.
            Phase::Request | Phase::Head | Phase::Body | Phase::TooLarge { .. } | Phase::NoRoom => {
                Seen::Broken { words: Redacted::head(&self.to_string(), 2 * SHOWN) }
            }
            Phase::Url
            | Phase::Dns { no_such_host: false }
            | Phase::Connect
            | Phase::Withdrawn
            | Phase::Proxy { .. }
            | Phase::Tls { .. }
            | Phase::Redirect => Seen::Unreachable {
                words: Redacted::head(&self.to_string(), 2 * SHOWN),
                config: self.is_config(),
            },
        }
    }
}

impl Phase {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "address",
            Self::Dns { .. } => "DNS lookup",
            Self::Machine => "this machine",
            Self::Connect | Self::Refused => "connect",
            Self::Proxy { .. } => "proxy",
            Self::Tls { .. } => "TLS",
            Self::Withdrawn | Self::Request => "request",
            Self::Head => "response",
            Self::Redirect => "redirect",
            Self::Body => "response body",
            Self::TooLarge { .. } | Self::NoRoom => "response size",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase.name(), self.words)?;
        match self.phase {
            Phase::Body | Phase::TooLarge { .. } | Phase::NoRoom => {
                write!(f, " ({} bytes received)", self.received)
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Broken {}

/// An error with everything behind it: hyper's own words end where the cause begins.
pub(super) struct Chain<'a>(pub(super) &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DEEPEST: usize = 6;
        write!(f, "{}", self.0)?;
        let behind = std::iter::successors(self.0.source(), |error| error.source());
        behind.take(DEEPEST).try_for_each(|error| write!(f, ": {error}"))
    }
}
