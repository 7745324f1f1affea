//! What can go wrong, as somebody at three in the morning should read it.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} {why}: file not changed", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{} is larger than {} MiB: file not changed", .0.display(), super::file::LARGEST >> 20)]
    TooLarge(PathBuf),
    #[error("{} is not UTF-8 (first invalid byte: {at}): file not changed", path.display())]
    NotText { path: PathBuf, at: usize },
    #[error("{}:{syntax}: file not changed", path.display())]
    Syntax { path: PathBuf, syntax: Syntax },
    #[error(
        "no MCP servers in {}: looked for mcpServers, servers, mcp.servers, context_servers, mcp, [mcp_servers.NAME] in TOML, and extensions (goose)",
        .0.display()
    )]
    NoServers(PathBuf),
    #[error("{} has more than {} servers: file not changed", .0.display(), super::entry::MOST)]
    TooMany(PathBuf),
    #[error("no server named {name} in {}; servers there: {known}", path.display())]
    Unknown { name: String, path: PathBuf, known: String },
    #[error("no config of {0} found; run `linetender wrap` to list the configs of this user")]
    NoneOf(String),
    #[error("{word} is ambiguous: {agents}")]
    Several { word: String, agents: String },
    #[error("{} was changed by another program meanwhile: nothing written, run it again", .0.display())]
    Changed(PathBuf),
    #[error("the new content of {} would not parse ({syntax}): nothing written; please report this bug", path.display())]
    Broken { path: PathBuf, syntax: Syntax },
    #[error("{} has too many backups next to it ({}): delete old ones", .0.display(), super::file::MOST_BACKUPS)]
    Backups(PathBuf),
}

impl Error {
    /// A file that cannot be read, or that others could have put there.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.raw_os_error() {
            Some(_) if error.kind() == io::ErrorKind::NotFound => Self::io("find", path)(error),
            Some(_) => Self::io("read", path)(error),
            None => Self::Refused { path: path.to_owned(), why: error.to_string() },
        }
    }

    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }
}

/// Where a text stops making sense, and why.
#[derive(Debug, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub(super) struct Syntax {
    line: usize,
    column: usize,
    message: String,
}

impl Syntax {
    /// The line and column of a byte, both counted from one, the column in characters.
    pub(super) fn at(text: &str, byte: usize, message: &str) -> Self {
        let before = String::from_utf8_lossy(&text.as_bytes()[..byte.min(text.len())]);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[start..].chars().count() + 1;
        let mut message = message.trim().replace('\n', "; ");
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Self { line, column, message }
    }
}
