//! What the gateway is told, from text to data.
//!
//! A file is read into a tree that knows where each value stands, whichever language it is written in; variables are put
//! into its strings; times and sizes become numbers; an unknown key is an error (in an agent's file, a warning); and the rest becomes
//! servers and settings. So every complaint points at its place in the file, and after this nobody reads a file or the environment again.

mod access;
mod address;
mod admin;
mod agents;
mod audit;
mod auth;
mod build;
mod expand;
mod file;
mod filter;
mod fleet;
mod foreign;
mod listen;
mod mismatch;
mod named;
mod problem;
mod schema;
#[cfg(test)]
mod tests;
mod tls;
mod tools;
mod tree;
mod understood;
mod units;
mod unknown;

pub use access::{Access, Share, Whom};
pub use admin::{Admin, AdminToken};
pub use agents::{AgentAuth, Jwt};
pub use audit::{AuditArguments, AuditFile, AuditOnError, AuditSync};
pub use auth::{Algorithm, Auth, Grant, OAuth};
pub use build::Entry;
pub use file::{Gateway as Settings, Scope};
pub use filter::Filter;
pub use fleet::{Fleet, Placed};
pub use listen::{Listen, LocalUser, Socket};
pub use mismatch::Mismatch;
pub use problem::Problem;
pub use schema::schema;
pub use tls::TlsFile;
pub(crate) use tls::TlsFiles;
pub use tools::Tools;

use std::time::Duration;

use problem::Text;
use tree::Style;

/// What some editors write before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A parsed config file.
#[derive(Debug)]
pub struct Config {
    /// Settings of the gateway.
    pub gateway: Settings,
    /// Servers in file order.
    pub servers: Vec<Entry>,
    /// Warnings: likely misspelt keys in an agent's file.
    pub warnings: Vec<Problem>,
}

impl Config {
    /// How long outcomes of durable calls are to be kept, of the server that wants them longest; nothing, if none keeps any.
    pub fn durable_kept(&self) -> Option<Duration> {
        self.servers.iter().filter_map(|entry| entry.durable).max()
    }
}

/// Parses a config: linetender's TOML or an agent's `mcpServers` JSON, detected from the text.
/// `variable` is asked for what the file names as `${NAME}`.
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn load(
    name: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Box<Problem>> {
    load_beside(None, name, text, variable)
}

/// Parses a config for a reload: servers must also be valid with the `[gateway]` settings in force.
/// What the file says of them takes effect at the next start ([`Settings::differing`] says which).
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn load_again(
    in_force: &Settings,
    name: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Box<Problem>> {
    load_beside(Some(in_force), name, text, variable)
}

fn load_beside(
    in_force: Option<&Settings>,
    name: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Box<Problem>> {
    // It is no part of the text, and nobody who looks for a place counts it.
    let source = Text::new(name, text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text));
    let (mut tree, style) = tree::parse(&source)?;
    let mut warnings = unknown::take_out(&mut tree, style, &source)?;
    if style == Style::Agents {
        warnings.extend(named::leave_to_others(&mut tree, &source));
    }
    expand::expand(&mut tree, variable, &source)?;
    units::read(&mut tree, &source)?;
    let (gateway, servers) = build::build(&tree, in_force, &source)?;
    Ok(Config { gateway, servers, warnings })
}
