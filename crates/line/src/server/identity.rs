//! Which server is meant: what has to be the same for what was learnt of it to be true of it.

use std::ffi::{OsStr, OsString};
use std::hash::Hasher;

use linetender_wire::stdio::{Env, Program};

use super::{Server, Target};

/// Variables that differ from one terminal, login or start to the next, and say nothing of a server.
const FLEETING: [&str; 16] = [
    "_",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "WINDOWID",
    "COLUMNS",
    "LINES",
    "DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "GPG_TTY",
    "STY",
    "SECURITYSESSIONID",
    "WINDOW",
    "XDG_RUNTIME_DIR",
];

/// How the names of families of such variables begin: of terminals, editors, shells and agents.
const FAMILIES: [&str; 19] = [
    "SSH_",
    "XDG_SESSION_",
    "XDG_ACTIVATION_",
    "LC_",
    "TERM",
    "TMUX",
    "KITTY_",
    "ALACRITTY_",
    "ITERM_",
    "WEZTERM_",
    "WT_",
    "KONSOLE_",
    "VTE_",
    "STARSHIP_",
    "VSCODE_",
    "CURSOR_",
    "CLAUDE_CODE_",
    "CODEX_",
    "npm_",
];

/// And how they end: each is a number of one start.
const ENDINGS: [&str; 6] = ["_PID", "_SESSION_ID", "_SESSION_KEY", "_WINDOW_ID", "_TRACE_ID", "_SSE_PORT"];

impl Server {
    /// Everything that makes it this server and no other: what is run, where, in which environment; or its address and
    /// what is sent along. Not its name, and not our policy.
    pub fn identify(&self, hash: &mut impl Hasher) {
        match &self.target {
            Target::Stdio { program, .. } => identify_program(program, hash),
            Target::Http(http) => http.identify(hash),
        }
    }
}

fn identify_program(program: &Program, hash: &mut impl Hasher) {
    put(hash, "stdio");
    hash.write_usize(program.argv.len());
    for word in &program.argv {
        put(hash, word);
    }
    let here = || std::env::current_dir().unwrap_or_default();
    put(hash, program.dir.clone().unwrap_or_else(here).as_os_str());
    let inherited = || std::env::vars_os().filter(|(name, _)| !is_fleeting(name));
    let mut variables: Vec<(OsString, OsString)> = match &program.env {
        Env::Ours => inherited().collect(),
        Env::OursAnd(variables) => inherited().chain(variables.iter().cloned()).collect(),
        Env::Only(variables) => variables.clone(),
    };
    variables.sort();
    for (name, value) in variables {
        put(hash, &name);
        put(hash, &value);
    }
}

fn is_fleeting(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        FLEETING.contains(&name)
            || FAMILIES.iter().any(|family| name.starts_with(family))
            || ENDINGS.iter().any(|ending| name.ends_with(ending))
    })
}

/// A word with its length, so that no two lists of words are one text.
pub(super) fn put(hash: &mut impl Hasher, word: impl AsRef<OsStr>) {
    let bytes = word.as_ref().as_encoded_bytes();
    hash.write_usize(bytes.len());
    hash.write(bytes);
}
