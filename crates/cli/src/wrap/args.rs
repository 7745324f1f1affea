//! What can be typed after `linetender wrap`.

use std::path::PathBuf;

/// Puts linetender before every server in an agent's configuration, and takes it away again.
///
/// Rewrites JSON (comments and formatting stay) and Codex's TOML, shows the difference, and keeps the file as it was beside
/// it, as FILE.before-linetender. Without FILE, lists the configurations that this user has.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender wrap                              which agents are here, and what to type\n  \
    linetender wrap ~/.cursor/mcp.json --check   what would change; nothing is written\n  \
    linetender wrap ~/.cursor/mcp.json           does it\n  \
    linetender wrap ~/.claude.json --only github only this server\n  \
    linetender wrap ~/.cursor/mcp.json --undo    puts it back\n  \
    linetender wrap cursor                       every configuration of this agent that is here\n  \
    linetender wrap --all --check                every one that the list shows\n\n\
    Exit codes:\n  \
    0  done, or nothing to do\n  \
    1  with --check: something would change\n  \
    2  failed, or something could not be undone; the message says what was written")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a user types")]
pub(crate) struct Wrap {
    /// The agent's configuration (a link is followed), or the agent's name: `cursor`, `claude-desktop`, `vscode`.
    #[arg(value_name = "FILE|AGENT", group = "which")]
    pub(crate) file: Option<PathBuf>,

    /// Every configuration that the list shows.
    #[arg(long, group = "which")]
    pub(crate) all: bool,

    /// Shows what would change, and writes nothing.
    #[arg(long, requires = "which")]
    pub(crate) check: bool,

    /// Puts the file back: byte for byte if nobody has changed it since, else server by server.
    #[arg(long, requires = "which")]
    pub(crate) undo: bool,

    /// Only the server of this name; can be given more than once.
    #[arg(long, value_name = "NAME", requires = "which", allow_hyphen_values = true)]
    pub(crate) only: Vec<String>,

    /// All but the server of this name; can be given more than once.
    #[arg(long, value_name = "NAME", requires = "which", allow_hyphen_values = true)]
    pub(crate) except: Vec<String>,

    /// The list as JSON, for programs.
    #[arg(long, conflicts_with = "which")]
    pub(crate) json: bool,
}

impl Wrap {
    pub(super) fn wants(&self, name: &str) -> bool {
        let named = self.names(name);
        (self.only.is_empty() || named) && !self.except.iter().any(|except| except == name)
    }

    /// Whether this one was asked for by its name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.only.iter().any(|only| only == name)
    }
}
