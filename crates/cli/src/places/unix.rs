//! By the rules of the desktop: XDG, and where nothing is set on a Mac, the user's Library.

use std::path::{Path, PathBuf};

use super::absolute;

/// Why no place is known.
pub(crate) const UNKNOWN: &str = "neither HOME nor XDG_STATE_HOME is set";

/// Below the user's folder: what can be found out again, what happened, and what desktop programs are told.
const CACHE: &str = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
const STATE: &str = if cfg!(target_os = "macos") { LIBRARY } else { ".local/state" };
const LIBRARY: &str = "Library/Application Support";

/// What can be found out again: `~/.cache/linetender`.
pub(crate) fn cache() -> Option<PathBuf> {
    place("XDG_CACHE_HOME", CACHE)
}

/// What happened: `~/.local/state/linetender`.
pub(crate) fn state() -> Option<PathBuf> {
    place("XDG_STATE_HOME", STATE)
}

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

/// What users write themselves, for us and for other programs: `~/.config`.
pub(crate) fn config() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// The variables by which a keeper finds the same places as the process that starts it; it gets no others.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn of_keeper() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    let names = ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    names.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// Whether a browser could be opened here.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Where desktop programs keep their configuration.
pub(crate) fn desktop() -> Option<PathBuf> {
    if cfg!(target_os = "macos") { Some(home()?.join(LIBRARY)) } else { config() }
}

/// Where login managers put what lives no longer than its program, for one that was not told: a server that a gateway started.
pub(super) fn usual_runtime() -> Option<PathBuf> {
    let usual = PathBuf::from(format!("/run/user/{}/linetender", rustix::process::getuid().as_raw()));
    Some(usual).filter(|usual| usual.is_dir())
}

/// Where the state is, for a program that knows no more than its user's home.
pub(super) fn plain_state() -> Option<PathBuf> {
    absolute("HOME").map(|home| home.join(STATE).join("linetender"))
}

fn place(variable: &str, under_home: &str) -> Option<PathBuf> {
    let base = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(under_home)))?;
    Some(base.join("linetender"))
}

/// What this machine is called.
#[cfg(feature = "fleet")]
pub(crate) fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What programs of the terminal have there.
pub(crate) fn dot_config() -> Option<PathBuf> {
    config()
}

/// The program that says where another one is.
pub(crate) const LOCATOR: &str = "command -v";

/// What to run so that nobody else can read a file.
pub(crate) fn to_close(file: &Path) -> String {
    format!("chmod 600 {}", file.display())
}

/// Where the gateway's Unix socket is, where nothing else is said.
pub(crate) fn usual_socket() -> Option<PathBuf> {
    runtime().map(|folder| folder.join("gateway.sock"))
}
