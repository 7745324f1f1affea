//! Several lines that share a dial limit.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hub::{Hub, Pending};
use crate::kept::Kept;
use crate::line::{Line, outlived_by};
use crate::payload::Payload;
use crate::runtime::Runtime;
use crate::server::Server;

/// Lines that share a dial limit; it holds those that it was told to hold.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Debug)]
pub(crate) struct Rig(Kept<Inner>);

#[derive(Debug)]
struct Inner {
    rig: linetender::Rig,
    runtime: Arc<Runtime>,
}

impl Rig {
    pub(crate) fn parts(&self) -> PyResult<(&linetender::Rig, &Arc<Runtime>)> {
        let Inner { rig, runtime } = self.0.get()?;
        Ok((rig, runtime))
    }
}

#[pymethods]
impl Rig {
    #[new]
    fn new(dials_at_once: Option<usize>) -> PyResult<Self> {
        let rig = match dials_at_once {
            Some(0) => return Err(PyValueError::new_err("a rig that starts no server is of no use")),
            Some(dials) => linetender::Rig::with_dials_at_once(dials),
            None => linetender::Rig::new(),
        };
        Ok(Self(Kept::new(Inner { rig, runtime: Runtime::get()? })))
    }

    /// A line that ends with its last handle.
    fn open(&self, server: &Server, lazy: bool) -> PyResult<Line> {
        let (rig, runtime) = self.parts()?;
        let entered = runtime.handle().enter();
        let line = if lazy { rig.lazy(server.0.clone()) } else { rig.open(server.0.clone()) };
        drop(entered);
        Ok(Line::opened(line, Arc::clone(runtime)))
    }

    /// Holds lines to these servers, and to no others; says which are added, replaced, removed and kept.
    #[expect(clippy::needless_pass_by_value, reason = "it is made from a Python list")]
    fn set<'py>(&self, py: Python<'py>, servers: Vec<PyRef<'py, Server>>) -> PyResult<Bound<'py, PyDict>> {
        let (rig, runtime) = self.parts()?;
        let change = {
            let _entered = runtime.handle().enter();
            rig.set(servers.iter().map(|server| server.0.clone()))
        };
        for line in change.added.iter().chain(&change.replaced).filter_map(|name| rig.line(name)) {
            outlived_by(runtime, &line);
        }
        let fields = PyDict::new(py);
        let lists = [
            ("added", &change.added),
            ("replaced", &change.replaced),
            ("removed", &change.removed),
            ("kept", &change.kept),
        ];
        for (name, list) in lists {
            fields.set_item(name, list.iter().map(|name| &**name).collect::<Vec<_>>())?;
        }
        Ok(fields)
    }

    /// The line of this name, if the rig holds one.
    fn line(&self, name: &str) -> PyResult<Option<Line>> {
        let (rig, runtime) = self.parts()?;
        Ok(rig.line(name).map(|line| Line::of(line, Arc::clone(runtime))))
    }

    /// All lines that it holds, by name.
    fn lines(&self) -> PyResult<Vec<Line>> {
        let (rig, runtime) = self.parts()?;
        Ok(rig.held().into_iter().map(|line| Line::of(line, Arc::clone(runtime))).collect())
    }

    /// Closes all lines that it holds; says whether nothing was left when the time was up.
    fn shutdown(&self, hub: &Hub, number: u64, limit: f64) -> PyResult<Pending> {
        let limit =
            Duration::try_from_secs_f64(limit).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (rig, runtime) = self.parts()?;
        let rig = rig.clone();
        hub.start(runtime, number, async move { Ok(Payload::Bool(rig.shutdown(limit).await)) })
    }
}
