//! What can be typed.

mod act;
mod ask;
mod audit;
mod auth;
mod log;
mod look;
mod made;
mod policy;
mod token;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use act::{Calls, Drain, Inside, LogLevel, OfServer, Park, Redial, Reload, Wake};
pub(crate) use ask::{Call, Doctor, FromConfig, Tools};
pub(crate) use audit::{Audit, AuditCommand, VerifyAudit};
pub(crate) use auth::{Auth, Login, Logout, Server as LoginServer};
pub(crate) use log::{LogFlags, LogFormat};
pub(crate) use look::{FleetArgs, Journal, Logs, Status, Top, Why};
pub(crate) use made::{Completions, Man};
pub(crate) use policy::PolicyFlags;
pub(crate) use token::{AddToken, ListTokens, RemoveToken, Token, TokenCommand, TokenPlace};

use crate::keys::FILE;

/// Keeps an agent's MCP servers alive: detects failures, restarts or reconnects, and never runs a tool twice unasked.
#[derive(Debug, Parser)]
#[command(
    name = "linetender",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
    linetender run -- npx -y @modelcontextprotocol/server-everything   supervise one server, for one agent\n  \
    linetender wrap ~/.cursor/mcp.json                                 do that for every server in an agent's config\n  \
    linetender serve --config linetender.toml                          one gateway for many agents and servers\n  \
    linetender status                                                  what is running, what is down, and why\n  \
    linetender top                                                     the same live, with calls, verdicts and latencies
  \
    linetender journal --server github                                 what happened to a server\n  \
    linetender calls -f                                                calls as they end, with the verdict on each\n  \
    linetender redial github                                           restart a server now\n  \
    linetender doctor                                                  what is wrong with the configured servers\n  \
    linetender call github search_issues '{\"query\": \"is:open\"}'       call a tool once\n  \
    linetender login https://mcp.example.com/mcp                       log in to a server that signs people in\n  \
    linetender token add ci                                            make a token with which an agent uses a gateway"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    #[command(hide = true)]
    Keeper(Keeper),
    Wrap(crate::wrap::Wrap),
    Serve(Serve),
    Status(Status),
    Fleet(FleetArgs),
    Top(Top),
    Why(Why),
    Journal(Journal),
    Calls(Calls),
    Redial(Redial),
    Park(Park),
    Wake(Wake),
    Drain(Drain),
    Reload(Reload),
    LogLevel(LogLevel),
    Inside(Inside),
    Audit(Audit),
    Logs(Logs),
    Doctor(Doctor),
    Tools(Tools),
    Call(Call),
    Login(Login),
    Logout(Logout),
    Auth(Auth),
    Token(Token),
    Completions(Completions),
    Man(Man),
    #[cfg(feature = "drill")]
    Drill(crate::drill::Drill),
}

/// Supervise one MCP server: start a command or connect to a URL, and restart or reconnect on failure.
///
/// Put it in front of the server's command in the agent's config. The agent's connection stays open while the server
/// fails and restarts. A failed call ends with an error that states the cause and whether the call may have been executed.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Example, in an agent's mcpServers config:\n  \
    { \"command\": \"linetender\", \"args\": [\"run\", \"--\", \"npx\", \"-y\", \"@modelcontextprotocol/server-everything\"] }\n\n\
    A remote server (Streamable HTTP), for an agent that speaks stdio:\n  \
    { \"command\": \"linetender\", \"args\": [\"run\", \"https://example.com/mcp\"] }\n\n\
    A gateway (`linetender serve`) on its Unix socket; behind another colon, one of its servers:\n  \
    { \"command\": \"linetender\", \"args\": [\"run\", \"unix:/run/user/1000/linetender/gateway.sock:/mcp/git\"] }\n\n", policy::EXAMPLES].concat())]
pub(crate) struct Run {
    /// Server name in errors, log, status and journal [default: derived from the command or URL]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) log: LogFlags,

    /// HTTP header for every request to a URL; repeatable. `$NAME` and `Bearer $NAME` read the environment variable,
    /// which keeps secrets out of the process list; `${file:PATH}` in a value stands for what the file holds, read before each
    /// connection and when the server refuses the credentials
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,

    /// Transport of a URL: Streamable HTTP, HTTP+SSE (MCP 2024-11-05), or whichever of them the server speaks
    #[arg(long, value_name = "TRANSPORT", value_enum, default_value_t)]
    pub(crate) transport: Transport,

    /// Wait for the server before answering initialize, instead of answering from the cache of its last run
    #[arg(long)]
    pub(crate) no_memory: bool,

    /// Report a failed tool call as a tool result with isError (which models read) or as a JSON-RPC error
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) tool_errors: ToolErrors,

    /// Where the server's stderr goes: to linetender's stderr, into the log, or nowhere. Errors quote its last lines in any case
    #[arg(long, value_name = "WHERE", value_enum, default_value_t)]
    pub(crate) stderr: Stderr,

    /// Run the server once for all agents of this user that start it with the same command, folder, settings and variables. The
    /// server gets the basic variables (PATH, HOME, LANG and others) and those named by --env, not the whole environment
    #[arg(long)]
    pub(crate) share: bool,

    /// With --share: a variable that the server gets as well; repeatable
    #[arg(long, value_name = "NAME", requires = "share")]
    pub(crate) env: Vec<String>,

    /// With --share: close a server when nobody has been on it for this long; for drills
    #[arg(long, hide = true, value_name = "TIME", value_parser = linetender_gateway::units::time, requires = "share")]
    pub(crate) linger: Option<std::time::Duration>,

    /// Do not write to the journal
    #[arg(long)]
    pub(crate) no_journal: bool,

    /// Rotate the journal at this size; for tests
    #[arg(long, hide = true, value_name = "SIZE", value_parser = linetender_gateway::units::size)]
    pub(crate) journal_size: Option<u32>,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    /// Server command with its arguments, server URL (`$NAME` reads an environment variable), or `unix:` and the path of a
    /// socket. Everything after it belongs to the server. Put `--` before it if it starts with a dash
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Hold the servers of `linetender run --share`, for all agents of this user. `run` starts it by itself.
///
/// It ends when nobody has used it for a while. SIGTERM makes it hand its servers over to the next one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example (`linetender run --share` does this where no keeper runs):\n  \
    linetender keeper /run/user/1000/linetender\n\n\
    Exit codes:\n  \
    0  it runs, or another one does\n  \
    1  it cannot: the folder belongs to somebody else, or there is no process or descriptor left")]
