//! The servers of a configuration, for commands that start them for a moment.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linetender::{HttpTransport, Server};
use linetender_gateway::config::{self, Config, Entry};
use tokio::runtime::Runtime;

use crate::keys::KeyMaker;
use crate::run::{by_address, is_address};
use crate::serve::file;
use crate::{args, runtime};

/// What a shell is told of a command line or a configuration that cannot be used.
pub(crate) const MISUSED: u8 = 2;

/// A configuration and where it stands.
pub(crate) struct Configured {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
}

/// Reads the named file, or the one that `serve` would read. Its servers get their credentials from where `serve` gets them.
pub(crate) fn read(named: Option<&Path>) -> Result<Configured, String> {
    let path = file::path(named)?;
    let text = file::text(&path)?;
    let mut config = file::read(&path, &text, None).map_err(|problem| problem.report())?;
    KeyMaker::default().fit(&mut config, &path);
    Ok(Configured { path, config })
}

impl Configured {
    /// The servers of these names, or all if none is named.
    pub(crate) fn only(&mut self, names: &[String]) -> Result<(), String> {
        for name in names {
            if !self.config.servers.iter().any(|entry| entry.server.name() == name) {
                return Err(self.has_no(name));
            }
        }
        if !names.is_empty() {
            self.config.servers.retain(|entry| names.iter().any(|name| name == entry.server.name()));
        }
        Ok(())
    }

    fn has_no(&self, name: &str) -> String {
        let names: Vec<_> = self.config.servers.iter().map(|entry| entry.server.name()).collect();
        format!("{} has no server {name}; it has: {}", self.path.display(), names.join(", "))
    }
}

/// The server that was named: by an address, or by its name in a configuration.
pub(crate) fn entry(word: &str, from: &args::FromConfig) -> Result<Entry, String> {
    let address = args::address(word)?;
    if is_address(&address) {
        return alone(by_address(&address, None, &[], HttpTransport::Auto));
    }
    let mut configured = read(from.config.as_deref())?;
    configured.only(&[word.to_owned()])?;
    configured.config.servers.pop().ok_or_else(|| format!("no server {word}"))
}

/// A server that stands in no file, as an entry with the defaults of one.
pub(crate) fn alone(server: Server) -> Result<Entry, String> {
    // The defaults are those of the reader of files, so there is one place that has them.
    let defaults = config::load("defaults", "[servers.x]\ncommand = 'x'", &|_| None);
    let mut entry = defaults.map_err(|problem| problem.report())?.servers.remove(0);
    entry.server = server.deadline(entry.server.calls_end());
    Ok(entry)
}

/// The runtime of a command that starts servers for a moment.
pub(crate) fn runtime() -> io::Result<Runtime> {
    // A server that kills its reaper leaves its orphans to us.
    linetender::guard::adopt_orphans();
    linetender::raise_descriptor_limit();
    runtime::build(tokio::runtime::Builder::new_multi_thread().worker_threads(2))
}

/// Says why nothing can be done.
pub(crate) fn misused(why: &str) -> ExitCode {
    eprintln!("linetender: {}", linetender::visible::line(&linetender::hide_secrets(why)));
    ExitCode::from(MISUSED)
}
