//! What a reaper finds open when it is started, and the variables that say so.

use std::os::fd::RawFd;

/// Where the reaper finds the control socket.
pub(super) const CONTROL_FD: RawFd = 3;

/// Where it finds what it is to hold open as long as it lives, if its environment says that there is something.
pub(super) const HELD_FD: RawFd = 4;

/// The variable that says so. The reaper takes it out of the server's environment.
pub(super) const HELD: &str = "LINETENDER_REAPER_HOLDS";

/// Where it finds the timer that its server does not outlive, and the variable that says that there is one.
pub(super) const LIFELINE_FD: RawFd = 5;
pub(super) const LIFELINE: &str = "LINETENDER_REAPER_LIFELINE";
