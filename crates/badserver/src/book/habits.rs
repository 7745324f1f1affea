//! What a server with habits writes down besides its calls: contexts, strangers, its lock and its saves.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Book, Pen};

/// Execution of a call in a context: a process, or a session with an id.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContextRun {
    /// The call.
    pub nonce: String,
    /// The context in which it was executed.
    pub context: String,
    /// The name that `use` selected last in that context, or [`UNSELECTED`](Self::UNSELECTED).
    pub selected: String,
    /// The time of the execution, by [`wall_clock`].
    pub at: Duration,
}

impl ContextRun {
    /// The name in a context in which nothing was selected.
    pub const UNSELECTED: &str = "prod";
}

/// The time since 1970. The server and its judge are different processes of one machine, so their books share this clock.
#[expect(clippy::disallowed_methods, reason = "two processes have no other clock in common")]
pub fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Book {
    /// Every execution of a server that keeps a context, in the order of the book.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn context_runs(&self) -> Vec<ContextRun> {
        let run = |line: &str| {
            let words: Vec<_> = line.strip_prefix("in ")?.split(' ').collect();
            let [context, selected, micros, nonce, _pid] = words.as_slice() else { return None };
            Some(ContextRun {
                nonce: (*nonce).to_owned(),
                context: (*context).to_owned(),
                selected: (*selected).to_owned(),
                at: Duration::from_micros(micros.parse().ok()?),
            })
        };
        self.text().lines().filter_map(run).collect()
    }

    /// The processes that left the server's tree on purpose. The server itself declares them.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn strangers(&self) -> BTreeSet<i32> {
        self.processes("not-mine ")
    }

    /// The children that the server declares its own.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn workers(&self) -> BTreeSet<i32> {
        self.processes("mine ")
    }

    /// How many instances got the lock, and how many found it taken: two of them lived at once.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn locks(&self) -> (usize, usize) {
        (self.writers_of("locked ").len(), self.writers_of("two-at-once ").len())
    }

    /// The instances that saved their work to the end.
    ///
    /// # Panics
    /// If the book cannot be read.
    pub fn savers(&self) -> BTreeSet<i32> {
        self.writers_of("saved ").into_iter().collect()
    }

    fn processes(&self, what: &str) -> BTreeSet<i32> {
        let pid = |line: &str| line.strip_prefix(what)?.split(' ').next()?.parse().ok();
        self.text().lines().filter_map(pid).collect()
    }

    fn writers_of(&self, what: &str) -> Vec<i32> {
        let pid = |line: &str| line.strip_prefix(what)?.rsplit(' ').next()?.parse().ok();
        self.text().lines().filter_map(pid).collect()
    }
}

impl Pen {
    /// Writes down an execution in a context. One write, so that nobody reads the one line without the other.
    pub(crate) fn run_in(&mut self, context: &str, selected: &str, nonce: &str) {
        if let Some(file) = &mut self.0 {
            let (at, pid) = (wall_clock().as_micros(), std::process::id());
            let lines = format!("in {context} {selected} {at} {nonce} {pid}\nrun {nonce} {pid}\n");
            let _ = file.write_all(lines.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Book, ContextRun, Pen, wall_clock};

    fn book(name: &str) -> Book {
        let path = std::env::temp_dir().join(format!("linetender-habits-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Book::at(path)
    }

    #[test]
    fn a_run_in_a_context_is_a_run() {
        let book = book("run");
        let mut pen = Pen::open(Some(book.path())).unwrap();
        pen.write("read", "a");
        pen.run_in("p7-1", "test", "a");
        let [ContextRun { nonce, context, selected, at }] = book.context_runs().try_into().unwrap();
        assert_eq!((&*nonce, &*context, &*selected), ("a", "p7-1", "test"));
        assert!(wall_clock().saturating_sub(at) < Duration::from_secs(60));
        assert_eq!(book.runs()["a"], 1);
        assert_eq!(book.attempts()["a"].len(), 1);
    }

    #[test]
    fn what_a_server_declares_is_found() {
        let book = book("declared");
        let text = "start - 1\nlocked - 1\nmine 11 - 1\nnot-mine 12 - 1\nsaved - 1\nstart - 2\ntwo-at-once - 2\nsaving - 2\n";
        std::fs::write(book.path(), text).unwrap();
        assert_eq!((book.workers(), book.strangers()), ([11].into(), [12].into()));
        assert_eq!((book.locks(), book.savers()), ((1, 1), [1].into()));
        assert_eq!(book.writers(), [1, 2].into());
    }
}
