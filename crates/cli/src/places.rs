//! Where this user's things are kept, by the rules of the desktop: cache, state, sockets.

use std::path::PathBuf;

/// What can be found out again: `~/.cache/linetender`.
pub(crate) fn cache() -> Option<PathBuf> {
    place("XDG_CACHE_HOME", ".cache")
}

/// What happened: `~/.local/state/linetender`.
pub(crate) fn state() -> Option<PathBuf> {
    place("XDG_STATE_HOME", ".local/state")
}

#[expect(dead_code, reason = "the status comes to live there")]
/// What lives no longer than its program: `$XDG_RUNTIME_DIR/linetender`, or beside the state where there is none.
pub(crate) fn runtime() -> Option<PathBuf> {
    match absolute("XDG_RUNTIME_DIR") {
        Some(dir) => Some(dir.join("linetender")),
        None => state().map(|dir| dir.join("run")),
    }
}

fn place(variable: &str, under_home: &str) -> Option<PathBuf> {
    let base = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(under_home)))?;
    Some(base.join("linetender"))
}

/// A variable that names a folder. A relative one is to be ignored.
// XDG Base Directory Specification: "All paths set in these environment variables must be absolute."
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
