//! A request that ends at the gateway, and what is told of it: where, why, whether it ran, and what now.

use bytes::Bytes;
use linetender::{Code, Delivery, Doubt, Evidence, Phase};
use linetender_wire::frame;
use serde_json::{Map, Value, json};

/// After how many seconds whoever was refused for load may come back.
const RETRY_AFTER: u64 = 1;

/// What there is too much of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Full {
    /// Requests under way.
    Requests,
    /// Lines, and this agent would need one of its own.
    Lines,
    /// Sessions.
    Sessions,
    /// What a session was given, and has not taken yet.
    Session,
    /// Calls with a key, under way or remembered.
    Durable,
}

impl Full {
    /// In how many seconds there may be room again. Sessions and lines are agents' own: nobody knows when one of them ends.
    pub(crate) fn retry_after(self) -> Option<u64> {
        match self {
            Self::Requests | Self::Session => Some(RETRY_AFTER),
            Self::Lines | Self::Sessions | Self::Durable => None,
        }
    }
}

/// It.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    code: i32,
    phase: Phase,
    cause: Box<str>,
    delivery: Delivery,
    next_try: &'static str,
    /// Whose it was, if that is known.
    server: Option<Box<str>>,
    /// What else a program may want to know.
    more: Map<String, Value>,
}

impl Failed {
    fn before(code: i32, cause: impl Into<Box<str>>, next_try: &'static str) -> Self {
        Self {
            code,
            phase: Phase::BeforeSending,
            cause: cause.into(),
            // The gateway handed it to no line.
            delivery: Delivery::NotExecuted(Evidence::Queued),
            next_try,
            server: None,
            more: Map::new(),
        }
    }

    /// There is too much of something, and nothing was handed on.
    pub(crate) fn full(full: Full) -> Self {
        let much = match full {
            Full::Requests => "too many requests are in progress",
            Full::Lines => {
                "server connection limit reached (gateway.lines), and this agent needs a connection of its own"
            }
            Full::Sessions => "all sessions (gateway.sessions) have requests or streams in progress",
            Full::Session => "the queue of this session is full",
            Full::Durable => "too many calls with a key are in progress or remembered",
        };
        let failed = |cause| Self::before(Code::Overloaded.number(), cause, "now");
        match full.retry_after() {
            Some(seconds) => failed(format!("{much}; retry in {seconds} s")).with("retryAfter", seconds),
            None => failed(much.to_owned()),
        }
    }

    /// It cannot be said, or nobody has, what it is about.
    pub(crate) fn unroutable(code: i32, cause: String, servers: &[&str]) -> Self {
        Self::before(code, cause, "never").with("servers", servers)
    }

    /// It is not what can be taken here.
    pub(crate) fn refused(code: i32, cause: &str, next_try: &'static str) -> Self {
        Self::before(code, cause, next_try)
    }

    /// Its server was taken away before it was handed on.
    pub(crate) fn nowhere() -> Self {
        Self::before(Code::NotHere.number(), "the server was removed from the config", "never")
    }

    /// What it would have been handed to is over. The next one finds another.
    pub(crate) fn not_handed() -> Self {
        Self::before(Code::Lost.number(), "the session ended", "now")
    }

    /// What it was handed to ended under it.
    pub(crate) fn cut() -> Self {
        Self::under_way("the session ended while the request was running", "now")
    }

    /// Its agent may not have the answer any more.
    pub(crate) fn shut_out() -> Self {
        let cause = "access ended while the request was running: its token was removed or has expired, or what it may see changed";
        Self::under_way(cause, "never")
    }

    /// The gateway that it would have been handed to cannot be reached.
    pub(crate) fn no_gateway() -> Self {
        Self::before(Code::Lost.number(), "the gateway that has this session cannot be reached", "now")
    }

    /// The gateway that it was handed to does not know for whom, since it has not heard from the directory yet.
    pub(crate) fn no_key() -> Self {
        let cause = "the gateway that has this session has just started and has no key of the fleet yet: NATS does not answer, or does not have it";
        Self::before(Code::Lost.number(), cause, "now")
    }

    /// The gateway that it was handed to was lost under it.
    pub(crate) fn gateway_lost() -> Self {
        Self::under_way("the gateway that has this session ended or cannot be reached any more", "now")
    }

    /// Its server was taken away under it.
    pub(crate) fn taken_away() -> Self {
        Self::under_way("the server was removed from the config while the request was running", "never")
    }

    /// The task that carried it panicked.
    pub(crate) fn broken() -> Self {
        let broken = Self::under_way("internal error (the task of this agent panicked)", "now");
        Self { phase: Phase::InLinetender, ..broken }
    }

