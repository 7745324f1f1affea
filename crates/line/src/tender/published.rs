//! What the tender says: the gate and what belongs to it, and what happened.

use std::sync::Arc;

use linetender_core::Gate;
use linetender_wire::stdio::LeftBehind;

use crate::basics::kind::Kind;
use crate::catalogue::Change;
use crate::generation::Connection;
use crate::status::Status;

/// What the tender publishes: the gate and what belongs to it.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) gate: Gate,
    pub(crate) connection: Connection,
    pub(crate) status: Status,
}

/// Something that happened to a line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LineEvent {
    /// Its state changed.
    State(Status),
    /// One of the server's lists changed: a tool is new, gone, or means something else.
    Changed(Kind, Arc<Change>),
    /// A process that the server left behind was ended.
    Ended {
        /// Its number.
        pid: i32,
        /// What its program was called.
        name: String,
    },
    /// A process left the server's tree on purpose, and is still there a while after the server's end.
    Left(LeftBehind),
    /// A container of the server may still run.
    ContainerLeft {
        /// The beginning of its id.
        id: String,
        /// Why it could not be ended. `None` for one that an earlier start left behind, and that is ended now.
        reason: Option<String>,
    },
    /// Whoever reads these events was too slow, and this many are lost. [`Line::status`](crate::Line::status) is the newest.
    Missed(u64),
}
