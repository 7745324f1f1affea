//! Where this user's things are kept, by the rules of the desktop: cache, state, sockets.

use std::path::PathBuf;

/// The journal's name in the place of what happened.
const JOURNAL: &str = "journal.jsonl";

/// What the gateway's config file is called, where nothing else is said.
pub(crate) const CONFIG: &str = "linetender.toml";

/// What the file of tokens is called that agents present to the gateway.
const TOKENS: &str = "tokens.toml";

/// What can be found out again: `~/.cache/linetender`.
pub(crate) fn cache() -> Option<PathBuf> {
    place("XDG_CACHE_HOME", ".cache")
}

/// What happened: `~/.local/state/linetender`.
pub(crate) fn state() -> Option<PathBuf> {
    place("XDG_STATE_HOME", ".local/state")
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

/// Where the gateway's config file is, if it is nowhere else.
pub(crate) fn usual_config() -> Option<PathBuf> {
    config().map(|folder| folder.join("linetender").join(CONFIG))
}

/// Where the gateway's file of tokens is, if it is nowhere else.
pub(crate) fn usual_tokens() -> Option<PathBuf> {
    usual_config().map(|config| config.with_file_name(TOKENS))
}

/// The variables by which a keeper finds the same places as the process that starts it; it gets no others.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn of_keeper() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    let names = ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    names.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
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

/// Whether a browser could be opened here.
#[expect(clippy::disallowed_methods, reason = "this is the room that finds the places")]
pub(crate) fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
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

/// Where the journal is written.
pub(crate) fn journal() -> Option<PathBuf> {
    state().map(|dir| dir.join(JOURNAL))
}

/// Where journals can be.
pub(crate) fn journals() -> Vec<PathBuf> {
    either(state(), plain_state()).into_iter().map(|dir| dir.join(JOURNAL)).collect()
}

/// Where the sockets of holders can be. Many agents hand on few variables, so a shim may have found another place than
/// the user's own shell finds.
pub(crate) fn sockets() -> Vec<PathBuf> {
    let mut places = either(runtime(), state().map(|dir| dir.join("run")));
    let plain = plain_state().map(|dir| dir.join("run"));
    // Where login managers put it, for a program that was not told: a server that a gateway started.
    let usual = PathBuf::from(format!("/run/user/{}/linetender", rustix::process::getuid().as_raw()));
    for place in plain.into_iter().chain(Some(usual).filter(|usual| usual.is_dir())) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Where the state is, for a program that knows no more than its user's home.
fn plain_state() -> Option<PathBuf> {
    absolute("HOME").map(|home| home.join(".local/state/linetender"))
}

fn either(first: Option<PathBuf>, second: Option<PathBuf>) -> Vec<PathBuf> {
    let second = second.filter(|second| Some(second) != first.as_ref());
    first.into_iter().chain(second).collect()
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
