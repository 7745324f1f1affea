//! What became of a call that got no answer: four verdicts, and what each of them rests on.
//!
//! linetender says *not executed* only of what it counted itself. What a server or a proxy says about a call that it
//! did not answer is *refused*: it may be true, and linetender cannot check it. Everything else is *unknown*.
//! "MUST re-issue" in the modern specification says how a lost request is sent again (with a new id), not whether that
//! is safe; the table in `resend.rs` decides that.

use crate::retry::RetryReason;

/// Whether a call was executed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Delivery {
    /// linetender counted that the server cannot have executed it.
    NotExecuted(Evidence),
    /// The server, or a proxy before it, said that it did not execute it. linetender cannot check that.
    Refused(ServerRefusal),
    /// It may have been executed.
    Unknown(Doubt),
    /// The server sent a response, possibly an error.
    Answered,
}

/// What linetender counted itself. It holds whatever the server does or says.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// The call was still queued: no byte of it was given to the transport.
    Queued,
    /// stdio: no reader is left, and the dead server had read no byte of the call.
    Residue,
    /// HTTP: connecting failed, or no byte of the request was written.
    NoByteWritten,
}

/// What a server, or a proxy before it, answered instead of executing a call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ServerRefusal {
    /// 401 with a challenge, or 403 with the challenge `insufficient_scope`.
    Auth,
    /// 404 or an id-less 400 on a legacy session: prompt, and a ping on the same session was refused the same way.
    SessionLost,
    /// 400 with -32020: our headers did not match the body.
    HeaderMismatch,
    /// 400 with -32021: we lack a capability that the call needs.
    MissingCapability,
    /// 400 with -32022: the server does not speak this version.
    UnsupportedVersion,
    /// HTTP/2: GOAWAY with `NO_ERROR` below our stream.
    Goaway,
    /// HTTP/2: `RST_STREAM` with `REFUSED_STREAM`.
    RefusedStream,
    /// 429.
    RateLimited,
    /// 405.
    MethodNotAllowed,
    /// 413.
    TooLarge,
}

/// Why it is unknown whether a call was executed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// Its time was up while the server had it, or while it was being written.
    Deadline,
    /// Its caller went away while the server had it, or while it was being written.
    Cancelled,
    /// Its connection ended, or its own exchange broke, and nothing shows that it was not read.
    Lost,
}

/// What the transport knows about a call that was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LossReport {
    /// Nothing beyond how far the call had got.
    Nothing,
    /// stdio, after the seal, with no reader left: how many bytes of all that was written were consumed.
    Consumed {
        /// Bytes accepted by write, less what still lies in the pipe.
        bytes: u64,
    },
    /// HTTP: connecting failed, or no byte of the request was written, on any hop.
    NoByteWritten,
    /// The server's own word.
    Refused(ServerRefusal),
}

/// What has to be mended before a refused call is sent again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Repair {
    /// Get a new token.
    Token,
    /// Read the tool list again: the headers come from it.
    Relist,
    /// Speak another version.
    Version,
    /// Wait as long as the server asked, if the deadline allows.
    Wait,
}

impl Evidence {
    /// Every kind of evidence.
    pub const ALL: [Self; 3] = [Self::Queued, Self::Residue, Self::NoByteWritten];

    /// Its word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "not-sent",
            Self::Residue => "unread-by-dead-server",
            Self::NoByteWritten => "no-byte-written",
        }
    }
}

impl Doubt {
    /// Every doubt.
    pub const ALL: [Self; 3] = [Self::Deadline, Self::Cancelled, Self::Lost];

    /// Its word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Lost => "connection-lost",
        }
    }
}

impl ServerRefusal {
    /// Every refusal.
    pub const ALL: [Self; 10] = [
        Self::Auth,
        Self::SessionLost,
        Self::HeaderMismatch,
        Self::MissingCapability,
        Self::UnsupportedVersion,
        Self::Goaway,
        Self::RefusedStream,
        Self::RateLimited,
        Self::MethodNotAllowed,
        Self::TooLarge,
    ];

    /// The member of `retry_on` that permits a re-send. `None` if the answer would be the same.
    pub const fn retry_reason(self) -> Option<RetryReason> {
        match self {
            Self::Auth => Some(RetryReason::Auth),
            Self::SessionLost => Some(RetryReason::SessionLost),
            Self::HeaderMismatch | Self::UnsupportedVersion => Some(RetryReason::Protocol),
            Self::Goaway => Some(RetryReason::Goaway),
            Self::RefusedStream => Some(RetryReason::RefusedStream),
            Self::RateLimited => Some(RetryReason::RateLimited),
            Self::MissingCapability | Self::MethodNotAllowed | Self::TooLarge => None,
        }
    }

    /// What has to be mended before a re-send.
    pub const fn repair(self) -> Option<Repair> {
        match self {
            Self::Auth => Some(Repair::Token),
            Self::HeaderMismatch => Some(Repair::Relist),
            Self::UnsupportedVersion => Some(Repair::Version),
            Self::RateLimited => Some(Repair::Wait),
            Self::SessionLost
            | Self::MissingCapability
            | Self::Goaway
            | Self::RefusedStream
            | Self::MethodNotAllowed
            | Self::TooLarge => None,
        }
    }

    /// Its word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::SessionLost => "session-lost",
            Self::HeaderMismatch => "header-mismatch",
            Self::MissingCapability => "missing-capability",
            Self::UnsupportedVersion => "unsupported-version",
            Self::Goaway => "goaway",
            Self::RefusedStream => "refused-stream",
            Self::RateLimited => "rate-limited",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::TooLarge => "too-large",
        }
    }
}

impl Delivery {
    /// The words for this verdict. Everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotExecuted(_) => "not executed",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
            Self::Answered => "answered",
        }
    }

    /// What the verdict rests on, in a word for programs.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::NotExecuted(evidence) => Some(evidence.name()),
            Self::Refused(refusal) => Some(refusal.name()),
            Self::Unknown(doubt) => Some(doubt.name()),
            Self::Answered => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Delivery, Doubt, Evidence, ServerRefusal};

    #[test]
    fn the_four_verdicts_have_their_words() {
        let verdicts = [
            Delivery::NotExecuted(Evidence::Queued),
            Delivery::Refused(ServerRefusal::RateLimited),
            Delivery::Unknown(Doubt::Lost),
            Delivery::Answered,
        ];
        assert_eq!(verdicts.map(Delivery::name), ["not executed", "refused", "unknown", "answered"]);
    }
}
