//! What a server really did: a line when it starts, and one per call that it read or ran, with the call's nonce.

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A book on disk, shared by all generations of a server.
#[derive(Clone, Debug)]
pub struct Book(PathBuf);

/// The server's pen.
#[derive(Debug)]
pub(crate) struct Pen(Option<File>);

impl Book {
    /// The book at this path. It need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// How often each nonce was run.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn runs(&self) -> HashMap<String, u32> {
        let count = |by: Vec<i32>| u32::try_from(by.len()).unwrap_or(u32::MAX);
        self.runs_by().into_iter().map(|(nonce, by)| (nonce, count(by))).collect()
    }

    /// By which processes each nonce was run.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn runs_by(&self) -> HashMap<String, Vec<i32>> {
        let text = self.text();
        let mut runs: HashMap<String, Vec<i32>> = HashMap::new();
        for run in text.lines().filter_map(|line| line.strip_prefix("run ")) {
            if let Some((nonce, pid)) = run.rsplit_once(' ') {
                runs.entry(nonce.to_owned()).or_default().extend(pid.parse::<i32>());
            }
        }
        runs
    }

    /// The processes that wrote anything.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn writers(&self) -> BTreeSet<i32> {
        self.text().lines().filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
    }

    fn text(&self) -> String {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => panic!("cannot read {}: {error}", self.0.display()),
        }
    }
}

impl Pen {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        path.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose().map(Self)
    }

    /// One line, in one write: several processes may hold the book.
    pub(crate) fn write(&mut self, what: &str, nonce: &str) {
        if let Some(file) = &mut self.0 {
            let _ = file.write_all(format!("{what} {nonce} {}\n", std::process::id()).as_bytes());
        }
    }
}
