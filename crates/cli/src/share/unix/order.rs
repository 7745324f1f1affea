//! What a shim asks of the keeper.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Parser as _;
use linetender::{Server, Stderr};
use serde::{Deserialize, Serialize};

use crate::args;
use crate::run;

/// The first line of a connection.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ask {
    /// Is anybody there?
    Alive,
    /// A seat on the line to a server.
    Line(Box<Order>),
}

/// Which server is wanted: what was typed, where, and the variables that it is to have. Nothing else of the shim's surroundings
/// reaches the server, so nothing else keeps two of them apart.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Order {
    /// Which linetender asks.
    pub(super) version: String,
    /// The words after `linetender`.
    words: Vec<String>,
    dir: PathBuf,
    env: BTreeMap<String, String>,
    /// How the agent introduces itself: the params of `initialize`.
    #[serde(default)]
    pub(super) hello: Option<String>,
}

impl Order {
    /// The order for what this process was started with.
    ///
    /// # Errors
    /// If it cannot be told to another process.
    pub(super) fn of(server: &Server) -> Result<Self, String> {
        let text = |word: std::ffi::OsString| {
            word.into_string().map_err(|_| "the command line or the environment is not UTF-8 text".to_owned())
        };
        let words = std::env::args_os().skip(1).map(text).collect::<Result<_, _>>()?;
        let program = server.to_stdio();
        let variables = program.as_ref().and_then(|program| program.own_env()).unwrap_or_default();
        let env = variables
            .iter()
            .map(|(name, value)| Ok((text(name.clone())?, text(value.clone())?)))
            .collect::<Result<_, String>>()?;
        let dir =
            std::env::current_dir().map_err(|error| format!("cannot tell the working directory: {error}"))?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), words, dir, env, hello: None })
    }

    /// The server that is meant, as the keeper runs it.
    ///
    /// # Errors
    /// If this linetender does not understand the words of the other.
    pub(super) fn server(&self) -> Result<Server, String> {
        let words = std::iter::once("linetender").chain(self.words.iter().map(String::as_str));
        let parsed = args::Args::try_parse_from(words).map_err(|error| error.kind().to_string())?;
        let args::Command::Run(run) = parsed.command else { return Err("it is no `run`".to_owned()) };
        let dir = run.policy.dir.as_ref().map_or_else(|| self.dir.clone(), |dir| self.dir.join(dir));
        let variables = self.env.iter().map(|(name, value)| (name.into(), value.into()));
        let program = run::command(&run).only_env(variables).dir(dir).stderr(Stderr::Off);
        run.policy.apply(Server::from(program).tool_errors(run.tool_errors.into()))
    }
}

/// Whether one version comes after another: an older keeper makes room for a newer shim's.
pub(super) fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let plain = version.split(['-', '+']).next().unwrap_or_default();
        plain.split('.').map(|number| number.parse().unwrap_or_default()).collect()
    };
    numbers(version) > numbers(than)
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_newer("0.10.0", "0.9.9") && is_newer("1.0.0", "0.99.0") && is_newer("0.1.1", "0.1.0"));
        assert!(!is_newer("0.1.0", "0.1.0") && !is_newer("0.1.0", "0.1.1") && !is_newer("odd", "0.1.0"));
    }
}
