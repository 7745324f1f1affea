//! In the user's own folders: what stays on this machine in `%LOCALAPPDATA%`, what users write themselves in `%APPDATA%`.

use std::path::{Path, PathBuf};

use super::absolute;

/// Why no place is known.
pub(crate) const UNKNOWN: &str = "neither LOCALAPPDATA nor USERPROFILE is set";

/// What can be found out again.
pub(crate) fn cache() -> Option<PathBuf> {
    local().map(|dir| dir.join("cache"))
}

/// What happened.
pub(crate) fn state() -> Option<PathBuf> {
    local().map(|dir| dir.join("state"))
}

/// What lives no longer than its program.
pub(crate) fn runtime() -> Option<PathBuf> {
    local().map(|dir| dir.join("run"))
}

/// The user's folder.
pub(crate) fn home() -> Option<PathBuf> {
    absolute("USERPROFILE")
}

/// What users write themselves, for us.
pub(crate) fn config() -> Option<PathBuf> {
    absolute("APPDATA").or_else(|| Some(home()?.join("AppData").join("Roaming")))
}

/// Where desktop programs keep their configuration.
pub(crate) fn desktop() -> Option<PathBuf> {
    config()
}

/// A browser can be opened wherever somebody is logged in.
pub(crate) const fn has_display() -> bool {
    true
}

/// There is no other place.
pub(super) const fn usual_runtime() -> Option<PathBuf> {
    None
}

/// Where the state is, for a program that knows no more than its user's folder.
pub(super) fn plain_state() -> Option<PathBuf> {
    home().map(|home| home.join(r"AppData\Local\linetender\state"))
}

fn local() -> Option<PathBuf> {
    let base = absolute("LOCALAPPDATA").or_else(|| Some(home()?.join(r"AppData\Local")))?;
    Some(base.join("linetender"))
}

/// What this machine is called.
#[cfg(feature = "fleet")]
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn machine() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// What programs have there that go by the rules of other systems.
pub(crate) fn dot_config() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// The program that says where another one is.
pub(crate) const LOCATOR: &str = "where";

/// What to run so that nobody else can read a file.
pub(crate) fn to_close(file: &Path) -> String {
    format!("icacls \"{}\" /inheritance:r /grant:r \"%USERNAME%:F\"", file.display())
}

/// There are no Unix sockets: agents come by the address.
pub(crate) const fn usual_socket() -> Option<PathBuf> {
    None
}
