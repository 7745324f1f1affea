//! What a caller is told when a call fails: server, phase, cause, delivery, next try. Never less.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use linetender_core::{Delivery, Refusal, ServerRefusal};
use linetender_wire::Redacted;
use linetender_wire::wall::rfc3339;

use super::code::Code;
use super::context_loss::ContextLoss;
use super::next_try::NextTry;
use super::rpc_error::RpcError;

/// How long to stay away from a server that has too much to do: its queue is short, and calls are.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The word for a call that is not executed because a context was replaced.
const CONTEXT_REPLACED: &str = "context-replaced";

/// How much of a server's own words stands in a cause; all of them are in the field `answered`.
const SHOWN: usize = 1000;

/// Why a call failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallError {
    /// What kind of failure it is.
    pub kind: CallErrorKind,
    /// The server's name.
    pub server: Arc<str>,
    /// How far the call had got.
    pub phase: Phase,
    /// What happened, in words.
    pub cause: String,
    /// Whether it was executed.
    pub delivery: Delivery,
    /// When linetender tries the server next.
    pub next_try: NextTry,
    /// The last lines of the server's stderr, if they explain something.
    pub stderr: Option<String>,
    /// The server's own words, if it answered with a JSON-RPC error.
    pub answered: Option<Box<RpcError>>,
    /// The context that was replaced, if the call was not executed for that, or was lost with it.
    pub context: Option<Box<ContextLoss>>,
    /// How often linetender sent the call. 0 if it did not.
    pub attempts: u32,
}

/// How far a call had got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// It was not sent yet: it waited for the server, or in a queue.
    BeforeSending,
    /// It was sent, or may have been.
    AtServer,
    /// linetender itself failed while it handled the call.
    InLinetender,
    /// The server answered.
    Answered,
}

impl Phase {
    /// Its words in errors and their data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeSending => "before sending",
            Self::AtServer => "at the server",
            Self::InLinetender => "in linetender",
            Self::Answered => "answered",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The line takes no calls now.
    Refused(Refusal),
    /// A process or session that the agent had used was replaced, and the agent has to know that first.
    ContextReplaced,
    /// Too many calls wait already.
    Overloaded,
    /// The line did not come up in time.
    HeldTooLong,
    /// The call's own time was up.
    TimedOut,
    /// The connection ended under it.
    Lost,
    /// The server, or a proxy before it, said that it did not execute it.
    ServerRefused,
    /// The server answered with something that cannot be passed on.
    BadAnswer,
    /// The server refuses what it offered when the agent's session began.
    Vanished,
    /// What was asked is no JSON, or too large: nothing was sent.
    Unreadable,
    /// The gateway must write every call down before it is answered, and could not.
    NotRecorded,
    /// The server answered with a JSON-RPC error: the field `answered` of [`CallError`] has its words.
    ErrorAnswer,
}

impl CallError {
    /// The server answered with a JSON-RPC error, with which it may have refused the call.
    pub(crate) fn answered(
        server: Arc<str>,
        error: RpcError,
        refusal: Option<ServerRefusal>,
        attempts: u32,
    ) -> Self {
        Self {
            kind: CallErrorKind::ErrorAnswer,
            server,
            phase: Phase::Answered,
            cause: Redacted::head(&format!("the server answered with an error: {error}"), SHOWN).to_string(),
            delivery: refusal.map_or(Delivery::Answered, Delivery::Refused),
            next_try: NextTry::Now,
            stderr: None,
            answered: Some(Box::new(error)),
            context: None,
            attempts,
        }
    }

    pub(crate) fn with_loss(self, loss: Option<ContextLoss>) -> Self {
        Self { context: loss.map(Box::new), ..self }
    }

    /// True if linetender counted that the call was not executed.
    pub const fn not_executed(&self) -> bool {
        matches!(self.delivery, Delivery::NotExecuted(_))
    }

