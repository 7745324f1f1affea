//! The delivery of one call: queued, writing, flushed, and then answered, lost or withdrawn.
//!
//! A record lives in its call's ledger entry. It is a plain value and each step is a pure function, so reader,
//! writer, canceller and drain can race for the entry: whoever takes it first decides, and every later step is
//! refused as [`Late`].

#[cfg(test)]
mod tests;

use crate::delivery::{Delivery, Doubt, Evidence, LossReport, ServerRefusal};
use crate::retry::RetryOn;

/// One call's delivery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    pub(crate) phase: Phase,
    pub(crate) safety: Safety,
    /// Re-sends of tries that linetender counted as not executed.
    pub(crate) not_executed: u8,
    /// The kinds of refusals after which it was sent again.
    pub(crate) refusals: RetryOn,
    /// Re-sends because the call is safe.
    pub(crate) retries: u8,
    /// The worst verdict of its earlier tries.
    pub(crate) earlier: Earlier,
}

/// The worst verdict of the earlier tries of a call, the best one first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Earlier {
    /// linetender counted each of them as not executed, or there was none.
    NotExecuted,
    /// The server refused one of them.
    Refused(ServerRefusal),
    /// One of them may have been executed.
    Unknown,
}

impl Earlier {
    pub(crate) const fn max(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Refused(_), _) => self,
            (Self::NotExecuted, other) => other,
        }
    }
}

/// How far a call got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// No byte of it was given to the transport.
    Queued,
    /// The writer has it.
    Writing(Extent),
    /// All of it was accepted by the transport.
    Flushed(Extent),
    /// The server answered.
    Answered,
    /// Its connection ended, or its own exchange failed.
    Lost(Delivery),
    /// Its deadline passed or its caller went away. Nobody waits for it any more.
    Withdrawn(Delivery),
}

/// Where a call's JSON text lies in all that was written to a pipe. The newline is not part of it: complete JSON without
/// its newline is run at end of file, by Python and by node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Extent {
    /// Bytes written before it.
    pub start: u64,
    /// Its length.
    pub len: u32,
}

/// Something that happens to a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RecordStep {
    /// The writer takes it.
    Write(Extent),
    /// The transport has accepted its last byte.
    Flush,
    /// The server's answer to it was read.
    Answer,
    /// Its deadline passed.
    Expire,
    /// Its caller went away.
    Cancel,
    /// It was lost, and this is known about it.
    Lose(LossReport),
}

/// The step came too late, or cannot come yet: the record stays as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Late;

/// Whether a call of unknown outcome may be sent again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Safety {
    /// A list, discovery, or the state of a task: MCP says what such a request does.
    Protocol,
    /// A request that reads. MCP does not promise that reading has no effects: it may empty a queue.
    Read,
    /// A tool that the user listed as safe.
    Listed,
    /// A tool on a server whose annotations the user trusts: what the *new* generation declares decides.
    Annotated,
    /// Everything else.
    Unsafe,
}

/// The methods that the re-send table tells apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Method {
    /// `server/discover`.
    Discover,
    /// Any list.
    List,
    /// `resources/read`.
    ReadResource,
    /// `prompts/get`.
    GetPrompt,
    /// `completion/complete`.
    Complete,
    /// `tasks/get`.
    GetTask,
    /// `tasks/result`.
    TaskResult,
    /// `tools/call`.
    CallTool,
    /// Whatever else there is or will be.
    Other,
}

impl Record {
    /// A call that has just been registered.
    pub const fn new(safety: Safety) -> Self {
        Self {
            phase: Phase::Queued,
            safety,
            not_executed: 0,
            refusals: RetryOn::NOTHING,
            retries: 0,
            earlier: Earlier::NotExecuted,
        }
    }

    /// The same for a further round of a call of which the server has answered one: it may have executed a part of it.
    #[must_use]
    pub const fn after_an_answered_round(self) -> Self {
        Self { earlier: Earlier::Unknown, ..self }
    }

