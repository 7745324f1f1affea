//! What the driver is told to do.

use crate::gate::Gate;
use crate::generation::Generation;
use crate::order::Settle;

/// Something for the driver to do, now, before it asks for the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Publish the gate and the state: one log line, one metric, one journal entry.
    Notice(Gate),
    /// Begin to dial. The wait for the rig's dial limit is neither start time nor failure.
    Dial {
        /// The new generation.
        generation: Generation,
    },
    /// Ask the server for any sign of life; report `ProbeAnswered` or `ProbeFailed`.
    Probe {
        /// Whom.
        generation: Generation,
    },
    /// Let nobody register any more, and stop the writer.
    Seal {
        /// Whose ledger.
        generation: Generation,
    },
    /// Read what is already readable, then report `Drained`.
    Drain {
        /// From whom.
        generation: Generation,
    },
    /// Give calls their verdict.
    Settle {
        /// Of which ledger.
        generation: Generation,
        /// Which calls.
        settle: Settle,
    },
    /// SIGKILL the whole tree; report `NoReader` and `Gone`.
    Kill {
        /// Whose tree.
        generation: Generation,
    },
    /// Close stdin, then TERM, then KILL, by the policy; report `NoReader` and `Gone`.
    Close {
        /// Whose tree.
        generation: Generation,
    },
    /// Begin nothing more with it; what has an exchange of its own may still be answered. Report `Gone`.
    LetGo {
        /// What.
        generation: Generation,
    },
    /// Drop everything of that generation: session, subscriptions, caches. Only durable data crosses.
    Forget {
        /// Which.
        generation: Generation,
    },
}

impl Effect {
    /// The generation this effect is about; a notice is about the line.
    pub const fn generation(self) -> Option<Generation> {
        match self {
            Self::Notice(_) => None,
            Self::Dial { generation }
            | Self::Probe { generation }
            | Self::Seal { generation }
            | Self::Drain { generation }
            | Self::Settle { generation, .. }
            | Self::Kill { generation }
            | Self::Close { generation }
            | Self::LetGo { generation }
            | Self::Forget { generation } => Some(generation),
        }
    }
}
