//! What can be seen beside what agents hear: which process served whom, and where tokens went.

use std::collections::HashMap;
use std::path::Path;

use linetender::Era;
use linetender_badserver::webserver::WebServer;

use super::super::agent::World;
use super::super::house::{House, Kind, OWN_KEY, Scope, Server};
use super::super::serve::Serve;
use super::intruder::{INTRUDES, era_of};
use super::{Principals, marked};

/// Of this many requests a web server remembers the last.
const REMEMBERED: u64 = 1000;

/// Looks again and again at what servers were given.
#[derive(Default)]
pub(in super::super) struct Looks {
    /// How many requests each web server had been sent.
    before: HashMap<usize, u64>,
}

impl Looks {
    /// No server is given a token of an agent: in a header, its environment or its arguments.
    pub(in super::super) fn look(&mut self, all: &Principals, world: &World, house: &House, serve: &Serve) {
        for server in world.servers.iter() {
            let Kind::Web(number) = server.kind else { continue };
            let new = self.fresh(number, &house.webs[number]);
            if new > REMEMBERED {
                world.notes.finds(format!("{}: {new} requests were not looked at", server.name));
            }
            let own = if server.scope == Scope::Identity { Some(OWN_KEY) } else { None };
            let seen = house.webs[number].seen();
            let newest = seen.len().saturating_sub(usize::try_from(new).unwrap_or(usize::MAX));
            for request in &seen[newest..] {
                let shown = request.header("authorization");
                let texts = request.headers.values().map(|value| String::from_utf8_lossy(value.as_bytes()));
                let right = shown == own && !texts.into_iter().any(|text| all.has_secret(&text));
                all.tally().looked.entry("requests at web servers").or_default().add(right);
                if !right {
                    world.notes.finds(format!("{} was shown {:?}", server.name, request.headers));
                }
            }
        }
        for told in serve.told() {
            let right = !all.has_secret(&told);
            all.tally().looked.entry("environments of servers").or_default().add(right);
            if !right {
                world.notes.finds("a server found a token in its environment".to_owned());
            }
        }
    }

    /// How many requests there were since the last look.
    fn fresh(&mut self, number: usize, web: &WebServer) -> u64 {
        let counters = web.counters();
        let now = counters.posts + counters.gets + counters.deletes;
        now - self.before.insert(number, now).unwrap_or(0)
    }
}

/// Everything that was written: no token stands anywhere, no server ran an intruder's call, and none that is somebody's own served
/// another.
pub(in super::super) fn at_the_end(all: &Principals, world: &World, folder: &Path) {
    for file in files(folder) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
        let right = !all.has_secret(&text);
        all.tally().looked.entry("files that were written").or_default().add(right);
        if !right {
            world.notes.finds(format!("a token stands in {}", file.display()));
        }
    }
    for server in world.servers.iter() {
        let Some(book) = &server.book else { continue };
        let text = std::fs::read_to_string(book.path()).unwrap_or_default();
        if text.contains(INTRUDES) {
            world.notes.finds(format!("{} was sent an intruder's call", server.name));
        }
        if server.is_process() && server.scope != Scope::Shared {
            processes(all, world, server, &text);
        }
    }
}

/// Whom each process of a server that is somebody's own served.
fn processes(all: &Principals, world: &World, server: &Server, book: &str) {
    let mut served: HashMap<&str, Vec<&str>> = HashMap::new();
    let judge = |calls: &[&str]| {
        // Requests without a session use the process that sessions do not have.
        let own =
            server.scope == Scope::Identity || calls.iter().any(|nonce| era_of(nonce) == Some(Era::Legacy));
        let mut whose = calls.iter().flat_map(|nonce| marked(nonce));
        let Some(first) = whose.next().filter(|_| own) else { return };
        let right = whose.all(|number| number == first);
        all.tally().looked.entry("processes of one principal").or_default().add(right);
        if !right {
            world.notes.finds(format!("a process of {} served several: {calls:?}", server.name));
        }
    };
    for line in book.lines() {
        let Some((what, pid)) = line.rsplit_once(' ') else { continue };
        match what.split_once(' ') {
            // A number of a process is used again.
            Some(("start", _)) => drop(served.insert(pid, Vec::new()).map(|calls| judge(&calls))),
            Some(("read", nonce)) => served.entry(pid).or_default().push(nonce),
            _ => {}
        }
    }
    for calls in served.values() {
        judge(calls);
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files(&entry.path()),
        Ok(kind) if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    };
    entries.flat_map(below).collect()
}
