//! The commands about logins.

use std::path::PathBuf;

/// Log in to a server that signs people in (OAuth): opens a browser, and stores the login for every linetender process of this user
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender login github                                a server of the gateway's config file\n  \
    linetender login https://mcp.example.com/mcp           a server of `linetender run`\n  \
    linetender login --paste https://mcp.example.com/mcp   on a machine without a browser\n\n\
    Servers that wait for the login connect within a second. `linetender auth` lists the logins, `linetender logout` ends one.\n\n\
    Exit codes:\n  \
    0  success\n  \
    1  failure; stderr says why\n  \
    2  the command line is wrong")]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) of: Server,

    /// Print the address to visit, and read the address that the browser is sent back to from stdin
    #[arg(long)]
    pub(crate) paste: bool,

    /// Scope to ask for, instead of those that the server names; repeatable
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,

    /// OAuth client that was registered by hand with the authorization server
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Environment variable that holds the secret of that client
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    pub(crate) client_secret_env: Option<String>,

    /// Authorization server at which that client is registered; its secret is sent to no other
    #[arg(long, value_name = "URL", requires = "client_id")]
    pub(crate) issuer: Option<String>,

    /// https URL of a client ID metadata document
    #[arg(long, value_name = "URL")]
    pub(crate) client_metadata_url: Option<String>,

    /// Register linetender with the authorization server again, if that has forgotten it
    #[arg(long)]
    pub(crate) register: bool,
}

/// Log out of a server: revokes the login at the authorization server, and deletes it for every linetender process of this user
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender logout github\n  \
    linetender logout https://mcp.example.com/mcp\n\n\
    Exit codes:\n  \
    0  success\n  \
    1  failure; stderr says why\n  \
    2  the command line is wrong")]
pub(crate) struct Logout {
    #[command(flatten)]
    pub(crate) of: Server,
}

/// List the logins of this user: server, authorization server, scopes, and until when
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender auth\n  \
    linetender auth --json | jq '.logins[] | select(.state == \"ended\")'\n\n\
    States:\n  \
    renews        renewed without a person when the token expires\n  \
    renewing      a process has asked for a new token, and has not stored the answer yet\n  \
    ends          ends when the token expires: log in again then\n  \
    ended         ended: log in again\n  \
    wants-scopes  the server wants more scopes: log in again to grant them\n\n\
    Exit codes:\n  \
    0  success\n  \
    1  failure; stderr says why\n  \
    2  the command line is wrong")]
pub(crate) struct Auth {
    /// Print a JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which server is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// Server name in the gateway's config file, or server URL (`$NAME` reads an environment variable)
    #[arg(value_name = "SERVER|URL")]
    pub(crate) server: String,

    /// Config file in which the server is [default: as for `linetender serve`]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
