//! There is no keeper: it takes over descriptors by a Unix socket.

use std::process::ExitCode;
use std::time::Duration;

use linetender::{Server, StdioServer};

use crate::{args, log};

const NOT_HERE: &str =
    "`run --share` is not available on Windows: leave it out, or share the server by `linetender serve`";

/// Why servers cannot be shared here.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(crate) const fn refusal() -> Option<&'static str> {
    Some(NOT_HERE)
}

/// # Errors
/// Always.
pub(crate) fn through_keeper(_: &Server, _: StdioServer, _: Option<Duration>) -> Result<Server, String> {
    Err(NOT_HERE.to_owned())
}

/// Says so.
pub(crate) fn keeper(_: &args::Keeper) -> ExitCode {
    log::say(format_args!("linetender: {NOT_HERE}"));
    ExitCode::FAILURE
}
