//! Servers that turned out to need an agent of their own, remembered from one keeper to the next.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use linetender::Server;
use linetender_holder::trusted;
use serde::{Deserialize, Serialize};

/// No more are remembered; nobody has so many servers.
const MOST: usize = 1000;

/// A line that is longer is none of ours.
const LONGEST: usize = 64 * 1024;

/// A command in a folder, and why it is not shared. Not its environment: that has secrets.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Entry {
    command: Vec<String>,
    dir: Option<PathBuf>,
    why: String,
}

/// What is remembered, and where.
#[derive(Debug)]
pub(super) struct Private {
    path: Option<PathBuf>,
    known: Mutex<Vec<Entry>>,
}

impl Private {
    /// Reads what is remembered; nothing, if that cannot be read.
    pub(super) fn read(path: Option<PathBuf>) -> Arc<Self> {
        let file = path.as_ref().and_then(|path| trusted::read(path).ok());
        let lines = file.into_iter().flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
        let entries =
            lines.filter(|line| line.len() <= LONGEST).filter_map(|line| serde_json::from_str(&line).ok());
        let known = Mutex::new(entries.take(MOST).collect());
        Arc::new(Self { path, known })
    }

    /// Why a server is not shared, if it is not.
    pub(super) fn why(&self, server: &Server) -> Option<String> {
        let entry = entry(server, String::new())?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |other: &&Entry| other.command == entry.command && other.dir == entry.dir;
        known.iter().find(same).map(|known| known.why.clone())
    }

    /// Remembers one more.
    pub(super) fn learn(&self, server: &Server, why: &str) {
        let Some(entry) = entry(server, why.to_owned()) else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST || known.contains(&entry) {
            return;
        }
        let line = serde_json::to_string(&entry).unwrap_or_default();
        known.push(entry);
        drop(known);
        let written = self.path.as_ref().map(|path| {
            path.parent().map_or(Ok(()), trusted::folder)?;
            trusted::append(path)?.write_all(format!("{line}\n").as_bytes())
        });
        if let Some(Err(error)) = written {
            tracing::warn!(%error, "cannot remember that this server is not shared");
        }
    }
}

fn entry(server: &Server, why: String) -> Option<Entry> {
    let (argv, dir) = server.command()?;
    let command = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Some(Entry { command, dir: dir.map(PathBuf::from), why })
}
