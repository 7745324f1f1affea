//! The seam: a generation is something that takes frames, yields frames, and ends with a cause.
//!
//! What stands on the other side of it, a child process or a server somewhere on the network, is nobody's business here.

mod exchange;
mod outbox;

pub use exchange::Exchange;
pub(crate) use exchange::{Carrier, Work};
pub use outbox::{Outbox, Outgoing, Refused, Seal, Ticket};

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use linetender_core::LossReport;
use tokio::sync::Notify;

use crate::frame::Frame;
use crate::http::KeyRefused;
use crate::lines::Item;
use crate::redact::Redacted;
use crate::room::Room;
use crate::seen::{Detail, Pipe, Seen};
use crate::stdio::LeftBehind;

/// Whoever wants to know what the server says. Called where the server is listened to: it must not block.
pub trait Listener: Send + Sync + 'static {
    /// Something whole came.
    fn hear(&self, item: Item);
    /// The same on the exchange of the request of this number.
    fn hear_during(&self, _id: u64, item: Item) {
        self.hear(item);
    }
    /// Something came, be it half a line.
    fn heard(&self);
    /// A request had an exchange of its own, and that brought no answer.
    fn lost(&self, id: u64, loss: Loss);
    /// A call was answered by a redirect, and sent again to where that led.
    fn redirected(&self, _id: u64) {}
    /// A message that needs no answer was refused for its key, and is sent again with the next one.
    fn repeated(&self, _method: &str) {}
    /// The server may have said something by itself that nobody could hear.
    fn gap(&self);
    /// Returns when a stream of the server's own that ended is worth opening again: at once, or when a caller uses the server again. To
    /// a server somewhere else an open stream is use.
    fn stream_wanted(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
    /// Whether it wants the server's stderr, line by line.
    fn wants_stderr(&self) -> bool {
        false
    }
    /// A line of the server's stderr came, without its break; a long one in pieces.
    fn stderr(&self, _line: &[u8]) {}
    /// Room for a long message that has not all come; `None` if nobody counts. `wanted` is told if it has to be given up.
    fn room(&self, _wanted: &Arc<Notify>) -> Option<Box<dyn Room>> {
        None
    }
}

/// A request that will not be answered, while its generation may live on.
#[derive(Clone, Debug)]
pub struct Loss {
    /// What is known about whether it was executed.
    pub report: LossReport,
    /// What was seen.
    pub seen: Detail,
    /// When it may be tried again, in the server's words.
    pub after: Option<Duration>,
    /// What the server said to it, for its id: worth passing on if nothing can be mended.
    pub said: Option<Frame>,
    /// The key that it was refused for, where keys can be renewed.
    pub refused: Option<Box<KeyRefused>>,
}

impl Loss {
    /// A loss of which no more is known than this.
    pub fn new(report: LossReport, seen: Seen) -> Self {
        Self { report, seen: Detail::new(seen), after: None, said: None, refused: None }
    }
}

/// What happened to a generation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The server's process runs. Not of a server somewhere else.
    Spawned,
    /// The process wrote to stderr for the first time.
    Wrote,
    /// Its first byte came.
    FirstByte,
    /// An exchange failed in a way that makes the server suspect.
    Trouble(Seen),
    /// It closed one of its pipes. Most often because it is ending, and then that is told too.
    Closed(Pipe),
    /// It is over, and this was seen.
    Lost(Seen),
    /// It refused a key, and lives on: another key may do.
    KeyRefused(Box<KeyRefused>),
    /// Whoever holds it for us wants us to make the next connection when our calls have ended, and why.
    Moved(Redacted),
    /// A process that it started belongs to another user and stays behind.
    Left {
        /// Its number.
        pid: i32,
    },
    /// A process that it left behind was ended.
    Ended {
        /// Its number.
        pid: i32,
        /// What its program was called.
        name: String,
    },
    /// A process left its tree on purpose, and lives on.
    Spared(LeftBehind),
    /// A container of it may still run.
    ContainerLeft {
        /// The beginning of its id.
        id: String,
        /// Why it cannot be ended. If that is not said, an earlier start left it behind, and it is ended now.
        reason: Option<Redacted>,
    },
    /// Nobody reads its input any more: what was not consumed is known. Only after it was told to go.
    NoReader,
    /// Nothing of it is left. Only after it was told to go.
    Gone,
}
