//! This user's running linetender processes, for every command that asks them.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use linetender::visible;
use linetender_holder::holder::{Found, look};

use crate::places;

/// Looks for them, and does something with what was found.
pub(crate) fn with_all(then: impl AsyncFnOnce(&[Found]) -> ExitCode) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async { then(&all().await).await })
}

/// Looks for them.
pub(crate) async fn all() -> Vec<Found> {
    let refused = |path: &Path, why: &io::Error| {
        eprintln!("linetender: ignored {}: {why}", visible::line(&path.display().to_string()));
    };
    look(&places::sockets(), refused).await
}

/// What a command exits with that has printed something. Whoever reads it may have seen enough.
pub(crate) fn printed(printed: io::Result<()>) -> ExitCode {
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linetender: cannot print: {error}");
            ExitCode::FAILURE
        }
    }
}
