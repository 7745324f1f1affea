//! Where the runtime leaves what an event loop is to know, and the bell that tells the loop to look.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linetender::CallError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use tokio::task::AbortHandle;

use crate::error;
use crate::kept::Kept;
use crate::payload::Payload;
use crate::runtime::Runtime;

/// What is said of a number's work.
#[derive(Debug)]
pub(crate) enum Note {
    /// It is done.
    Done(Payload),
    /// It failed.
    Failed(Box<CallError>),
    /// It goes on: raw params of a progress notification.
    Progress(String),
    /// The task panicked or was aborted.
    Broken,
}

/// Notes that may wait for a loop before it misses notifications of progress, and what progress that waits may weigh: a server
/// decides how long it is. Answers are never dropped, nor do they wait.
const PROGRESS_KEPT: usize = 1024;
const PROGRESS_BYTES: usize = 1024 * 1024;

/// A bell: readable from the moment that something is there until it is silenced.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> PyResult<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self(bell.map_err(|error| PyOSError::new_err(format!("linetender: eventfd: {error}")))?))
    }

    pub(crate) fn ring(&self) {
        // It cannot be full: that is 2^64 rings.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }

    pub(crate) fn fileno(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

#[derive(Debug)]
pub(crate) struct Notes {
    bell: Bell,
    left: Mutex<Left>,
}

#[derive(Debug, Default)]
struct Left {
    notes: Vec<(u64, Note)>,
    /// Bytes of progress among them.
    progress: usize,
}

impl Notes {
    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, number: u64, note: Note) {
        self.push(self.left(), number, note);
    }

    pub(crate) fn put_progress(&self, number: u64, params: &str) {
        let mut left = self.left();
        let weight = left.progress + params.len();
        if left.notes.len() < PROGRESS_KEPT && weight <= PROGRESS_BYTES {
            left.progress = weight;
            self.push(left, number, Note::Progress(params.to_owned()));
        }
    }

    fn push(&self, mut left: MutexGuard<'_, Left>, number: u64, note: Note) {
        left.notes.push((number, note));
        let is_first = left.notes.len() == 1;
        drop(left);
        if is_first {
            self.bell.ring();
        }
    }
}

/// What one event loop is to know: of each piece of work, by the number that the loop gave it.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Debug)]
pub(crate) struct Hub(Kept<Arc<Notes>>);

#[pymethods]
impl Hub {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Kept::new(Arc::new(Notes { bell: Bell::new()?, left: Mutex::default() }))))
    }

    /// The descriptor of the bell.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.0.get()?.bell.fileno())
    }

    /// Whether this is the process that made it, and not a child that was forked from it.
    fn is_here(&self) -> bool {
        self.0.here().is_some()
    }

    /// Puts all that is there into a deque: number, what it is (0 done, 1 failed, 2 progress, 3 broken), and what belongs to it.
    /// The bell rings on: whoever is interrupted is called again.
    fn take(&self, py: Python<'_>, into: &Bound<'_, PyAny>) -> PyResult<()> {
        let Left { notes, .. } = std::mem::take(&mut *self.0.get()?.left());
        for (number, note) in notes {
            let (kind, value) = match note {
                Note::Done(payload) => (0, payload.into_python(py)?),
                Note::Failed(error) => (1, error::fields(py, &error)?.into_any()),
                Note::Progress(params) => (2, params.into_pyobject(py)?.into_any()),
                Note::Broken => (3, py.None().into_bound(py)),
            };
            into.call_method1("append", ((number, kind, value),))?;
        }
        Ok(())
    }

    /// Silences the bell if nothing is there.
    fn settle(&self) -> PyResult<()> {
        let hub = self.0.get()?;
        let left = hub.left();
        // With the lock held: whoever puts in the next note rings.
        if left.notes.is_empty() {
            hub.bell.silence();
        }
        Ok(())
    }
}

impl Hub {
    pub(crate) fn notes(&self) -> PyResult<Arc<Notes>> {
        self.0.get().map(Arc::clone)
    }

    /// Has the runtime do this, and what comes of it told under this number.
    pub(crate) fn start(
        &self,
        runtime: &Runtime,
        number: u64,
        work: impl Future<Output = Result<Payload, CallError>> + Send + 'static,
    ) -> PyResult<Pending> {
        let told = Told { notes: self.notes()?, number, note: Note::Broken };
        let task = runtime.handle().spawn(async move {
            told.tells(match work.await {
                Ok(payload) => Note::Done(payload),
                Err(error) => Note::Failed(Box::new(error)),
            });
        });
        Ok(Pending(Kept::new(task.abort_handle())))
    }
}

/// Tells what became of work, whatever that is.
struct Told {
    notes: Arc<Notes>,
    number: u64,
    note: Note,
}

impl Told {
    fn tells(mut self, note: Note) {
        self.note = note;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.notes.put(self.number, std::mem::replace(&mut self.note, Note::Broken));
    }
}

/// Work under way. Dropping it cancels it.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Debug)]
pub(crate) struct Pending(Kept<AbortHandle>);

#[pymethods]
impl Pending {
    /// Gives it up. A call that the server has is cancelled there.
    fn cancel(&self) {
        if let Some(task) = self.0.here() {
            task.abort();
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.cancel();
    }
}
