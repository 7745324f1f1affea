//! What can be done to a process, and to the pipe to it.

use rustix::process::{Pid, Signal, kill_process};

/// Kills a process.
pub fn kill(pid: i32) {
    send(pid, Signal::KILL);
}

/// Sends a signal to a process.
pub fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// How much lies unread in the pipe to a process.
pub fn unread(pid: i32) -> u64 {
    let pipe = std::fs::File::open(format!("/proc/{pid}/fd/0")).ok();
    pipe.and_then(|pipe| rustix::io::ioctl_fionread(&pipe).ok()).unwrap_or(0)
}
