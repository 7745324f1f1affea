//! The runtime of a command that holds servers.

use std::io;
use std::panic::catch_unwind;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// As good as for ever.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Builds it, with one thread for work that blocks, and that thread is kept: on a machine that is at its limit of processes
/// there would be no other, and the runtime panics if it has none.
pub(crate) fn build(builder: &mut Builder) -> io::Result<Runtime> {
    let runtime = builder.enable_all().thread_keep_alive(KEPT).build()?;
    let _ = catch_unwind(|| drop(runtime.spawn_blocking(|| ())));
    Ok(runtime)
}
