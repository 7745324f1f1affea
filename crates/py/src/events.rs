//! What happens to a line, one event at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use linetender::{Event, Kind, Status};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::seconds;
use crate::hub::{Hub, Pending};
use crate::kept::Kept;
use crate::payload::Payload;
use crate::runtime::Runtime;

/// The events of a line from the moment in which this was made.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Debug)]
pub(crate) struct Events(Kept<Inner>);

#[derive(Debug)]
struct Inner {
    stream: Arc<Stream>,
    runtime: Arc<Runtime>,
}

#[derive(Debug)]
struct Stream {
    events: tokio::sync::Mutex<linetender::Events>,
    /// Heard, and not taken yet: a loop that stops waiting in between loses nothing.
    heard: Mutex<VecDeque<Event>>,
}

impl Events {
    pub(crate) fn of(events: linetender::Events, runtime: Arc<Runtime>) -> Self {
        let stream = Stream { events: tokio::sync::Mutex::new(events), heard: Mutex::default() };
        Self(Kept::new(Inner { stream: Arc::new(stream), runtime }))
    }
}

#[pymethods]
impl Events {
    /// Waits until there is one to take; says whether there is, or the line is gone.
    fn wait(&self, hub: &Hub, number: u64) -> PyResult<Pending> {
        let inner = self.0.get()?;
        let stream = Arc::clone(&inner.stream);
        hub.start(&inner.runtime, number, async move {
            let mut events = stream.events.lock().await;
            if !stream.heard().is_empty() {
                return Ok(Payload::Bool(true));
            }
            let event = events.next().await;
            let is_one = event.is_some();
            stream.heard().extend(event);
            Ok(Payload::Bool(is_one))
        })
    }

    /// Takes one that was waited for.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let event = self.0.get()?.stream.heard().pop_front();
        event.map(|event| fields(py, &event)).transpose()
    }
}

impl Stream {
    fn heard(&self) -> std::sync::MutexGuard<'_, VecDeque<Event>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fields<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    match event {
        Event::State(status) => {
            fields.set_item("event", "state")?;
            fields.set_item("status", status_fields(py, status)?)?;
        }
        Event::Changed(kind, change) => {
            fields.set_item("event", "changed")?;
            fields.set_item("list", list_name(*kind))?;
            fields.set_item("added", &change.added)?;
            fields.set_item("removed", &change.removed)?;
            fields.set_item("changed", &change.changed)?;
        }
        Event::Missed(count) => {
            fields.set_item("event", "missed")?;
            fields.set_item("count", count)?;
        }
        _ => fields.set_item("event", "other")?,
    }
    Ok(fields)
}

const fn list_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "tools",
        Kind::Prompts => "prompts",
        Kind::Resources => "resources",
        Kind::Templates => "resource_templates",
    }
}

pub(crate) fn status_fields<'py>(py: Python<'py>, status: &Status) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let next = status.next_try();
    fields.set_item("state", status.state.name())?;
    fields.set_item("generation", status.generation)?;
    fields.set_item("cause", status.cause.as_ref().map(|why| why.text.as_str()))?;
    fields.set_item("stderr", status.cause.as_ref().and_then(|why| why.stderr.as_deref()))?;
    fields.set_item("planned", status.cause.as_ref().is_some_and(|why| why.planned))?;
    fields.set_item("next_try", next.map(|next| next.to_string()))?;
    fields.set_item("next_try_in", next.and_then(seconds))?;
    Ok(fields)
}
