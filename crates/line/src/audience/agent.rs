//! One agent on a line: where it hears what the server says by itself.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linetender_core::Generation;
use linetender_wire::frame::{Frame, Passed};
use linetender_wire::handshake::{Era, SUBSCRIPTION_IN_META};
use linetender_wire::queue::{self, NotTaken};
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{TASK_CHANGED, UPDATED};
use crate::basics::params::without_modern_meta;

/// Whatever lasts for as long as a question is open.
pub(crate) type WhileOpen = Arc<dyn Any + Send + Sync>;

/// Something that the server wants of the agent.
#[derive(Clone, Debug)]
pub(crate) struct FromServer {
    pub(crate) generation: Generation,
    pub(crate) frame: Frame,
    /// Held for as long as it is open, if it is a question.
    pub(crate) question: Option<WhileOpen>,
}

/// An agent on a line.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) era: Era,
    /// Where the server's questions go, and what it says about them; and what has to be told in other words.
    pub(crate) said: mpsc::Sender<FromServer>,
    /// Where its notifications go: straight to the agent, so that none comes after the answer it was written before.
    pub(crate) direct: queue::Sender<Passed>,
    /// Whether it hears yet. Until then all goes the way of questions, whose other end waits.
    pub(crate) hears: Hears,
}

/// Whether an agent has completed its handshake.
// MCP 2025-11-25, "Initialization": before `initialized` a server sends nothing but pings and log messages.
#[derive(Clone, Debug)]
pub(crate) struct Hears(Arc<Mutex<bool>>);

impl From<bool> for Hears {
    fn from(hears: bool) -> Self {
        Self(Arc::new(Mutex::new(hears)))
    }
}

impl Hears {
    /// Locked while a message is put on its way: none overtakes those that waited.
    pub(crate) fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Tells it in the words of its era. `false` if there was no room: it misses this. One that is gone misses nothing.
    pub(super) fn is_told(
        &self,
        generation: Generation,
        frame: &Frame,
        method: &str,
        params: Option<&str>,
    ) -> bool {
        // A modern agent hears these on streams, which only its session knows.
        let on_streams = self.era == Era::Modern && params.is_some();
        let hears = self.hears.lock();
        if !*hears || (on_streams && (method == UPDATED || method == TASK_CHANGED)) {
            let said = FromServer { generation, frame: frame.clone(), question: None };
            return !matches!(self.said.try_send(said), Err(TrySendError::Full(_)));
        }
        self.direct.try_send(in_words_of(self.era, frame, params)) != Err(NotTaken::Full)
    }
}

/// A notification as an agent of this era is to read it.
pub(crate) fn in_words_of(era: Era, frame: &Frame, params: Option<&str>) -> Passed {
    match (era, params) {
        // What the server tagged with a listening request of ours means nothing to the agent.
        (Era::Legacy, Some(params)) if params.contains(SUBSCRIPTION_IN_META) => {
            frame.with_params(&without_modern_meta(params)).one_line().into()
        }
        _ => frame.clone().one_line().into(),
    }
}
