//! Without signals.

#![allow(unsafe_code, reason = "a standard handle can only be closed by its number")]
#![allow(clippy::disallowed_methods, reason = "a server that misbehaves adopts no orphans")]

use std::io;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, FromRawHandle as _, OwnedHandle, RawHandle};
use std::os::windows::process::CommandExt as _;
use std::process::Command;

use crate::process;

/// `DETACHED_PROCESS` and `CREATE_NEW_PROCESS_GROUP`.
const FAR: u32 = 0x8 | 0x200;

/// Ends at once, with a status that says that something is wrong.
pub(crate) fn kill() {
    std::process::abort();
}

/// Stops itself, all threads of it.
pub(crate) fn stop() {
    process::stop_this();
}

/// Closes its output, and lives on.
pub(crate) fn close_stdout() {
    close(io::stdout().as_raw_handle());
}

/// Closes its input, and lives on.
pub(crate) fn close_stdin() {
    close(io::stdin().as_raw_handle());
}

fn close(handle: RawHandle) {
    // SAFETY: nobody owns it: the standard library looks the handle up each time, and takes one that is closed for one that ended.
    drop(unsafe { OwnedHandle::from_raw_handle(handle) });
}

/// Nothing: what a server has besides its tools is drawn on other systems.
pub(crate) fn worker(_: bool, _: Option<&std::fs::File>) -> Option<u32> {
    None
}

/// Nothing: there is no such process here.
pub(crate) fn stranger(_: &str) -> Option<i32> {
    None
}

/// Nothing: there is no such signal.
pub(crate) fn on_term(_: impl FnOnce() + Send + 'static) {}

/// Starts a process that holds its pipes and lives longer.
pub(crate) fn grandchild() {
    let _ = deaf().spawn();
}

/// The same, as far from here as a process can get.
pub(crate) fn escapee() {
    let _ = deaf().creation_flags(FAR).spawn();
}

fn deaf() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.arg("--deaf");
    command
}

/// Leaves a helper to itself, which ends at once.
pub(crate) fn orphan() {
    let _ = Command::new("cmd").args(["/c", "start", "/b", "cmd", "/c", "exit"]).status();
}

/// Stdin without the standard library's buffer.
pub(crate) fn unbuffered() -> Option<impl io::Read> {
    io::stdin().as_handle().try_clone_to_owned().ok().map(std::fs::File::from)
}

/// Sets a variable of its own environment, which whatever it starts inherits.
pub(crate) fn set_variable(name: &str, value: &str) {
    // SAFETY: on this system the environment may be changed at any time.
    unsafe { std::env::set_var(name, value) };
}
