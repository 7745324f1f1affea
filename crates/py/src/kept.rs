//! What belongs to one process, and must not be touched by a child that was forked from it.
//!
//! A forked child has copies of everything, but none of the threads, and it shares descriptors with its parent: dropping a
//! socket's registration there would take it out of the parent's poll. So in a child nothing of the parent's is used, and
//! nothing of it is dropped.

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use rustix::process::{Pid, getpid};

/// Something that only the process that made it uses.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    value: Option<T>,
    by: Pid,
}

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), by: getpid() }
    }

    /// It, in the process that made it.
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.by == getpid() => Ok(value),
            _ => Err(PyRuntimeError::new_err(
                "this linetender object belongs to the parent process: open a new one after a fork",
            )),
        }
    }

    /// It, if this is the process that made it.
    pub(crate) fn here(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.by == getpid())
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if self.by != getpid() {
            std::mem::forget(self.value.take());
        }
    }
}
