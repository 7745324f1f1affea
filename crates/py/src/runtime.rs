//! The runtime that does all work: one thread, started with the first line of a process and gone after the last.
//!
//! A thread of our own, and not the caller's: event loops come and go, and lines outlive them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use linetender::signals;
use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use rustix::process::{Pid, getpid};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long a runtime that nobody holds any more waits for the servers of its lines to be gone. The close ladder of a
/// default policy ends well before.
const GONE: Duration = Duration::from_secs(15);

/// How long work on other threads (names that are being looked up) is waited for.
const ASIDE: Duration = Duration::from_millis(100);

/// What a runtime still waits for when nobody holds it any more.
type End = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whoever holds this may use the runtime. It ends after the last.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    of: Pid,
    ends: mpsc::UnboundedSender<End>,
}

/// The present one, if anybody holds it.
static PRESENT: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());

impl Runtime {
    /// The runtime of this process.
    pub(crate) fn get() -> PyResult<Arc<Self>> {
        let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
        match present.upgrade() {
            Some(runtime) if runtime.of == getpid() => return Ok(runtime),
            // The parent's, whose thread is not here. See `kept.rs`.
            Some(runtime) => std::mem::forget(runtime),
            None => {}
        }
        let runtime = Arc::new(Self::start().map_err(|error| {
            PyRuntimeError::new_err(format!("linetender cannot start its thread: {error}"))
        })?);
        *present = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().thread_name("linetender-aside").build()?;
        let handle = runtime.handle().clone();
        let (ends, told) = mpsc::unbounded_channel();
        let run = move || {
            runtime.block_on(serve(told));
            runtime.shutdown_timeout(ASIDE);
        };
        signals::blocked(|| std::thread::Builder::new().name("linetender".into()).spawn(run))?;
        Ok(Self { handle, of: getpid(), ends })
    }

    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Lets this end before the runtime does.
    pub(crate) fn outlives(&self, end: impl Future<Output = ()> + Send + 'static) {
        let _ = self.ends.send(Box::pin(end));
    }
}

/// Runs until nobody holds the runtime and what it had to wait for has ended.
async fn serve(mut told: mpsc::UnboundedReceiver<End>) {
    let mut ends = JoinSet::new();
    loop {
        tokio::select! {
            end = told.recv() => match end {
                Some(end) => drop(ends.spawn(end)),
                None => break,
            },
            Some(_) = ends.join_next() => {}
        }
    }
    let _ = tokio::time::timeout(GONE, async { while ends.join_next().await.is_some() {} }).await;
}
