//! Where this user's things are kept, by the rules of the system: cache, state, sockets.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::path::PathBuf;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

#[cfg(feature = "fleet")]
pub(crate) use system::machine;
pub(crate) use system::{
    LOCATOR, UNKNOWN, cache, config, desktop, dot_config, has_display, home, runtime, state, to_close,
    usual_socket,
};
#[cfg(unix)]
pub(crate) use unix::of_keeper;

/// The journal's name in the place of what happened.
const JOURNAL: &str = "journal.jsonl";

/// What the gateway's config file is called, where nothing else is said.
pub(crate) const CONFIG: &str = "linetender.toml";

/// What the file of tokens is called that agents present to the gateway.
const TOKENS: &str = "tokens.toml";

/// Where the gateway's config file is, if it is nowhere else.
pub(crate) fn usual_config() -> Option<PathBuf> {
    config().map(|folder| folder.join("linetender").join(CONFIG))
}

/// Where the gateway's file of tokens is, if it is nowhere else.
pub(crate) fn usual_tokens() -> Option<PathBuf> {
    usual_config().map(|config| config.with_file_name(TOKENS))
}

/// What a variable of ours is, that a shared server is to have too.
#[expect(clippy::disallowed_methods, reason = "the user named it")]
pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Whether uv started this program, or what started it: it says where it is itself.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn is_started_by_uv() -> bool {
    std::env::var_os("UV").is_some()
}

/// Where programs are looked for.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// Where the journal is written.
pub(crate) fn journal() -> Option<PathBuf> {
    state().map(|dir| dir.join(JOURNAL))
}

/// Where journals can be.
pub(crate) fn journals() -> Vec<PathBuf> {
    either(state(), system::plain_state()).into_iter().map(|dir| dir.join(JOURNAL)).collect()
}

/// Where the sockets of holders can be. Many agents hand on few variables, so a shim may have found another place than
/// the user's own shell finds.
pub(crate) fn sockets() -> Vec<PathBuf> {
    let mut places = either(runtime(), state().map(|dir| dir.join("run")));
    let plain = system::plain_state().map(|dir| dir.join("run"));
    for place in plain.into_iter().chain(system::usual_runtime()) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn either(first: Option<PathBuf>, second: Option<PathBuf>) -> Vec<PathBuf> {
    let second = second.filter(|second| Some(second) != first.as_ref());
    first.into_iter().chain(second).collect()
}

/// A variable that names a folder. A relative one is to be ignored.
// XDG Base Directory Specification: "All paths set in these environment variables must be absolute."
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
