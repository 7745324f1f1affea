//! What comes of work, until it becomes Python's.

use linetender::Answer;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// What came of it.
#[derive(Debug)]
pub(crate) enum Payload {
    Nothing,
    Answer(Answer),
    /// Entries of a list, as raw JSON.
    Entries(Vec<String>),
    Number(u64),
    Bool(bool),
}

impl Payload {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(match self {
            Self::Nothing => py.None().into_bound(py),
            Self::Answer(answer) => PyString::new(py, answer.raw()).into_any(),
            Self::Entries(entries) => PyList::new(py, entries)?.into_any(),
            Self::Number(number) => number.into_pyobject(py)?.into_any(),
            Self::Bool(is_so) => is_so.into_pyobject(py)?.to_owned().into_any(),
        })
    }
}
