//! What a server really did: a line when it starts, and one per call that it read, ran or refused, with the call's nonce.

mod habits;

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use habits::{ContextRun, wall_clock};

/// A book on disk, shared by all generations of a server.
#[derive(Clone, Debug)]
pub struct Book(PathBuf);

/// One arrival of a call at its server, and what became of it there.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Attempt {
    /// How often the server ran it.
    pub runs: u32,
    /// The server's refusal, if it promised with it that it had not run the call: a word of `retry_on`, or `redirect`.
    pub refused: Option<String>,
}

/// A refusal that reads as if the session were lost. It is one if the session is, by the time the call comes again.
pub(crate) const LOOKS_LOST: &str = "looks-lost";

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

    /// How often each call came, the first time first.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn attempts(&self) -> HashMap<String, Vec<Attempt>> {
        let mut attempts: HashMap<String, Vec<Attempt>> = HashMap::new();
        // How often the server forgot its sessions, and how often it had when each call last came.
        let (mut forgot, mut came) = (0_u32, HashMap::new());
        for line in self.text().lines() {
            let mut words = line.split(' ').rev();
            let (Some(_pid), Some(nonce), what) = (words.next(), words.next(), words) else { continue };
            let mut what = what.collect::<Vec<_>>().into_iter().rev();
            let of = attempts.entry(nonce.to_owned()).or_default();
            match what.next() {
                Some("forgot") => forgot += 1,
                Some("read") => {
                    let since = came.insert(nonce.to_owned(), forgot);
                    if let Some(Attempt { refused, .. }) = of.last_mut()
                        && refused.as_deref() == Some(LOOKS_LOST)
                    {
                        *refused = (since < Some(forgot)).then(|| "session-lost".to_owned());
                    }
                    of.push(Attempt::default());
                }
                Some("run") => last(of).runs += 1,
                Some("refused") => last(of).refused = what.next().map(str::to_owned),
                _ => {}
            }
        }
        attempts.retain(|_, attempts| !attempts.is_empty());
        attempts
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

    /// The nonces of calls in the order in which the server's processes read them.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn arrivals(&self) -> Vec<String> {
        let text = self.text();
        let reads = text.lines().filter_map(|line| line.strip_prefix("read ")?.rsplit_once(' '));
        reads.map(|(nonce, _)| nonce.to_owned()).collect()
    }

    /// The processes that wrote anything.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn writers(&self) -> BTreeSet<i32> {
        self.text().lines().filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
    }

    /// Processes that wrote something after another one had started: two of them at once. First the older one, then its successor.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn overlaps(&self) -> BTreeSet<(i32, i32)> {
        let (text, mut last) = (self.text(), None);
        let mut overlaps = BTreeSet::new();
        for line in text.lines() {
            let Some(pid) = line.rsplit_once(' ').and_then(|(_, pid)| pid.parse().ok()) else { continue };
            match last {
                Some(started) if started != pid && !line.starts_with("start ") => {
                    overlaps.insert((pid, started));
                }
                _ => last = Some(pid),
            }
        }
        overlaps
    }

    fn text(&self) -> String {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => panic!("cannot read {}: {error}", self.0.display()),
        }
    }
}

/// The last attempt. A server that does not write down what it reads makes one by running it.
fn last(attempts: &mut Vec<Attempt>) -> &mut Attempt {
    if attempts.is_empty() {
        attempts.push(Attempt::default());
    }
    let last = attempts.len() - 1;
    &mut attempts[last]
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

#[cfg(test)]
mod tests {
    use super::{Attempt, Book};

    #[test]
    fn a_refusal_that_looks_like_a_lost_session_is_one_if_the_session_was_forgotten() {
        let attempts = |text: &str| {
            let name = format!("linetender-attempts-{}-{}", std::process::id(), text.len());
            let book = Book::at(std::env::temp_dir().join(name));
            std::fs::write(book.path(), text).unwrap();
            let attempts = book.attempts().remove("a").unwrap_or_default();
            std::fs::remove_file(book.path()).unwrap();
            attempts
        };
        let attempt = |runs, refused: Option<&str>| Attempt { runs, refused: refused.map(str::to_owned) };
        assert_eq!(attempts("start - 1\nread b 1\nrun b 1\n"), []);
        assert_eq!(attempts("run a 1\nrun a 1\n"), [attempt(2, None)], "nothing says when it was read");
        let lost = attempts("read a 1\nrun a 1\nrefused looks-lost a 1\nforgot - 1\nread a 1\nrun a 1\n");
        assert_eq!(lost, [attempt(1, Some("session-lost")), attempt(1, None)]);
        let lives =
            attempts("forgot - 1\nread a 1\nrun a 1\nrefused looks-lost a 1\nread a 1\nrefused auth a 1\n");
        assert_eq!(lives, [attempt(1, None), attempt(0, Some("auth"))]);
    }

    #[test]
    fn a_process_that_writes_after_its_successor_started_is_found() {
        let overlaps = |text: &str| {
            let name = format!("linetender-book-{}-{}", std::process::id(), text.len());
            let book = Book::at(std::env::temp_dir().join(name));
            std::fs::write(book.path(), text).unwrap();
            let overlaps: Vec<_> = book.overlaps().into_iter().collect();
            std::fs::remove_file(book.path()).unwrap();
            overlaps
        };
        assert_eq!(overlaps("start - 1\nrun a 1\nstart - 2\nrun b 2\n"), []);
        assert_eq!(overlaps("start - 1\nrun a 1\nstart - 2\nrun b 1\nrun c 2\n"), [(1, 2)]);
    }
}
