//! What the tender says: the gate and what belongs to it, and what happened.

use std::sync::Arc;

use linetender_core::Gate;

use crate::basics::kind::Kind;
use crate::catalogue::Change;
use crate::generation::Link;
use crate::status::Status;

/// What the tender publishes: the gate and what belongs to it.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) gate: Gate,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) status: Status,
}

/// Something that happened to a line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LineEvent {
    /// It stands somewhere else now.
    State(Status),
    /// One of its lists really changed.
    Changed(Kind, Arc<Change>),
}
