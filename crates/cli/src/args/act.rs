//! The commands that ask running linetender processes, and tell them what to do.

/// What they exit with.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  not done: the reason is printed
  2  wrong arguments";

/// Which server of which process.
#[derive(Debug, clap::Args)]
pub(crate) struct OfServer {
    /// Server name, as in `linetender status`
    #[arg(value_name = "SERVER", allow_hyphen_values = true)]
    pub(crate) server: String,

    /// Only in this linetender process (the column LINETENDER of `linetender status`)
    #[arg(long, value_name = "PID", conflicts_with = "all")]
    pub(crate) pid: Option<u32>,

    /// In every linetender process that has a server of this name
    #[arg(long)]
    pub(crate) all: bool,

    /// Print a JSON document instead of words
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reconnect to a server now: end its process or session, and start a new one
///
/// Calls in progress on the old connection end with an error that says whether they may have been executed.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender redial github\n  \
    linetender redial github --all\n\n", EXIT_CODES].concat())]
pub(crate) struct Redial {
    #[command(flatten)]
    pub(crate) of: OfServer,
}

/// Take a server out of service: stop it once its calls have ended, and refuse calls until it is woken
#[derive(Debug, clap::Args)]
#[command(after_help = ["Example:\n  \
    linetender park github\n\n", EXIT_CODES].concat())]
pub(crate) struct Park {
    #[command(flatten)]
    pub(crate) of: OfServer,
}

/// Bring a parked server back into service now, whether a person parked it or its failures did
#[derive(Debug, clap::Args)]
#[command(after_help = ["Example:\n  \
    linetender wake github\n\n", EXIT_CODES].concat())]
pub(crate) struct Wake {
    #[command(flatten)]
    pub(crate) of: OfServer,
}

/// Replace a server once its calls in progress have ended
#[derive(Debug, clap::Args)]
#[command(after_help = ["Example, after the server's program was updated:\n  \
    linetender drain github\n\n", EXIT_CODES].concat())]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) of: OfServer,
}

/// Tell a gateway to read its configuration again
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender reload\n  \
    linetender reload --pid 4242\n\n", EXIT_CODES].concat())]
pub(crate) struct Reload {
    /// Only this linetender process
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Print a JSON document instead of words
    #[arg(long)]
    pub(crate) json: bool,
}

/// Change the log level of running linetender processes
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender log-level debug --pid 4242\n  \
    linetender log-level info\n\n", EXIT_CODES].concat())]
pub(crate) struct LogLevel {
    /// error, warn, info, debug or trace
    #[arg(value_name = "LEVEL")]
    pub(crate) level: String,

    /// Only this linetender process
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Print a JSON document instead of words
    #[arg(long)]
    pub(crate) json: bool,
}

/// MCP server on stdin and stdout that tells an agent about its own servers: status, calls in progress, restart
///
/// Configure it like any other server of `linetender serve` (or run it with `linetender run`). It knows the linetender process
/// that started it, and no other.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Example, linetender.toml:\n  \
    [servers.linetender]\n  \
    command = \"linetender\"\n  \
    args = [\"inside\"]\n\n", EXIT_CODES].concat())]
pub(crate) struct Inside {
    /// Offer nothing that changes something
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Ask this linetender process instead of the one that started this
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
}

/// List calls in progress, or follow calls as they end, with the verdict on each
///
/// Verdicts: answered; tool error (the tool ran and failed); not executed (linetender counted it:
/// most often, it was not sent); refused (the server says that it did not execute it); unknown (may have been executed, and why
/// that is not known); cancelled by the caller.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender calls\n  \
    linetender calls -f\n  \
    linetender calls -f --server github --json | jq 'select(.verdict == \"unknown\")'\n\n", EXIT_CODES].concat())]
pub(crate) struct Calls {
    /// Print each call as it ends, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Only calls to this server
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) server: Option<String>,

    /// Print JSON: one document, or one object per line with -f
    #[arg(long)]
    pub(crate) json: bool,
}
