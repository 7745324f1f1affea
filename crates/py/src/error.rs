//! What a failed call says, as Python's exceptions have it.

use linetender::{CallError, CallErrorKind, Delivery, NextTry, Refusal};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Which exception tells of it.
const fn exception(error: &CallError) -> &'static str {
    match (error.kind, error.delivery) {
        (CallErrorKind::Refused(Refusal::NeedsAuth), _) => "NeedsAuth",
        (CallErrorKind::ContextReplaced, _) => "ContextReplaced",
        (CallErrorKind::TimedOut, _) => "CallTimeout",
        (CallErrorKind::ErrorAnswer, _) => "ErrorAnswer",
        (CallErrorKind::BadAnswer, _) => "BadAnswer",
        (_, Delivery::Refused(_)) => "ServerRefused",
        (_, Delivery::Unknown(_)) => "OutcomeUnknown",
        (
            CallErrorKind::Overloaded
            | CallErrorKind::Unreadable
            | CallErrorKind::NotRecorded
            | CallErrorKind::Vanished,
            _,
        ) => "CallRefused",
        _ => "LineDown",
    }
}

/// Its parts; the first is the exception's name.
pub(crate) fn fields<'py>(py: Python<'py>, error: &CallError) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("exception", exception(error))?;
    fields.set_item("text", error.to_string())?;
    fields.set_item("server", &*error.server)?;
    fields.set_item("kind", error.kind.to_string())?;
    fields.set_item("phase", error.phase.name())?;
    fields.set_item("cause", &error.cause)?;
    fields.set_item("delivery", error.delivery.name())?;
    fields.set_item("reason", error.reason())?;
    fields.set_item("attempts", error.attempts)?;
    fields.set_item("next_try", error.next_try.to_string())?;
    fields.set_item("next_try_in", seconds(error.next_try))?;
    fields.set_item("stderr", &error.stderr)?;
    fields.set_item("for_model", error.for_model())?;
    fields.set_item("answered", error.answered.as_ref().map(|answered| answered.raw()))?;
    Ok(fields)
}

/// In how many seconds the server is tried next, where that is a matter of time.
pub(crate) fn seconds(next: NextTry) -> Option<f64> {
    next.wait().map(|wait| wait.as_secs_f64())
}