    /// Text that a model can act on.
    pub fn for_model(&self) -> String {
        let server = &self.server;
        let in_vain = matches!(
            self.kind,
            CallErrorKind::Refused(Refusal::NeedsAuth | Refusal::LoginRefused | Refusal::OutOfService)
        );
        let ran = match self.delivery {
            Delivery::NotExecuted(_) if in_vain => "The call was not executed.",
            Delivery::NotExecuted(_) => "The call was not executed; it can be sent again.",
            Delivery::Refused(_) => {
                "The server says that it did not execute the call; linetender cannot check that: check for side effects \
                 before retrying it."
            }
            Delivery::Unknown(_) => {
                "It is unknown whether the call was executed: check for side effects before retrying it."
            }
            Delivery::Answered if self.kind == CallErrorKind::Vanished => "The server refused the call.",
            Delivery::Answered if self.kind == CallErrorKind::ErrorAnswer => {
                "It may have executed a part of the call."
            }
            Delivery::Answered => "The server processed the call; a retry would execute it again.",
        };
        let then = match self.kind {
            CallErrorKind::ContextReplaced if let Some(loss) = &self.context => {
                loss.for_model("; then call again")
            }
            // It may have been executed: whether to call again is another question.
            _ if let Some(loss) = &self.context => loss.for_model(""),
            CallErrorKind::Refused(Refusal::Closed) => {
                "The connection was closed on request and will not be reopened.".to_owned()
            }
            CallErrorKind::Refused(Refusal::NeedsAuth) => {
                "Retrying does not help until somebody has logged in or set the credentials; linetender then reconnects \
                 automatically."
                    .to_owned()
            }
            CallErrorKind::Refused(Refusal::LoginRefused) => {
                format!(
                    "Retrying does not help until its credentials are corrected; then `linetender redial {server}`, or a changed \
                     configuration, starts it at once. Otherwise linetender's next try: {}.",
                    self.next_try
                )
            }
            CallErrorKind::Refused(Refusal::OutOfService) => {
                format!("Retrying does not help until an operator brings it back (`linetender wake {server}`).")
            }
            CallErrorKind::Vanished => "Reconnect to see what the server offers now.".to_owned(),
            CallErrorKind::TimedOut => "linetender is checking whether the server is still alive.".to_owned(),
            CallErrorKind::BadAnswer | CallErrorKind::ErrorAnswer => {
                "The server is still running.".to_owned()
            }
            CallErrorKind::ServerRefused => self.advice_after_refusal(),
            CallErrorKind::NotRecorded => "The operator has to make the audit file writable.".to_owned(),
            CallErrorKind::Unreadable => "Fix the request before sending it again.".to_owned(),
            CallErrorKind::Overloaded => {
                format!("The server is still running; retry in {} s.", RETRY_AFTER.as_secs())
            }
            _ if self.next_try == NextTry::Never => "linetender does not connect to it again.".to_owned(),
            _ if self.next_try == NextTry::Now => "linetender is connected to the server.".to_owned(),
            _ => format!("linetender reconnects automatically; next try: {}.", self.next_try),
        };
        let sent = match self.attempts {
            0 | 1 => String::new(),
            times => format!("linetender sent the call {times} times. "),
        };
        let ran = match (self.kind, self.delivery) {
            (CallErrorKind::ContextReplaced, Delivery::NotExecuted(_)) => "The call was not executed.",
            (CallErrorKind::ContextReplaced, Delivery::Refused(_)) => {
                "The server says that it did not execute the call; linetender cannot check that."
            }
            _ => ran,
        };
        let mut text = format!(
            "The call to the MCP server \"{server}\" failed: {}. {sent}{ran} {then}",
            self.cause.trim_end_matches('.')
        );
        if let Some(stderr) = &self.stderr {
            text.push_str("\nLast lines of the server's stderr:\n");
            text.push_str(stderr);
        }
        text
    }

