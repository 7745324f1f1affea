//! The native half of the Python package `linetender`: Rust's lines, sessions and rigs, as objects that Python can hold.
//!
//! Nothing is decided here. All work is done by a runtime of this process's own, on its own thread, which never touches a
//! Python object and never takes the interpreter's lock: what it has to say goes into a hub, whose bell is a
//! descriptor that an event loop watches like any other. So a busy interpreter delays no server, a server delays no
//! interpreter, and whatever can watch a descriptor (asyncio, uvloop, trio) can wait for a line.
//!
//! The Python half (`python/linetender`) is what users see.

mod error;
mod events;
mod hub;
mod kept;
mod line;
mod payload;
mod rig;
mod runtime;
mod server;
mod session;

use pyo3::prelude::*;

/// What the Python half uses.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::events::Events;
    #[pymodule_export]
    use super::hub::{Hub, Pending};
    #[pymodule_export]
    use super::line::Line;
    #[pymodule_export]
    use super::rig::Rig;
    #[pymodule_export]
    use super::server::Server;
    #[pymodule_export]
    use super::session::Session;

    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // For answers that only the SDK cannot read.
        module.add("BAD_ANSWER", linetender::Code::BadAnswer.number())?;
        // For requests that the SDK cannot spell.
        module.add("UNREADABLE", linetender::Code::Unreadable.number())
    }
}
