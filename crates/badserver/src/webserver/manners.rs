//! How a server behaves. Everything here can change while it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::wants::Wants;

/// Which eras it speaks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Speaks {
    /// 2025-11-25 and before, and 2026-07-28.
    #[default]
    Both,
    /// 2025-11-25 and before.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Answers {
    /// As one JSON body.
    #[default]
    Json,
    /// As a stream of events without ids.
    Sse,
    /// As a stream of events with ids, that begins with an empty one and can be resumed.
    Primed,
}

/// What a legacy server says to a session it does not know.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum UnknownSession {
    /// 404, as the specification asks.
    #[default]
    NotFound,
    /// 404 and an error with the request's id, as the C# SDK does.
    NotFoundById,
    /// 400 and an error whose id is null, as the reference server does.
    BadRequest,
    /// 401 without a challenge.
    Unauthorized,
    /// 503.
    Unavailable,
    /// 200 and an error with the request's id and this code.
    Error(i64),
}

/// What becomes of a legacy GET stream, and of a modern `subscriptions/listen`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Streams {
    /// Stays open, and tells changes.
    #[default]
    Open,
    /// Stays open, and never says a word.
    Silent,
    /// Ends at once, without a word.
    Empty,
    /// Ends properly after this long; a subscription with its result.
    CloseAfter(Duration),
    /// Is cut after this long: with its connection on HTTP/1, by a stream reset on HTTP/2.
    CutAfter(Duration),
    /// 405 on GET; no such method in the modern era.
    Refused,
}

/// What becomes of messages at the URLs of HTTP+SSE.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SseDoor {
    /// They are answered on the stream.
    #[default]
    Answers,
    /// They are taken, and never answered.
    Mute,
    /// They are answered on the stream, and their POSTs never are.
    HoldsPosts,
    /// Streamable HTTP is spoken there instead.
    Streamable,
}

/// What happens to whole connections, those that are open included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Sockets {
    /// Nothing.
    #[default]
    Open,
    /// They are accepted and stay open, and nothing is read or written.
    Silent,
    /// They are reset.
    Reset,
}

/// One of [`TOOLS`](super::TOOLS), applied to a JSON-RPC method instead of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The tool's name.
    pub tool: String,
    /// The tool's arguments.
    pub arguments: Value,
    /// How often it still happens; `None` is for ever.
    pub times: Option<u32>,
}

/// How a server behaves.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
pub struct Manners {
    /// Which eras it speaks.
    pub speaks: Speaks,
    /// Whether it has prompts, resources and completion too.
    pub full: bool,
    /// Legacy without sessions: no id is given, and none is asked for.
    pub stateless: bool,
    /// How requests are answered.
    pub answers: Answers,
    /// The `retry` hint at the start of each stream, in milliseconds.
    pub retry_ms: Option<u64>,
    /// What it says to a session it does not know.
    pub unknown_session: UnknownSession,
    /// What becomes of streams.
    pub streams: Streams,
    /// HTTP+SSE: which URL the first event names, with `{session}` in the place of the session; its own, if `None`.
    pub endpoint: Option<String>,
    /// What becomes of messages at the URLs of HTTP+SSE.
    pub sse: SseDoor,
    /// What happens to whole connections.
    pub sockets: Sockets,
    /// Whether a call that it refuses for its key, its session or its headers has been run before.
    pub runs_what_it_refuses: bool,
    /// Whether it keeps for each session what `use` selects, and writes down in which session each call was executed.
    pub contexts: bool,
    /// Which credentials it wants, if any.
    pub wants: Option<Wants>,
    /// The header that the tool `routed` asks for, without its `Mcp-Param-`. A change makes clients' lists stale.
    pub param_header: String,
    /// Versions of the modern era.
    pub modern_versions: Vec<String>,
    /// Faults by JSON-RPC method (`GET` and `DELETE` are those requests).
    pub faults: BTreeMap<String, Fault>,
}

impl Fault {
    /// A fault that happens every time.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, times: None }
    }

    /// A fault that happens only so often.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            speaks: Speaks::default(),
            full: false,
            stateless: false,
            answers: Answers::default(),
            retry_ms: None,
            unknown_session: UnknownSession::default(),
            streams: Streams::default(),
            endpoint: None,
            sse: SseDoor::default(),
            sockets: Sockets::default(),
            runs_what_it_refuses: false,
            contexts: false,
            wants: None,
            param_header: "Region".to_owned(),
            modern_versions: vec!["2026-07-28".to_owned()],
            faults: BTreeMap::new(),
        }
    }
}

impl Manners {
    /// Puts a fault on a method.
    pub fn fault_on(&mut self, method: impl Into<String>, fault: Fault) {
        self.faults.insert(method.into(), fault);
    }

    /// The fault that this request meets, if any; it is used up.
    pub(super) fn meet(&mut self, method: &str) -> Option<(String, Value)> {
        let fault = self.faults.get_mut(method)?;
        let met = (fault.tool.clone(), fault.arguments.clone());
        if let Some(times) = &mut fault.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.faults.remove(method);
            }
        }
        Some(met)
    }
}
