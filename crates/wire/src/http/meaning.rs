//! What a response means: for its call, and, kept apart from that, for the line.
//!
//! A status alone says little: 404 is a lost session to a legacy server and an unknown method to a modern one, 400 is
//! anything. But a response belongs to the request it answers, so an error without an id still ends a call; and
//! whether *this* call ran is another question than whether the session lives. So the two are judged side by side,
//! without I/O and without a clock.

mod body;
mod retry;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use http::HeaderMap;
use linetender_core::LossReport;

use super::headers::SessionId;
use crate::frame::{Frame, Limits};
use crate::handshake::Era;
use crate::redact::Redacted;
use crate::seen::Seen;

/// The longest challenge that is kept.
pub const CHALLENGE_LIMIT: usize = 4096;

/// How many versions of a server's list are kept, and how long each may be.
pub const VERSIONS_MOST: (usize, usize) = (16, 64);

/// The most of a body that cannot be understood is shown.
pub const HEAD_SHOWN: usize = 200;

/// A response, and what it is a response to. It is not printed: its headers may hold a session.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// The era in which it was asked.
    pub era: Era,
    /// A legacy session was attached.
    pub session: bool,
    /// What was asked.
    pub asked: Purpose,
    /// The status.
    pub status: u16,
    /// All headers; `content-type`, `retry-after`, `date`, `www-authenticate` and `mcp-session-id` are looked at.
    pub headers: &'a HeaderMap,
    /// All of the body if it is JSON, else its beginning. Nothing if an event stream follows.
    pub body: &'a bytes::Bytes,
    /// How long and how deep the body may be.
    pub limits: Limits,
}

/// What was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// A request of a caller.
    Request {
        /// Our id of it.
        id: u64,
    },
    /// `initialize`.
    Initialize {
        /// Our id of it.
        id: u64,
    },
    /// `server/discover`.
    Discover {
        /// Our id of it.
        id: u64,
    },
    /// `ping`.
    Ping {
        /// Our id of it.
        id: u64,
    },
    /// A notification, or an answer to the server's own request.
    Notification,
    /// GET: the server's own stream, or a resumed one.
    Stream,
    /// DELETE: the end of a session.
    Delete,
}

/// What a response means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Meaning {
    /// For the call.
    pub call: Call,
    /// For the line.
    pub line: Line,
    /// The session that an `initialize` was given.
    pub session: Option<SessionId>,
}

/// What a response means for its call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Call {
    /// It is the answer, and carries our id whatever it carried on the way.
    Answer(Frame),
    /// The answer follows as events.
    Stream,
    /// It was taken, and there is nothing to answer.
    Accepted,
    /// The server answered, but nothing that can be passed on. Whether it ran is unknown.
    Unusable(Redacted),
    /// It is the answer to another request: on this connection requests and replies are out of step. Whether ours ran is
    /// unknown, and the connection must not be used again.
    OutOfStep,
    /// There is no answer.
    Lost {
        /// What is known about whether it was executed.
        report: LossReport,
        /// What came instead.
        words: Redacted,
        /// What the server said, for our id: worth passing on if nothing can be mended.
        said: Option<Frame>,
    },
}

/// How a request was refused: what two refusals have in common if they have the same reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The code of the JSON-RPC error.
    pub code: Option<i64>,
    /// Without a code: the beginning of the body.
    pub body: Redacted,
}

/// What a response means for the line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Line {
    /// Nothing.
    Fine,
    /// It is suspect: one probe, now.
    Trouble {
        /// What came.
        seen: Box<Seen>,
    },
    /// The session may be gone: a ping on the same session decides that.
    SessionDoubted {
        /// How the request was refused. If a ping is refused alike, the request counts as refused for its session;
        /// `None` where nothing can show that.
        refusal: Option<Box<Refusal>>,
    },
    /// The session is gone: initialize anew. No response says so by itself.
    SessionGone,
    /// It asks us to come back later.
    Throttled {
        /// The status that said so.
        status: u16,
        /// When; for the caller to clamp.
        after: Option<Duration>,
    },
    /// It wants credentials.
    WantsAuth {
        /// 401; to a handshake also 403.
        status: u16,
        /// As it was sent, for whoever gets the credentials. Show it only through [`Redacted`].
        challenge: Box<str>,
    },
    /// The credentials are good, but not for this request: 403 with a challenge. Others may do.
    WantsMore {
        /// As it was sent, for whoever gets better credentials. Show it only through [`Redacted`].
        challenge: Box<str>,
    },
    /// This is no MCP endpoint.
    NotMcp {
        /// The beginning of what it answered.
        head: Redacted,
    },
    /// The session id that came with the answer cannot be sent back: no further request would be heard.
    BadSession {
        /// What is wrong with it.
        words: Redacted,
    },
    /// It does not speak the era it was asked in.
    OtherEra,
    /// It speaks other versions of this era.
    OtherVersion {
        /// Which, in its words.
        supported: Vec<Box<str>>,
    },
    /// Our headers do not match what the server expects: read its tool list again.
    HeaderMismatch,
}

/// Judges a response.
pub fn judge(exchange: &Exchange<'_>) -> Meaning {
    table::judge(exchange)
}

impl Meaning {
    /// The same for a request that was redirected: whoever redirected it may have run it, whatever is said further on.
    #[must_use]
    pub fn after_redirect(mut self) -> Self {
        if let Call::Lost { report, .. } = &mut self.call {
            *report = LossReport::Nothing;
        }
        if let Line::SessionDoubted { refusal } = &mut self.line {
            *refusal = None;
        }
        self
    }
}

impl Purpose {
    /// Our id, if an answer is awaited.
    pub const fn id(self) -> Option<u64> {
        match self {
            Self::Request { id } | Self::Initialize { id } | Self::Discover { id } | Self::Ping { id } => {
                Some(id)
            }
            Self::Notification | Self::Stream | Self::Delete => None,
        }
    }

    /// Whether it is the first thing said to a server, where "no such thing here" means that there is no server.
    const fn is_handshake(self) -> bool {
        matches!(self, Self::Initialize { .. } | Self::Discover { .. })
    }
}

impl Line {
    /// What to give as the reason, should the line end by it; `None` if it is fine.
    pub fn seen(&self) -> Option<Seen> {
        Some(match self {
            Self::Fine | Self::HeaderMismatch => return None,
            Self::Trouble { seen } => Seen::clone(seen),
            Self::SessionDoubted { .. } | Self::SessionGone => Seen::SessionLost,
            Self::Throttled { status, after } => Seen::Throttled { status: *status, after: *after },
            Self::WantsAuth { challenge, .. } => {
                Seen::WantsAuth { challenge: Redacted::head(challenge, HEAD_SHOWN) }
            }
            Self::WantsMore { challenge } => {
                Seen::Http { status: 403, words: Redacted::head(challenge, HEAD_SHOWN) }
            }
            Self::NotMcp { head } => Seen::NotMcp { head: head.clone() },
            Self::BadSession { words } => Seen::BadSession { words: words.clone() },
            Self::OtherEra => Seen::OtherEra,
            Self::OtherVersion { supported } => Seen::Handshake {
                said: Redacted::head(
                    &format!("supported protocol versions: {}", supported.join(", ")),
                    HEAD_SHOWN,
                ),
            },
        })
    }
}
