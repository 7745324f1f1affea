//! What the tender is asked.

use linetender_core::{Admission, Command, CommandOutcome, Generation};
use linetender_wire::Seen;
use tokio::sync::oneshot;

/// What anybody may ask of the tender.
pub(crate) enum Inbox {
    Command(Command, Option<oneshot::Sender<CommandOutcome>>),
    Knock(oneshot::Sender<Admission>),
    Overdue(Generation),
    /// The lists of this generation are not what the server goes by any more.
    Relist(Generation),
    /// Somebody looks at lists whose time is over.
    Expired,
    /// The server of this generation answers as one that was never initialized.
    SessionLost(Generation, Seen),
    /// The machine slept. Told once every call meets the probe.
    Slept(oneshot::Sender<()>),
}
