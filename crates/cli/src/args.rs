//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Keeps an agent's MCP servers alive.
#[derive(Debug, Parser)]
#[command(name = "linetender", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
}

/// Runs a stdio MCP server and brings it back when it dies.
///
/// Put this before the command in your agent's configuration. The agent's connection stays open whatever happens to the
/// server; a call that the server could not answer ends with an error that says why, and whether it may have run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, in an agent's mcpServers:\n  \
    { \"command\": \"linetender\", \"args\": [\"run\", \"--\", \"npx\", \"-y\", \"@modelcontextprotocol/server-everything\"] }")]
pub(crate) struct Run {
    /// What the server is called in messages; its command, if not said.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Writes what happens to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// The server's command and its arguments. A `--` before it is good style, but some programs that start us eat it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