pub(crate) struct Keeper {
    /// Folder of its socket and its lock
    pub(crate) folder: PathBuf,

    /// Close a server, and end, when nobody has used it for this long
    #[arg(long, value_name = "TIME", value_parser = linetender_gateway::units::time, default_value = "60s")]
    pub(crate) linger: std::time::Duration,

    /// It is nobody's child already
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// The transport of a URL.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Transport {
    #[default]
    Auto,
    Http,
    Sse,
}

impl From<Transport> for linetender::HttpTransport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Auto => Self::Auto,
            Transport::Http => Self::Streamable,
            Transport::Sse => Self::Sse,
        }
    }
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

/// Gateway: serve many MCP servers to many agents at one URL, with supervision and config reload.
///
/// Runs one process per server instead of one per agent. Agents connect to `/mcp` for all servers (tools are named
/// `server__tool`) or to `/mcp/NAME` for one server.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example, linetender.toml:\n  \
    [servers.everything]\n  \
    command = \"npx\"\n  \
    args = [\"-y\", \"@modelcontextprotocol/server-everything\"]\n\n\
    Start the gateway, and point an agent at its URL:\n  \
    linetender serve --config linetender.toml\n  \
    { \"mcpServers\": { \"all\": { \"type\": \"http\", \"url\": \"http://127.0.0.1:7331/mcp\" } } }\n\n\
    Validate a config without serving it:\n  \
    linetender serve --check --config linetender.toml\n\n\
    Completion and checks in an editor (the file's first line is then `#:schema linetender.schema.json`):\n  \
    linetender serve --schema > linetender.schema.json\n\n\
    Exit codes:\n  \
    0  stopped by a signal, or what was asked for was printed\n  \
    1  it cannot serve: stderr says why\n  \
    2  the command line is wrong")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Serve {
    /// Config file: linetender's TOML, or an agent's `mcpServers` JSON. Reloaded when it changes and on SIGHUP [default:
    /// `linetender.toml` in the working directory, else in `$XDG_CONFIG_HOME/linetender` (`~/.config/linetender`)]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Validate the config file, print what it contains or its first error, and exit
    #[arg(long)]
    pub(crate) check: bool,

    /// Print the JSON schema of the config file, for editors, and exit
    #[arg(long)]
    pub(crate) schema: bool,

    /// Listen on this address and port instead of the one in the config file; `off`: on the Unix socket alone
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<linetender_gateway::config::Listen>,

    /// Admit everybody who can reach the address, without authentication (`insecure = true` in the config file)
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) insecure: bool,

    /// Do not write to the journal
    #[arg(long)]
    pub(crate) no_journal: bool,

    /// Serve a single agent on stdin and stdout instead of HTTP
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Run as a Windows service, for the service manager. What goes wrong is in the log
    #[cfg(windows)]
    #[arg(long, conflicts_with = "stdio", requires = "file", requires = "config")]
    pub(crate) service: bool,

    #[command(flatten)]
    pub(crate) log: LogFlags,
}

/// `Name: value`, `Name: $VARIABLE`, or `Name: Scheme $VARIABLE`. `${file:PATH}` stays as it is: files are read when they are
/// needed.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or("expected NAME: VALUE, such as 'Authorization: Bearer $TOKEN'")?;
    let value = value.trim();
    if value.contains(FILE) {
        return Ok((name.trim().to_owned(), value.to_owned()));
    }
    let value = match (value.strip_prefix('$'), value.split_once(" $")) {
        (Some(variable), _) => variable_of(variable)?,
        (None, Some((scheme, variable))) if !scheme.contains(' ') => {
            format!("{scheme} {}", variable_of(variable)?)
        }
        (None, _) => value.to_owned(),
    };
    if value.contains(FILE) {
        return Err(format!("the variable for the header {} contains {FILE}", name.trim()));
    }
    Ok((name.trim().to_owned(), value))
}

/// An address may hold a key, and then be in a variable.
pub(crate) fn address(word: &str) -> Result<String, String> {
    let word = word.strip_prefix('$').map_or_else(|| Ok(word.to_owned()), variable_of)?;
    let Some((scheme, rest)) = word.split_once("://") else { return Ok(word) };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" if rest.starts_with(['/', '?', '#']) || rest.is_empty() => {
            Err(format!("no host in the URL {word}"))
        }
        scheme @ ("http" | "https") => Ok(format!("{scheme}://{rest}")),
        _ => Ok(word),
    }
}

#[expect(clippy::disallowed_methods, reason = "the user named this variable on the command line")]
pub(crate) fn variable_of(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("environment variable {name} is not set"))
}
