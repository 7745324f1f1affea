//! What became of a call that got no answer, and what may happen next: the proofs and the re-send table.
//!
//! "MUST re-issue" in the modern spec says *how* a lost request is sent again (with a new id), not *whether*
//! that is safe. So there are three verdicts, not two: a call is answered, proven not executed, or unknown;
//! and only the table below says which of them may be sent again.

/// Whether a failed call was executed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Delivery {
    /// Proven: the server did not execute it.
    NotExecuted(Proof),
    /// It may have been executed.
    Unknown(Doubt),
    /// The server sent a response, possibly an error.
    Answered,
}

/// Why we know that a call was not executed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Proof {
    /// It was still queued: no byte of it was given to the transport.
    Queued,
    /// stdio: no reader is left, and the dead server had not consumed all of its JSON text.
    Residue,
    /// HTTP: connecting failed, or no byte of the request was written. Counted, not guessed.
    NoByteWritten,
    /// HTTP/2: `REFUSED_STREAM`, or `GOAWAY` below our stream.
    RefusedStream,
    /// 404 or an id-less 400 on a legacy session: prompt, and a ping on the same session was refused the same way.
    SessionRefused,
    /// 401 with a challenge.
    Challenged,
    /// 400 with -32020: our headers did not match the body.
    HeaderMismatch,
    /// 400 with -32021: we lack a capability it needs.
    MissingCapability,
    /// 400 with -32022: it does not speak this version.
    VersionRefused,
    /// 405.
    MethodNotAllowed,
    /// 413.
    TooLarge,
    /// 429.
    Throttled,
}

/// Why we do not know whether a call was executed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// Its time was up while the server had it, or while it was being written.
    Deadline,
    /// Its caller went away while the server had it, or while it was being written.
    Cancelled,
    /// Its connection ended, or its own exchange broke, and nothing proves that it was not read.
    Lost,
}

/// What the wire knows about a call that was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Evidence {
    /// Nothing beyond how far the call had got.
    Nothing,
    /// stdio, after the seal, with no reader left: how many bytes of all that was written were consumed.
    Consumed {
        /// Bytes accepted by write, less what still lies in the pipe.
        bytes: u64,
    },
    /// A proof that needs no counting. It is believed only where it can be true.
    Shown(Proof),
}

/// What a proof of non-execution allows. Always with a new JSON-RPC id, always inside the deadline.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Resend {
    /// Not a re-send at all: it binds to the next generation.
    Bind,
    /// Again: at once, then after growing waits, for as long as every try is proven not to have been executed.
    Again,
    /// Once, after this repair.
    OnceAfter(Repair),
    /// Never: the answer would be the same.
    Never,
}

/// What has to be mended before a call is sent again.
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

impl Proof {
    /// Every proof.
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::Residue,
        Self::NoByteWritten,
        Self::RefusedStream,
        Self::SessionRefused,
        Self::Challenged,
        Self::HeaderMismatch,
        Self::MissingCapability,
        Self::VersionRefused,
        Self::MethodNotAllowed,
        Self::TooLarge,
        Self::Throttled,
    ];

    /// The re-send table.
    pub const fn resend(self) -> Resend {
        match self {
            Self::Queued => Resend::Bind,
            Self::Residue | Self::NoByteWritten | Self::RefusedStream | Self::SessionRefused => Resend::Again,
            Self::Challenged => Resend::OnceAfter(Repair::Token),
            Self::HeaderMismatch => Resend::OnceAfter(Repair::Relist),
            Self::VersionRefused => Resend::OnceAfter(Repair::Version),
            Self::Throttled => Resend::OnceAfter(Repair::Wait),
            Self::MissingCapability | Self::MethodNotAllowed | Self::TooLarge => Resend::Never,
        }
    }
}

impl Delivery {
    /// The words for this verdict. Everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotExecuted(_) => "not executed",
            Self::Unknown(_) => "unknown",
            Self::Answered => "answered",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Delivery, Doubt, Proof};

    #[test]
    fn the_three_verdicts_have_their_words() {
        let verdicts =
            [Delivery::NotExecuted(Proof::Queued), Delivery::Unknown(Doubt::Lost), Delivery::Answered];
        assert_eq!(verdicts.map(Delivery::name), ["not executed", "unknown", "answered"]);
    }
}
