//! The commands about the tokens of agents.

use std::path::PathBuf;
use std::time::Duration;

/// Make, list and remove tokens with which agents use a gateway
///
/// The file holds a hash of each token, and the gateway reads it again when it changes. To use it:
///
///   [gateway.auth]
///   tokens = "/home/me/.config/linetender/tokens.toml"
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    linetender token add ci --group deploy --expires 90d   make a token, and print it once\n  \
    linetender token list                                  whose tokens there are, until when\n  \
    linetender token remove ci                             the gateway refuses it from now on"
)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    Add(AddToken),
    List(ListTokens),
    Remove(RemoveToken),
}

/// Make a token, and print it on stdout. It cannot be shown again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender token add ci\n  \
    linetender token add ci --group deploy --group read --expires 90d\n  \
    linetender token add ci | gh secret set LINETENDER_TOKEN\n\n\
    An agent sends it as a header: Authorization: Bearer lt_…\n\n\
    Exit codes:\n  \
    0  success\n  \
    1  failure; stderr says why\n  \
    2  the command line is wrong")]
pub(crate) struct AddToken {
    /// Name of whoever uses the token, in rules, log and journal
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Group of whoever uses the token; repeatable
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Vec<String>,

    /// How long the token is valid, such as 12h or 90d [default: until it is removed]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) expires: Option<Duration>,

    #[command(flatten)]
    pub(crate) at: TokenPlace,
}

/// List the tokens: name, groups, and until when
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender token list\n  \
    linetender token list --json | jq -r '.tokens[] | select(.state == \"expired\") | .name'\n\n\
    Exit codes:\n  \
    0  success\n  \
    1  failure; stderr says why\n  \
    2  the command line is wrong")]
pub(crate) struct ListTokens {
    /// Print a JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: TokenPlace,
}

/// Remove a token: gateways that use the file refuse it within a second
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linetender token remove ci\n\n\
    Exit codes:\n  \
    0  success\n  \
    1  failure; stderr says why\n  \
    2  the command line is wrong")]
pub(crate) struct RemoveToken {
    /// Name of the token
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) at: TokenPlace,
}

/// Where the tokens are.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenPlace {
    /// File of the tokens [default: `tokens.toml` in `$XDG_CONFIG_HOME/linetender` (`~/.config/linetender`)]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

fn lifetime(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_secs(1) => Ok(time),
        Ok(_) => Err("must be at least 1s".to_owned()),
        Err(error) => Err(format!("expected a duration such as 12h or 90d ({error})")),
    }
}
