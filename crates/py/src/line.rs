//! A line, as Python holds it.

use std::sync::Arc;
use std::time::Duration;

use linetender::{CallError, Deadline, Options, Raw, State};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::events::{Events, status_fields};
use crate::hub::{Hub, Pending};
use crate::kept::Kept;
use crate::payload::Payload;
use crate::runtime::Runtime;
use crate::server::Server;

/// A supervised connection to one server. The server ends when the last handle is dropped.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Debug)]
pub(crate) struct Line(Kept<Inner>);

#[derive(Debug)]
struct Inner {
    // Before the runtime: its last handle must be gone when the runtime looks at what is left.
    line: linetender::Line,
    runtime: Arc<Runtime>,
}

impl Line {
    /// A line that was just opened: the runtime waits for its end.
    pub(crate) fn opened(line: linetender::Line, runtime: Arc<Runtime>) -> Self {
        outlived_by(&runtime, &line);
        Self::of(line, runtime)
    }

    /// One more handle of a line.
    pub(crate) fn of(line: linetender::Line, runtime: Arc<Runtime>) -> Self {
        Self(Kept::new(Inner { line, runtime }))
    }

    pub(crate) fn parts(&self) -> PyResult<(&linetender::Line, &Arc<Runtime>)> {
        let Inner { line, runtime } = self.0.get()?;
        Ok((line, runtime))
    }

    /// Has the runtime do something with the line.
    fn start<F>(&self, hub: &Hub, number: u64, work: impl FnOnce(linetender::Line) -> F) -> PyResult<Pending>
    where
        F: Future<Output = Result<Payload, CallError>> + Send + 'static,
    {
        let (line, runtime) = self.parts()?;
        hub.start(runtime, number, work(line.clone()))
    }
}

#[pymethods]
impl Line {
    /// Opens a line, and dials unless it is lazy.
    #[new]
    fn new(server: &Server, lazy: bool) -> PyResult<Self> {
        let runtime = Runtime::get()?;
        let entered = runtime.handle().enter();
        let rig = linetender::Rig::new();
        let line = if lazy { rig.lazy(server.0.clone()) } else { rig.open(server.0.clone()) };
        drop(entered);
        Ok(Self::opened(line, runtime))
    }

    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.parts()?.0.name())
    }

    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        Ok(self.parts()?.0.status().state.name())
    }

    #[getter]
    fn pid(&self) -> PyResult<Option<i32>> {
        Ok(self.parts()?.0.pid())
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        status_fields(py, &self.parts()?.0.status())
    }

    fn events(&self) -> PyResult<Events> {
        let (line, runtime) = self.parts()?;
        Ok(Events::of(line.events(), Arc::clone(runtime)))
    }

    fn ready(&self, hub: &Hub, number: u64) -> PyResult<Pending> {
        self.start(hub, number, async |line| line.ready().await.map(|()| Payload::Nothing))
    }

    fn redial(&self, hub: &Hub, number: u64) -> PyResult<Pending> {
        self.start(hub, number, async |line| line.redial().await.map(Payload::Number))
    }

    fn close(&self, hub: &Hub, number: u64) -> PyResult<Pending> {
        self.start(hub, number, async |line| {
            line.close().await;
            Ok(Payload::Nothing)
        })
    }

    /// Entries of one of the server's lists, as last read.
    fn list(&self, hub: &Hub, number: u64, kind: &str) -> PyResult<Pending> {
        let kind = kind.to_owned();
        self.start(hub, number, async move |line| {
            Ok(Payload::Entries(match &*kind {
                "tools" => line.list_tools().await?.iter().map(|entry| entry.raw().to_owned()).collect(),
                "prompts" => line.list_prompts().await?.iter().map(|entry| entry.raw().to_owned()).collect(),
                "resources" => {
                    line.list_resources().await?.iter().map(|entry| entry.raw().to_owned()).collect()
                }
                _ => {
                    line.list_resource_templates().await?.iter().map(|entry| entry.raw().to_owned()).collect()
                }
            }))
        })
    }

    /// `arguments` is JSON.
    #[expect(clippy::too_many_arguments, reason = "they are a Python function's")]
    fn call_tool(
        &self,
        hub: &Hub,
        number: u64,
        tool: String,
        arguments: String,
        quiet: Option<f64>,
        total: Option<f64>,
        progress: bool,
    ) -> PyResult<Pending> {
        let options = self.options(hub, number, quiet, total, progress)?;
        self.start(hub, number, async move |line| {
            line.call_tool_with(&tool, Raw(&arguments), options).await.map(Payload::Answer)
        })
    }

    fn read_resource(&self, hub: &Hub, number: u64, uri: String) -> PyResult<Pending> {
        self.start(hub, number, async move |line| line.read_resource(&uri).await.map(Payload::Answer))
    }

    fn get_prompt(&self, hub: &Hub, number: u64, name: String, arguments: String) -> PyResult<Pending> {
        self.start(hub, number, async move |line| {
            line.get_prompt(&name, Raw(&arguments)).await.map(Payload::Answer)
        })
    }

    /// Any request. `params` is JSON; `null` is none.
    #[expect(clippy::too_many_arguments, reason = "they are a Python function's")]
    fn request(
        &self,
        hub: &Hub,
        number: u64,
        method: String,
        params: String,
        quiet: Option<f64>,
        total: Option<f64>,
        progress: bool,
    ) -> PyResult<Pending> {
        let options = self.options(hub, number, quiet, total, progress)?;
        self.start(hub, number, async move |line| {
            line.request(&method, Raw(&params), options).await.map(Payload::Answer)
        })
    }
}

impl Line {
    fn options(
        &self,
        hub: &Hub,
        number: u64,
        quiet: Option<f64>,
        total: Option<f64>,
        progress: bool,
    ) -> PyResult<Options> {
        let (line, _) = self.parts()?;
        let mut options = Options::default();
        if total.is_some() || quiet.is_some() {
            let total = total.map_or(Ok(line.policy().call.cap), span)?;
            let quiet = quiet.map_or(Ok(total), span)?;
            options = options.deadline(Deadline::Within { quiet, total });
        } else if let limit @ Deadline::Within { .. } = line.deadline() {
            // The server's own `call_timeout`.
            options = options.deadline(limit);
        }
        if progress {
            let notes = hub.notes()?;
            options = options.on_progress(move |params| notes.put_progress(number, params));
        }
        Ok(options)
    }
}

/// Lets a line end before the runtime does. Once per line, however many handles it has.
pub(crate) fn outlived_by(runtime: &Runtime, line: &linetender::Line) {
    let mut status = line.statuses();
    runtime.outlives(async move {
        let _ = status.wait_for(|now| now.state == State::Closed).await;
    });
}

fn span(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("a timeout of {seconds} s: {error}")))
}
