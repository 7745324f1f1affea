//! Where there is no reaper: it needs pidfds and subreapers, or a kqueue and libproc.

use std::process::ExitCode;

/// The hidden subcommand by which a binary of ours knows that it is to be a reaper.
pub const SUBCOMMAND: &str = "__linetender-reap";

/// There are no reapers on this system.
pub(super) const EXISTS: bool = false;

/// There is no reaper on this system: nothing to become.
#[must_use]
pub fn run_if_asked() -> Option<ExitCode> {
    super::reaper_program::say_able();
    None
}
