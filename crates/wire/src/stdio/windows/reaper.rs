//! There is no reaper: a server's Job Object ends with us.

use std::process::ExitCode;

/// The hidden subcommand by which a binary of ours knows that it is to be a reaper.
pub const SUBCOMMAND: &str = "__linetender-reap";

/// There is no reaper on this system: nothing to become.
#[must_use]
pub const fn run_if_asked() -> Option<ExitCode> {
    None
}
