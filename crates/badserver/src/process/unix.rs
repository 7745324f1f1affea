//! Processes on Unix: signals, and what `/proc` says, or `ps` where there is none.

#[cfg(target_os = "linux")]
mod proc;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(
    target_os = "linux",
    allow(dead_code, unreachable_pub, reason = "here it is only compared with /proc")
)]
mod ps;

use rustix::process::{Pid, Signal, kill_process};

#[cfg(target_os = "linux")]
pub use proc::{carries, descendants, descriptors, lives, marked, parent, unread};
#[cfg(not(target_os = "linux"))]
pub use ps::{carries, descendants, descriptors, lives, marked, parent, unread};

/// Kills a process.
pub fn kill(pid: i32) {
    send(pid, Signal::KILL);
}

/// Stops a process, all threads of it.
pub fn stop(pid: i32) {
    send(pid, Signal::STOP);
}

/// Lets a stopped process go on.
pub fn go_on(pid: i32) {
    send(pid, Signal::CONT);
}

/// Asks a process to end. Whether it was.
pub fn ask_to_end(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok())
}

/// Sends a signal to a process.
pub fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}
