//! With signals and descriptors.

use std::io;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process};

/// Kills itself.
pub(crate) fn kill() {
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Stops itself, all threads of it.
pub(crate) fn stop() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Closes its output, and lives on.
pub(crate) fn close_stdout() {
    if let Ok(null) = std::fs::File::create("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Closes its input, and lives on.
pub(crate) fn close_stdin() {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// Starts a process that holds its pipes and lives longer.
pub(crate) fn grandchild() {
    let _ = Command::new("sleep").arg("600").spawn();
}

/// The same, as far from here as a process can get.
pub(crate) fn escapee() {
    let _ = Command::new("setsid").args(["sleep", "601"]).stderr(Stdio::inherit()).spawn();
}

/// Leaves a helper to itself, which ends at once.
pub(crate) fn orphan() {
    let _ = Command::new("sh").args(["-c", "true & "]).status();
}

/// Stdin without the standard library's buffer.
pub(crate) fn unbuffered() -> Option<impl io::Read> {
    use std::os::fd::AsFd as _;
    io::stdin().as_fd().try_clone_to_owned().ok().map(std::fs::File::from)
}

/// Nothing happens: `env` does it.
pub(crate) const fn set_variable(_: &str, _: &str) {}
