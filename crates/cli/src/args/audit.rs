//! The commands about the audit file.

use std::path::PathBuf;

/// Check the audit file of a gateway (`[gateway.audit]`)
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
    linetender audit verify                                  the file that the config names\n  \
    linetender audit verify --head                           compare its end with the journal too"
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditCommand {
    Verify(VerifyAudit),
}

/// Check that no line of the audit file was edited, moved or removed, and say where the first damage is
///
/// Reads the file and all files that rotation has put away, oldest first. A gateway may write to it meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender audit verify\n  \
    linetender audit verify --head\n  \
    linetender audit verify /var/lib/linetender/audit.jsonl --head --json | jq .bad\n\n\
    The chain of lines shows everything but its own end: whoever cuts off the last lines leaves a chain that is whole. Only \
    --head finds that, and an edited last line, and a file that was replaced: it compares with the hashes that the gateway \
    writes to the journal of its user, each minute and at its end. Run it as that user.\n\n\
    Exit codes:\n  \
    0  every line is as it was written\n  \
    1  damaged: edited, reordered, missing or foreign lines, a torn end, a cut tail, a replaced file\n  \
    2  cannot say: a file cannot be read, or --head found nothing in the journal to compare with")]
pub(crate) struct VerifyAudit {
    /// The audit file [default: `path` in `[gateway.audit]` of the config file]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Compare with the journal too: finds lines that were cut off at the end, and a replaced file
    #[arg(long)]
    pub(crate) head: bool,

    /// Config file that names the audit file [default: as for `linetender serve`]
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) config: Option<PathBuf>,

    /// Print a JSON document instead of sentences
    #[arg(long)]
    pub(crate) json: bool,
}
