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

/// The user's folder.
pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// What users write themselves: `~/.config`. Other programs' files, not ours.
pub(crate) fn config() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// Where desktop programs keep their configuration.
pub(crate) fn desktop() -> Option<PathBuf> {
    if cfg!(target_os = "macos") { Some(home()?.join("Library/Application Support")) } else { config() }
}

/// Where programs are looked for.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
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
