//! What can be typed after `linetender wrap`.

use std::path::PathBuf;

use super::program::PUBLISHED;

/// Rewrite an agent's config so that its servers run through linetender; --undo reverts it.
///
/// Edits JSON (comments and formatting are kept) and Codex's TOML, prints a diff, and saves the original as
/// FILE.before-linetender. Without FILE, lists the agent configs of this user.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender wrap                              list agent configs, and what to type next\n  \
    linetender wrap ~/.cursor/mcp.json --check   print the diff; write nothing\n  \
    linetender wrap ~/.cursor/mcp.json           rewrite the file\n  \
    linetender wrap ~/.claude.json --only github wrap only this server\n  \
    linetender wrap ~/.cursor/mcp.json --undo    revert it\n  \
    linetender wrap cursor                       rewrite every config of this agent\n  \
    linetender wrap --all --check                print the diff for every config in the list\n  \
    linetender wrap cursor --share               one process per server for all windows and agents\n\n\
    Exit codes:\n  \
    0  success, or nothing to do\n  \
    1  --check: the file would change\n  \
    2  failure, or --undo was incomplete; the message says what was written")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a user types")]
pub(crate) struct Wrap {
    /// Config file of the agent (symlinks are followed), or the agent's name: `cursor`, `claude-desktop`, `vscode`
    #[arg(value_name = "FILE|AGENT", group = "which")]
    pub(crate) file: Option<PathBuf>,

    /// Every config in the list that `linetender wrap` prints
    #[arg(long, group = "which")]
    pub(crate) all: bool,

    /// Print the diff and write nothing
    #[arg(long, requires = "which")]
    pub(crate) check: bool,

    /// Revert the file: byte for byte if it is unchanged since, else server by server
    #[arg(long, requires = "which")]
    pub(crate) undo: bool,

    /// Start linetender through a package runner, which downloads it where it is not installed
    #[arg(long, value_name = "RUNNER", requires = "which", conflicts_with = "undo", hide = !PUBLISHED)]
    pub(crate) via: Option<Via>,

    /// Run each server once for all agents of this user (`run --share`), except those that keep state
    #[arg(long, requires = "which", conflicts_with = "undo")]
    pub(crate) share: bool,

    /// Only this server; repeatable
    #[arg(long, value_name = "NAME", requires = "which", allow_hyphen_values = true)]
    pub(crate) only: Vec<String>,

    /// All servers except this one; repeatable
    #[arg(long, value_name = "NAME", requires = "which", allow_hyphen_values = true)]
    pub(crate) except: Vec<String>,

    /// Print the list as JSON
    #[arg(long, conflicts_with = "which")]
    pub(crate) json: bool,
}

/// A program that fetches a package and runs what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Via {
    /// From the Python registry: `uvx linetender run …`
    Uvx,
    /// From npm: `npx -y linetender run …`
    Npx,
}

impl Via {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uvx => "uvx",
            Self::Npx => "npx",
        }
    }
}

impl Wrap {
    pub(super) fn wants(&self, name: &str) -> bool {
        let named = self.only.iter().any(|only| only == name);
        (self.only.is_empty() || named) && !self.except.iter().any(|except| except == name)
    }
}
