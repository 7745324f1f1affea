//! The commands that only look.

/// What the words of `status` and `journal` mean.
const STATES: &str = "\
States:
  up          serving
  idle        not started; starts on the next call
  dialing     starting or connecting
  suspect     up, with a health check in progress
  draining    finishing pending calls before a shutdown
  ending      shutting down, or cleaning up after a failure
  waiting     backing off before the next restart
  parked      failed too often, or cannot start as configured; retried at long intervals and by calls.
              Or parked by an operator; not retried until woken (NEXT TRY says which)
  needs-auth  the server requires credentials; the last error says what to type (`linetender login …`)
  closed      stopped for good

RESTARTS (in the journal: restarts left) counts down with each failure and recovers while the server answers calls;
with 0 left, the next failure parks the server.

Exit codes:
  0  success
  1  failure; stderr says why
  2  the command line is wrong";

/// List running linetender processes of this user: each server's state, next retry and last error
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender status\n  \
    linetender status --watch\n  \
    linetender status --json | jq '.holders[].report.lines[]? | select(.state != \"up\")'\n\n", STATES].concat())]
pub(crate) struct Status {
    /// Print a JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print it again every second, until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// Show the fleet: gateways that share their servers, and which gateway runs which server
///
/// Asks this user's gateways (`linetender serve` with `[gateway.fleet]`). Each says what it sees: after a partition they may differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender fleet\n  \
    linetender fleet --json | jq -r '.fleets[].servers[] | select(.runs_at == null).server'\n\n\
Exit codes:
  0  success
  1  no gateway of a fleet is running, or failure; stderr says why
  2  the command line is wrong")]
pub(crate) struct FleetArgs {
    /// Print a JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watch every server live: state over time, calls by verdict, latency, restarts left and memory
///
/// Shows this user's linetender processes, each second. Enter opens one server: its last failures with stderr, calls in
/// progress, the slowest calls. `r`, `p` and `w` restart, park and wake it; `?` lists all keys. Needs a terminal of 60 × 15.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender top\n  \
    NO_COLOR=1 linetender top\n\n\
Exit codes:
  0    left with q or Ctrl-C
  1    no terminal: for scripts there is `linetender status --json`
  2    wrong arguments
  128  and the signal's number, if a signal ended it\n\n", STATES].concat())]
pub(crate) struct Top {}

/// Print the journal: starts, failures and restarts of this user's servers
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender journal\n  \
    linetender journal --server github --last 100\n  \
    linetender journal --follow                              what happens from now on\n  \
    linetender journal --json | jq 'select(.state == \"parked\")'\n\n", STATES].concat())]
pub(crate) struct Journal {
    /// Show only this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Show the last N entries
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = at_least_one)]
    pub(crate) last: usize,

    /// Print the raw entries, one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    /// Keep printing entries as they are written, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Print what a server wrote to stderr before it ended, from the journal
///
/// The journal keeps the last lines of stderr of every process that ended by itself or was ended for a failure. What a running
/// server writes goes where `stderr` in its configuration says.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linetender logs github
  linetender logs github --last 1             its last end
  linetender logs github --follow             and those that come
  linetender logs github --json | jq -r .line

Exit codes:
  0  success, also if there is nothing to show
  1  the journal cannot be read
  2  the command line is wrong")]
pub(crate) struct Logs {
    /// Name of the server
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,

    /// Show the last N ends
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub(crate) last: usize,

    /// Keep printing as servers end, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Print one JSON object per line of stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell why a server failed: what was seen, what it means, what happens next, and what you can do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender why                the server that needs somebody most\n  \
    linetender why github\n  \
    linetender why github --last 20\n  \
    linetender why github --json | jq '.story.deaths[0].cause'\n\n\
    Exit codes:\n  \
    0  the server is in service, or no linetender process runs it\n  \
    1  it is down: being restarted, parked, or waiting for credentials\n  \
    2  no such server, or the journal cannot be read")]
pub(crate) struct Why {
    /// Server name, as in `linetender status` [default: the one that is worst off]
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,

    /// Tell of the last N failures; repetitions of one count as one
    #[arg(long, value_name = "N", default_value_t = linetender_holder::story::DEATHS, value_parser = at_least_one)]
    pub(crate) last: usize,

    /// Print a JSON document instead of sentences
    #[arg(long)]
    pub(crate) json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a whole number".to_owned()),
    }
}
