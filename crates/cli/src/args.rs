//! What can be typed.

mod look;
mod policy;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use look::{Journal, Status};
pub(crate) use policy::PolicyFlags;

/// Keeps an agent's MCP servers alive.
#[derive(Debug, Parser)]
#[command(name = "linetender", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    Wrap(crate::wrap::Wrap),
    Serve(Serve),
    Status(Status),
    Journal(Journal),
    #[cfg(feature = "drill")]
    Drill(crate::drill::Drill),
}

/// Runs an MCP server, or reaches one at its address, and brings it back when it dies.
///
/// Put this before the command in your agent's configuration. The agent's connection stays open whatever happens to the
/// server; a call that the server could not answer ends with an error that says why, and whether it may have run.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Example, in an agent's mcpServers:\n  \
    { \"command\": \"linetender\", \"args\": [\"run\", \"--\", \"npx\", \"-y\", \"@modelcontextprotocol/server-everything\"] }\n\n\
    A server somewhere else, for an agent that speaks stdio:\n  \
    { \"command\": \"linetender\", \"args\": [\"run\", \"https://example.com/mcp\"] }\n\n", policy::EXAMPLES].concat())]
pub(crate) struct Run {
    /// What the server is called in messages; its command, if not said.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,

    /// Writes what happens to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// A header for everything that is sent to a server at an address; can be given more than once. A value `$NAME`
    /// or `Bearer $NAME` is taken from that variable, so that no secret stands in a list of processes.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,

    /// Waits for the server before the agent is greeted, instead of greeting it with what the server said the last time.
    #[arg(long)]
    pub(crate) no_memory: bool,

    /// How the agent is told that a tool call failed: as a result that the model reads, or as a JSON-RPC error.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) tool_errors: ToolErrors,

    /// Where the server's stderr goes: to ours, into the log, or nowhere. Its last lines are in errors in any case.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t)]
    pub(crate) stderr: Stderr,

    /// Writes nothing into the journal.
    #[arg(long)]
    pub(crate) no_journal: bool,

    /// The size at which the journal is put away, for tests.
    #[arg(long, hide = true, value_name = "SIZE", value_parser = linetender_gateway::units::size)]
    pub(crate) journal_size: Option<u32>,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    /// The server's command and its arguments, or its address (`$NAME`: in that variable). All that follows belongs to it. A `--`
    /// before it is needed only if it begins with a dash.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The form of a failed tool call.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ToolErrors {
    #[default]
    Result,
    Error,
}

impl From<ToolErrors> for linetender::ToolErrors {
    fn from(form: ToolErrors) -> Self {
        match form {
            ToolErrors::Result => Self::Result,
            ToolErrors::Error => Self::Error,
        }
    }
}

/// Where a server's stderr goes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Stderr {
    #[default]
    Pass,
    Log,
    Off,
}

impl From<Stderr> for linetender::Stderr {
    fn from(stderr: Stderr) -> Self {
        match stderr {
            Stderr::Pass => Self::Pass,
            Stderr::Log => Self::Log,
            Stderr::Off => Self::Off,
        }
    }
}

/// Serves many MCP servers to many agents at one address, and keeps them alive.
///
/// One process per server instead of one per agent. Agents connect to `/mcp` for all servers (a tool is called
/// `server__tool` there) or to `/mcp/NAME` for one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, linetender.toml:\n  \
    [servers.everything]\n  \
    command = \"npx\"\n  \
    args = [\"-y\", \"@modelcontextprotocol/server-everything\"]\n\n\
    and an agent that is given its address:\n  \
    linetender serve --config linetender.toml\n  \
    { \"mcpServers\": { \"all\": { \"type\": \"http\", \"url\": \"http://127.0.0.1:7331/mcp\" } } }")]
pub(crate) struct Serve {
    /// Which servers: linetender's TOML, or an agent's `mcpServers` JSON as it is. It is reloaded when it changes, and on
    /// SIGHUP. If not said: `linetender.toml` in this folder, else in the folder `linetender` of `$XDG_CONFIG_HOME`
    /// (`~/.config`).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Reads the file, says what is wrong with it or what it has, and serves nobody.
    #[arg(long)]
    pub(crate) check: bool,

    /// Where agents connect to, instead of where the file says.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,

    /// Writes nothing into the journal.
    #[arg(long)]
    pub(crate) no_journal: bool,

    /// Serves a single agent on stdin and stdout instead.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Writes what happens to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

/// `Name: value`, `Name: $VARIABLE`, or `Name: Scheme $VARIABLE`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is NAME: VALUE")?;
    let value = value.trim();
    let value = match (value.strip_prefix('$'), value.split_once(" $")) {
        (Some(variable), _) => variable_of(variable)?,
        (None, Some((scheme, variable))) if !scheme.contains(' ') => {
            format!("{scheme} {}", variable_of(variable)?)
        }
        (None, _) => value.to_owned(),
    };
    Ok((name.trim().to_owned(), value))
}

/// An address may hold a key, and then be in a variable.
pub(crate) fn address(word: &str) -> Result<String, String> {
    let word = word.strip_prefix('$').map_or_else(|| Ok(word.to_owned()), variable_of)?;
    let Some((scheme, rest)) = word.split_once("://") else { return Ok(word) };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" if rest.starts_with(['/', '?', '#']) || rest.is_empty() => {
            Err(format!("there is no host in {word}"))
        }
        scheme @ ("http" | "https") => Ok(format!("{scheme}://{rest}")),
        _ => Ok(word),
    }
}

#[expect(clippy::disallowed_methods, reason = "the user named this variable on the command line")]
fn variable_of(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("the variable {name} is not set"))
}
