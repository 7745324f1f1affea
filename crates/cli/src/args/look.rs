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
with 0 left, the next failure parks the server.";

/// List running linetender processes of this user: each server's state, next retry and last error
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender status\n  \
    watch -n 2 linetender status\n  \
    linetender status --json | jq '.holders[].report.lines[]? | select(.state != \"up\")'\n\n", STATES].concat())]
pub(crate) struct Status {
    /// Print a JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the journal: starts, failures and restarts of this user's servers
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender journal\n  \
    linetender journal --server github --last 100\n  \
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