    /// A call with a key was not begun, because that could not be noted.
    pub(crate) fn unnoted(why: &str) -> Self {
        let cause = format!("a call with a key is recorded before it is sent, and that failed: {why}");
        Self::before(Code::Refused.number(), cause, "now")
    }

    /// The key of a call is that of another one.
    pub(crate) fn other_arguments() -> Self {
        Self::before(-32602, "this key was used before, for a call with other arguments", "never")
    }

    /// Nobody can say what became of a call with a key.
    pub(crate) fn unread(why: &str) -> Self {
        Self::under_way(&format!("the record of this call cannot be read: {why}"), "now")
    }

    /// Whoever ran a call with a key is gone.
    pub(crate) fn node_died() -> Self {
        Self::under_way("the gateway node that ran this call died before it recorded the outcome", "never")
    }

    /// A call with a key ran, and how it ended could not be noted.
    pub(crate) fn not_stored() -> Self {
        Self::under_way("the outcome of this call could not be recorded", "never")
    }

    /// A call with a key takes long.
    pub(crate) fn runs_elsewhere() -> Self {
        let cause = "the call is still running on another gateway node; ask again with the same key";
        Self { delivery: Delivery::Unknown(Doubt::Deadline), ..Self::under_way(cause, "now") }
    }

    /// A call with a key was taken back.
    pub(crate) fn cancelled() -> Self {
        let cancelled = Self::under_way("the call was cancelled while it was running", "never");
        Self { delivery: Delivery::Unknown(Doubt::Cancelled), ..cancelled }
    }

    /// The answer to a call with a key was so large that it was not kept.
    pub(crate) fn not_kept(bytes: u64) -> Self {
        let cause =
            format!("the server answered this call before, and the answer ({bytes} bytes) was not kept");
        Self::answered(cause)
    }

    /// The server executed it, and its answer cannot be passed on.
    pub(crate) fn answered(cause: impl Into<Box<str>>) -> Self {
        let before = Self::before(Code::BadAnswer.number(), cause, "never");
        Self { phase: Phase::Answered, delivery: Delivery::Answered, ..before }
    }

    fn under_way(cause: &str, next_try: &'static str) -> Self {
        let before = Self::before(Code::Lost.number(), cause, next_try);
        Self { phase: Phase::AtServer, delivery: Delivery::Unknown(Doubt::Lost), ..before }
    }

    /// The number of its error.
    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// It says this too.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// It was for this server.
    #[must_use]
    pub(crate) fn of(self, server: Option<&str>) -> Self {
        Self { server: server.map(Box::from), ..self }
    }

    /// For a program.
    pub(crate) fn error(&self, id: &str) -> Bytes {
        let error = json!({ "code": self.code, "message": self.words(), "data": self.data() });
        frame::error_reply(id, &error.to_string())
    }

    /// A model reads it as the result of its tool; a program as an error. What a request lacks is an error to both.
    pub(crate) fn reply(&self, id: &str, method: &str, modern: bool) -> Bytes {
        if method != "tools/call" || self.code < 0 {
            return self.error(id);
        }
        let then = match self.delivery {
            Delivery::NotExecuted(_) => "The call was not executed.",
            // A refusal of a server never ends here.
            Delivery::Unknown(_) | Delivery::Refused(_) => {
                "It is unknown whether the call was executed: check for side effects before retrying it."
            }
            Delivery::Answered => "The call was executed.",
        };
        let text = format!("{}. {then}", self.words());
        let mut result = json!({
            "content": [{ "type": "text", "text": text }], "isError": true, "_meta": { "linetender": self.data() },
        });
        if modern {
            result["resultType"] = "complete".into();
        }
        frame::reply(id, &result.to_string())
    }

    /// What a tool's caller is told of it, under some id.
    pub(crate) fn outcome(&self) -> Option<frame::Frame> {
        let unlimited = frame::Limits { length: usize::MAX, depth: usize::MAX };
        frame::parse(&self.reply("0", "tools/call", false), unlimited).ok()
    }

    fn words(&self) -> String {
        match &self.server {
            Some(server) => format!("linetender: {server}: {}", self.cause),
            None => format!("linetender: {}", self.cause),
        }
    }

    fn data(&self) -> Value {
        let mut data = json!({
            "source": "linetender", "phase": self.phase.name(), "cause": self.cause,
            "delivery": self.delivery.name(), "nextTry": self.next_try,
        });
        if let Some(reason) = self.delivery.reason() {
            data["reason"] = reason.into();
        }
        if let Some(server) = &self.server {
            data["server"] = (**server).into();
        }
        for (name, value) in &self.more {
            data[name] = value.clone();
        }
        data
    }
}
