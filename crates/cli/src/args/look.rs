//! The commands that only look.

/// Lists this user's running shims, and where their lines stand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender status\n  \
    linetender status --json | jq '.holders[].report.lines[]? | select(.state != \"up\")'")]
pub(crate) struct Status {
    /// Prints a JSON document instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints what happened to this user's lines.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender journal\n  \
    linetender journal --server github --last 100\n  \
    linetender journal --json | jq 'select(.state == \"parked\")'")]
pub(crate) struct Journal {
    /// Only of the server of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// So many entries, up to the newest.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = at_least_one)]
    pub(crate) last: usize,

    /// Prints the entries as they were written, one JSON document on each line.
    #[arg(long)]
    pub(crate) json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 entry has to be asked for".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("a whole number is needed".to_owned()),
    }
}
