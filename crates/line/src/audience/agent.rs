//! One agent on a line: where it hears what the server says by itself.

use linetender_core::Generation;
use linetender_wire::frame::{Frame, Passed};
use linetender_wire::handshake::Era;
use linetender_wire::queue;
use tokio::sync::mpsc;

/// Something that the server wants of the agent.
#[derive(Clone, Debug)]
pub(crate) struct FromServer {
    pub(crate) generation: Generation,
    pub(crate) frame: Frame,
}

/// An agent on a line.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) era: Era,
    /// Where the server's questions go, and what it says about them; and what has to be told in other words.
    pub(crate) said: mpsc::Sender<FromServer>,
    /// Where its notifications go: straight to the agent, so that none comes after the answer it was written before.
    pub(crate) direct: queue::Sender<Passed>,
}
