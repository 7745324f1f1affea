//! What stands behind the gateways: twelve servers that are processes, each with a memory of its own, and twelve at an address.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use linetender_badserver::webserver::{Config, Manners, Speaks, WebServer};
use linetender_badserver::{AS_SERVER, Book};

use super::net::Place;

/// The variable by which every process of a server is found. Its value is the server's name.
pub(super) const MARK: &str = "LINETENDER_FLEET_DRILL";

/// How many there are of each kind.
const EACH: usize = 12;

/// How long a server takes to start, besides what the machine takes.
const STARTS_IN: &str = "200";

/// Calls end soon enough for a drill to see it; no call may outlive an agent's patience.
const POLICY: &str = "policy.call = { limit = 10000, cap = 15000, hang_after = 12000 }\n";

/// A server as agents and the judge know it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    /// Whether it is a process, of which there may be one in the fleet.
    pub(super) stateful: bool,
    /// What it really ran.
    pub(super) book: Book,
    /// How a config file says to reach it.
    reach: String,
}

#[cfg(test)]
impl Server {
    /// One that nobody reaches.
    pub(super) fn new(name: &str, stateful: bool, book: Book) -> Self {
        Self { name: name.to_owned(), stateful, book, reach: String::new() }
    }
}

/// All of them. Web servers are in this process, at the hub.
pub(super) struct House {
    pub(super) servers: Vec<Server>,
    _webs: Vec<WebServer>,
}

impl House {
    /// # Errors
    /// If a web server has no place.
    pub(super) fn build(linetender: &Path, folder: &Path) -> io::Result<Self> {
        let eras = ["both", "legacy", "modern"].into_iter().cycle();
        let mut servers = Vec::new();
        for (number, era) in eras.take(EACH).enumerate() {
            let name = format!("stateful-{number}");
            let book = book(folder, &name);
            let args: Vec<_> = [&["--era", era], &server_flags()[..], &["--book"]].concat();
            let args: Vec<_> = args.iter().map(|word| format!("'{word}'")).collect();
            let reach = format!(
                "command = '{}'\nargs = ['{AS_SERVER}', {}, '{}']\nenv = {{ {MARK} = '{name}' }}\n",
                linetender.display(),
                args.join(", "),
                book.path().display()
            );
            servers.push(Server { name, stateful: true, book, reach });
        }
        let mut webs = Vec::new();
        for (number, speaks) in
            [Speaks::Both, Speaks::Legacy, Speaks::Modern].into_iter().cycle().take(EACH).enumerate()
        {
            let name = format!("stateless-{number}");
            let book = book(folder, &name);
            let manners = Manners { speaks, ..Manners::default() };
            let place = Some(Place::Hub.ip());
            let web = WebServer::start(Config {
                host: place,
                book: Some(book.path().to_owned()),
                manners,
                ..Config::default()
            })?;
            let reach = format!("url = '{}'\n", web.url());
            webs.push(web);
            servers.push(Server { name, stateful: false, book, reach });
        }
        Ok(Self { servers, _webs: webs })
    }

    /// What all gateways' config files have in common.
    pub(super) fn config(&self) -> String {
        self.servers.iter().fold(String::new(), |mut text, Server { name, reach, .. }| {
            let _ = write!(text, "\n[servers.{name}]\n{reach}{POLICY}");
            text
        })
    }
}

/// What each stateful server is started with besides its era and its book.
pub(super) fn server_flags() -> [&'static str; 2] {
    ["--start-delay-ms", STARTS_IN]
}

fn book(folder: &Path, name: &str) -> Book {
    let path: PathBuf = folder.join(format!("{name}.book"));
    Book::at(path)
}