    /// How far it got.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// What the caller is told, once there is something to tell: the worst verdict of all tries. A try that was not
    /// executed does not make up for an earlier one that may have been.
    pub const fn verdict(&self) -> Option<Delivery> {
        match (self.delivery(), self.earlier) {
            (Some(Delivery::NotExecuted(_) | Delivery::Refused(_)), Earlier::Unknown) => {
                Some(Delivery::Unknown(Doubt::Lost))
            }
            (Some(Delivery::NotExecuted(_)), Earlier::Refused(refusal)) => Some(Delivery::Refused(refusal)),
            (delivery, _) => delivery,
        }
    }

    /// The verdict on this try, once there is one.
    pub const fn delivery(&self) -> Option<Delivery> {
        match self.phase {
            Phase::Queued | Phase::Writing(_) | Phase::Flushed(_) => None,
            Phase::Answered => Some(Delivery::Answered),
            Phase::Lost(delivery) | Phase::Withdrawn(delivery) => Some(delivery),
        }
    }

    /// One step.
    ///
    /// # Errors
    /// [`Late`] if the call is over already, or has not come that far.
    #[inline]
    pub const fn step(mut self, step: RecordStep) -> Result<Self, Late> {
        self.phase = match (self.phase, step) {
            (Phase::Queued, RecordStep::Write(extent)) => Phase::Writing(extent),
            (Phase::Writing(extent), RecordStep::Flush) => Phase::Flushed(extent),
            // A quick server can answer before the writer has come back from its write.
            (Phase::Writing(_) | Phase::Flushed(_), RecordStep::Answer) => Phase::Answered,
            (phase @ (Phase::Queued | Phase::Writing(_) | Phase::Flushed(_)), RecordStep::Expire) => {
                Phase::Withdrawn(withdrawn(phase, Doubt::Deadline))
            }
            (phase @ (Phase::Queued | Phase::Writing(_) | Phase::Flushed(_)), RecordStep::Cancel) => {
                Phase::Withdrawn(withdrawn(phase, Doubt::Cancelled))
            }
            (phase @ (Phase::Queued | Phase::Writing(_) | Phase::Flushed(_)), RecordStep::Lose(report)) => {
                Phase::Lost(lost(phase, report))
            }
            _ => return Err(Late),
        };
        Ok(self)
    }
}

/// The verdict on a call that nobody waits for any more. Once the writer has it, it may finish the line.
const fn withdrawn(phase: Phase, doubt: Doubt) -> Delivery {
    match phase {
        Phase::Queued => Delivery::NotExecuted(Evidence::Queued),
        _ => Delivery::Unknown(doubt),
    }
}

/// The verdict on a call that was lost.
const fn lost(phase: Phase, report: LossReport) -> Delivery {
    match (phase, report) {
        // A late answer to a connect attempt: it had a byte to write, but none was written.
        (Phase::Queued | Phase::Writing(_), LossReport::NoByteWritten) => {
            Delivery::NotExecuted(Evidence::NoByteWritten)
        }
        (Phase::Queued, _) => Delivery::NotExecuted(Evidence::Queued),
        (Phase::Writing(extent) | Phase::Flushed(extent), LossReport::Consumed { bytes })
            // A server may run a call of which it has read only a part.
            if bytes <= extent.start =>
        {
            Delivery::NotExecuted(Evidence::Residue)
        }
        (_, LossReport::Refused(refusal)) => Delivery::Refused(refusal),
        // What was flushed had bytes written.
        (_, LossReport::Nothing | LossReport::Consumed { .. } | LossReport::NoByteWritten) => {
            Delivery::Unknown(Doubt::Lost)
        }
    }
}

impl Extent {
    /// Bytes written once the whole text was.
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.len as u64)
    }
}

impl Safety {
    /// How safe a request is, as far as can be said before it is sent.
    pub const fn of(method: Method, trusted: bool, listed: bool) -> Self {
        match method {
            Method::CallTool if listed => Self::Listed,
            Method::CallTool if trusted => Self::Annotated,
            Method::CallTool | Method::Other => Self::Unsafe,
            Method::Discover | Method::List | Method::GetTask => Self::Protocol,
            Method::ReadResource | Method::GetPrompt | Method::Complete | Method::TaskResult => Self::Read,
        }
    }
}
