//! The commands that start servers for a moment: to look at them, or to call a tool.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use linetender_gateway::units::time;

/// Start every server of a configuration once and say what is wrong, and how to fix it
///
/// Each server is started (or connected to) as `linetender serve` would, asked for its lists, and stopped again. No tool is
/// called, and nothing is left running.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linetender doctor                            linetender.toml, where `serve` looks for it
  linetender doctor ~/.cursor/mcp.json         an agent's configuration
  linetender doctor --server github            one server of it
  linetender doctor --system                   what linetender can promise on this system, and by what
  linetender doctor --json | jq '.servers[] | select(.ok | not) | .name'

Exit codes:
  0  every server works (there may be warnings)
  1  at least one server has an error
  2  the configuration cannot be read, or the command line is wrong")]
pub(crate) struct Doctor {
    /// Config file: linetender's TOML, or an agent's `mcpServers` JSON [default: as for `serve`]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Look at this server only; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,

    /// Say what is promised on this system and what keeps it; no server is started
    #[arg(long, conflicts_with_all = ["file", "server"])]
    pub(crate) system: bool,

    /// Print a JSON document instead of a table, and no progress
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which server is meant, for commands that need one for a moment.
#[derive(Debug, clap::Args)]
pub(crate) struct FromConfig {
    /// Config file that has the server: linetender's TOML, or an agent's `mcpServers` JSON [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// List the tools of a server, or of every server of a configuration
///
/// Starts the servers for a moment; a gateway that runs is not asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linetender tools                                       every server of the configuration
  linetender tools github --config ~/.cursor/mcp.json    one server of it
  linetender tools https://mcp.example.com/mcp           a server that stands in no file
  linetender tools -- npx -y @modelcontextprotocol/server-everything
  linetender tools github --json | jq '.servers[].tools[].name'

RETRY says whether linetender would execute a call again if its outcome is unknown:
  safe        yes: `safe_tools` names the tool, or it is declared read-only or idempotent and `trust_annotations` is set
  declared    no: it is declared read-only or idempotent, but `trust_annotations` is not set
  no          no

Exit codes:
  0  all tools are listed
  1  at least one server did not answer
  2  the configuration cannot be read, it has no such server, or the command line is wrong")]
pub(crate) struct Tools {
    /// Name of a server in the configuration, or a server URL [default: every server of the configuration]
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) from: FromConfig,

    /// Print a JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Server command with its arguments, in place of a configuration
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["server", "config"])]
    pub(crate) command: Vec<OsString>,
}

/// Call a tool once, and say whether it was executed
///
/// Starts the server for the call; a gateway that runs is not asked. The result goes to stdout, everything else to stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linetender call github search_issues '{\"query\": \"is:open\"}'
  linetender call everything echo '{\"message\": \"hello\"}' --json | jq .content
  linetender call https://mcp.example.com/mcp ping
  jq -n '{message: \"hello\"}' | linetender call everything echo -

Exit codes:
  0  the tool's result was printed
  1  the tool failed (isError), or the server answered with an error
  2  the configuration cannot be read, it has no such server, or the command line is wrong
  3  the call was not executed; stderr says how that is known
  4  it is unknown whether the call was executed, or the server says that it was not: check for its effects before you
     repeat it")]
pub(crate) struct Call {
    /// Name of a server in the configuration, or a server URL
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,

    /// Tool to call, by the server's own name for it
    #[arg(value_name = "TOOL", allow_hyphen_values = true)]
    pub(crate) tool: String,

    /// Arguments: a JSON object; `-` reads it from stdin
    #[arg(value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    pub(crate) arguments: String,

    #[command(flatten)]
    pub(crate) from: FromConfig,

    /// Time out the call after this long [default: the server's `call_timeout` or `quiet_limit`]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,

    /// Print the whole result as JSON instead of its text
    #[arg(long)]
    pub(crate) json: bool,
}