    /// What the server asks for, or what linetender does about a refusal.
    fn advice_after_refusal(&self) -> String {
        let Delivery::Refused(refusal) = self.delivery else {
            return format!("linetender reconnects automatically; next try: {}.", self.next_try);
        };
        match refusal {
            ServerRefusal::RateLimited => "Wait before calling it again.".to_owned(),
            ServerRefusal::Auth if self.next_try == NextTry::Now => {
                "The server asks for other credentials.".to_owned()
            }
            ServerRefusal::Auth => {
                format!("The server asks for other credentials; linetender's next try: {}.", self.next_try)
            }
            ServerRefusal::SessionLost => {
                "The server lost the session; linetender begins a new one.".to_owned()
            }
            ServerRefusal::Goaway => {
                "The server closed the connection; linetender opens a new one.".to_owned()
            }
            ServerRefusal::RefusedStream => {
                "Some servers and proxies refuse a call like this after it was executed.".to_owned()
            }
            _ => "The same call would probably be refused again.".to_owned(),
        }
    }

    /// The five fields, for machines.
    pub fn fields(&self) -> serde_json::Value {
        let mut fields = serde_json::json!({
            "source": "linetender",
            "server": &*self.server,
            "phase": self.phase.name(),
            "cause": self.cause,
            "delivery": self.delivery.name(),
            "nextTry": self.next_try.to_string(),
        });
        if let Some(reason) = self.reason() {
            fields["reason"] = reason.into();
        }
        if let Some(loss) = &self.context {
            fields["replacedAt"] = rfc3339(loss.at).into();
        }
        if self.attempts > 1 {
            fields["attempts"] = self.attempts.into();
        }
        if let Some(wait) = self.retry_after() {
            fields["retryAfter"] = wait.as_secs().max(1).into();
        }
        fields
    }

    /// Why the call was not executed, or why that is not known.
    pub const fn reason(&self) -> Option<&'static str> {
        match self.kind {
            CallErrorKind::ContextReplaced => Some(CONTEXT_REPLACED),
            _ => self.delivery.reason(),
        }
    }

    /// After how long a retry is worth while, if that is a matter of load alone.
    pub const fn retry_after(&self) -> Option<Duration> {
        match (self.kind, self.next_try) {
            (CallErrorKind::Overloaded, _) => Some(RETRY_AFTER),
            (CallErrorKind::ServerRefused, NextTry::In(wait))
                if matches!(self.delivery, Delivery::Refused(ServerRefusal::RateLimited)) =>
            {
                Some(wait)
            }
            _ => None,
        }
    }

    /// Its code for JSON-RPC.
    pub const fn code(&self) -> Code {
        match self.kind {
            CallErrorKind::Refused(_) | CallErrorKind::ContextReplaced => Code::Refused,
            CallErrorKind::Overloaded => Code::Overloaded,
            CallErrorKind::HeldTooLong => Code::HeldTooLong,
            CallErrorKind::TimedOut => Code::TimedOut,
            CallErrorKind::Lost => Code::Lost,
            CallErrorKind::ServerRefused => Code::ServerRefused,
            CallErrorKind::BadAnswer => Code::BadAnswer,
            CallErrorKind::Vanished => Code::Vanished,
            CallErrorKind::Unreadable => Code::Unreadable,
            CallErrorKind::NotRecorded => Code::NotRecorded,
            CallErrorKind::ErrorAnswer => Code::ErrorAnswer,
        }
    }
}

impl std::error::Error for CallError {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, cause, phase, delivery, next_try, .. } = self;
        match phase {
            // The server is well, and has said all there is to say.
            Phase::Answered => write!(f, "{server}: {cause}"),
            _ => write!(f, "{server}: {cause} ({phase}; {}; next try: {next_try})", delivery.name()),
        }
    }
}

impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(refusal) => refusal.name(),
            Self::ContextReplaced => CONTEXT_REPLACED,
            Self::Overloaded => "overloaded",
            Self::HeldTooLong => "held-too-long",
            Self::TimedOut => "timed-out",
            Self::Lost => "lost",
            Self::ServerRefused => "server-refused",
            Self::BadAnswer => "bad-answer",
            Self::Vanished => "vanished",
            Self::Unreadable => "unreadable",
            Self::NotRecorded => "not-recorded",
            Self::ErrorAnswer => "error-answer",
        })
    }
}
