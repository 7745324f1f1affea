//! An agent's session: messages of the official SDK in, messages out, for as long as the agent lives.
//!
//! The session has a bell of its own, because it is not bound to asyncio: whatever can watch a descriptor can hold one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use linetender::session::{self, Agent, Passed, Receiver};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};

use crate::hub::Bell;
use crate::kept::Kept;
use crate::line::Line;
use crate::rig::Rig;
use crate::runtime::Runtime;
use crate::server::Server;

/// Messages that wait for Python, and what they may weigh but for the last. More wait in the session, which is limited too.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 1024 * 1024;

/// How long a session that is closed waits for its server to be gone. The close ladder of a default policy ends well before.
const GONE: Duration = Duration::from_secs(15);

/// The two ends of a session that its server's deaths do not end.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Debug)]
pub(crate) struct Session(Kept<Inner>);

#[derive(Debug)]
struct Inner {
    to: mpsc::Sender<Passed>,
    desk: Arc<Desk>,
    runtime: Arc<Runtime>,
}

/// What Python and the runtime leave for each other.
#[derive(Debug)]
struct Desk {
    bell: Bell,
    left: Mutex<Left>,
    /// Python took something, or wants to end.
    taken: Notify,
}

#[derive(Debug, Default)]
struct Left {
    messages: VecDeque<Bytes>,
    bytes: usize,
    room: Room,
    /// Whether Python wants no more.
    closing: bool,
    /// Whether nothing of the session is left.
    closed: bool,
}

/// Whether there is room for messages of Python.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Room {
    /// As far as anybody knows.
    #[default]
    Some,
    /// One was not taken, and somebody waits for room.
    Awaited,
    /// There is some again, and Python has not been told.
    Again,
}

impl Desk {
    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.left().closing = true;
        self.taken.notify_one();
    }
}

#[pymethods]
impl Session {
    /// A session with a server of its own, which starts with the handshake and ends with the session.
    #[staticmethod]
    fn open(server: &Server, rig: Option<&Rig>) -> PyResult<Self> {
        let (rig, runtime) = match rig {
            Some(rig) => {
                let (rig, runtime) = rig.parts()?;
                (rig.clone(), Arc::clone(runtime))
            }
            None => (linetender::Rig::new(), Runtime::get()?),
        };
        let agent = {
            let _entered = runtime.handle().enter();
            session::open(server.0.clone(), &rig)
        };
        Self::of(agent, runtime)
    }

    /// One of several sessions on a line, which lives on when this ends.
    #[staticmethod]
    fn join(line: &Line) -> PyResult<Self> {
        let (line, runtime) = line.parts()?;
        let agent = {
            let _entered = runtime.handle().enter();
            session::join(line)
        };
        Self::of(agent, Arc::clone(runtime))
    }

    /// The descriptor that is readable when there is something to [`take`](Self::take).
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.0.get()?.desk.bell.fileno())
    }

    /// Hands a message over. `False`: there is no room; `take` says when there is.
    fn send(&self, message: &[u8]) -> PyResult<bool> {
        let inner = self.0.get()?;
        match inner.to.try_send(Bytes::copy_from_slice(message).into()) {
            // A session that is over takes nothing, and its end is told by `take`.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(true),
            Err(TrySendError::Full(_)) => {
                // Once for all: a server decides how often it is answered here.
                if std::mem::replace(&mut inner.desk.left().room, Room::Awaited) == Room::Awaited {
                    return Ok(false);
                }
                let (to, desk) = (inner.to.clone(), Arc::clone(&inner.desk));
                inner.runtime.handle().spawn(async move {
                    let _ = to.reserve().await;
                    desk.left().room = Room::Again;
                    desk.bell.ring();
                });
                Ok(false)
            }
        }
    }

    /// What there is: messages, whether there is room again, and whether the session is over.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, bool, bool)> {
        let desk = &self.0.get()?.desk;
        desk.bell.silence();
        let (messages, room, closed) = {
            let mut left = desk.left();
            left.bytes = 0;
            let is_again = left.room == Room::Again;
            if is_again {
                left.room = Room::Some;
            }
            (std::mem::take(&mut left.messages), is_again, left.closed)
        };
        desk.taken.notify_one();
        let messages = messages.iter().map(|message| PyBytes::new(py, message));
        Ok((PyList::new(py, messages.collect::<Vec<_>>())?, room, closed))
    }

    /// Ends it. `take` says when nothing of it is left.
    fn close(&self) {
        if let Some(inner) = self.0.here() {
            inner.desk.close();
        }
    }
}

impl Session {
    fn of(agent: Agent, runtime: Arc<Runtime>) -> PyResult<Self> {
        let desk = Arc::new(Desk { bell: Bell::new()?, left: Mutex::default(), taken: Notify::new() });
        let Agent { to, from } = agent;
        let carried = carry(from, to.clone(), Arc::clone(&desk));
        runtime.outlives(carried);
        Ok(Self(Kept::new(Inner { to, desk, runtime })))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// Carries messages to the desk until Python wants no more or the session is over; then waits until nothing of it is left.
async fn carry(mut from: Receiver<Passed>, to: mpsc::Sender<Passed>, desk: Arc<Desk>) {
    loop {
        let (full, closing) = {
            let left = desk.left();
            (left.messages.len() >= KEPT || left.bytes >= KEPT_BYTES, left.closing)
        };
        if closing {
            break;
        }
        tokio::select! {
            message = from.recv(), if !full => match message {
                Some(message) => {
                    let text = message.into_text();
                    {
                        let mut left = desk.left();
                        left.bytes += text.len();
                        left.messages.push_back(text);
                    }
                    desk.bell.ring();
                }
                None => break,
            },
            () = desk.taken.notified() => {}
        }
    }
    // Nobody reads the last answers, so the session need not wait for them.
    drop(from);
    let _ = tokio::time::timeout(GONE, to.closed()).await;
    desk.left().closed = true;
    desk.bell.ring();
}
