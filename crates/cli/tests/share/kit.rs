//! A house of the test's own: its keeper, its servers, and the book that they write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use linetender_badserver::Book;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::agent::{Agent, LINETENDER};

/// What takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct House(PathBuf);

impl House {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-share-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("run")).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where the keeper has its socket.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.0.join("run/linetender")
    }

    /// The folder of it, as linetender makes it.
    pub(crate) fn make_runtime(&self) {
        fs::create_dir_all(self.runtime()).unwrap();
        fs::set_permissions(self.runtime(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    pub(crate) fn book(&self) -> Book {
        Book::at(self.0.join("book"))
    }

    fn linetender(&self) -> Command {
        let mut command = Command::new(LINETENDER);
        command.env("XDG_RUNTIME_DIR", self.0.join("run")).env("HOME", &self.0);
        command.env("XDG_STATE_HOME", self.0.join("state")).env("XDG_CACHE_HOME", self.0.join("cache"));
        command.current_dir(&self.0);
        command
    }

    /// An agent on a shared server.
    pub(crate) fn agent(&self, flags: &[&str]) -> Agent {
        self.agent_with(flags, |_| ())
    }

    pub(crate) fn agent_with(&self, flags: &[&str], change: impl FnOnce(&mut Command)) -> Agent {
        let mut shim = self.linetender();
        let book = self.book();
        shim.args(["run", "--share", "--no-memory", "--name", "bad"]).args(flags);
        shim.args(["--", LINETENDER, "__badserver", "--era", "legacy", "--book"]).arg(book.path());
        change(&mut shim);
        Agent::of_command(&mut shim)
    }

    /// Starts a keeper whose servers linger for this long.
    pub(crate) fn begin_keeper(&self, linger: &str) {
        let mut keeper = self.linetender();
        keeper.arg("keeper").arg(self.runtime()).args(["--linger", linger]);
        assert!(keeper.status().unwrap().success());
        eventually(|| self.runtime().join("keeper.sock").exists().then_some(()));
    }

    /// What a command says.
    pub(crate) fn said(&self, words: &[&str]) -> String {
        let output = self.linetender().args(words).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Processes of this house that hold servers.
    pub(crate) fn keepers(&self) -> Vec<i32> {
        let runtime = self.runtime();
        self.processes(|words| {
            words.get(1).is_some_and(|word| word == "keeper")
                && words.get(2).is_some_and(|word| Path::new(word) == runtime)
                && words.iter().any(|word| word == "--detached")
        })
    }

    pub(crate) fn keeper(&self) -> i32 {
        eventually(|| self.keepers().first().copied())
    }

    /// The servers of this house.
    pub(crate) fn servers(&self) -> Vec<i32> {
        let book = self.book();
        self.processes(|words| {
            words.get(1).is_some_and(|word| word == "__badserver")
                && words.iter().any(|word| Path::new(word) == book.path())
        })
    }

    fn processes(&self, wanted: impl Fn(&[String]) -> bool) -> Vec<i32> {
        let _ = self;
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        numbers
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let words = fs::read(entry.path().join("cmdline")).ok()?;
                let words: Vec<_> = words
                    .split(|byte| *byte == 0)
                    .map(|word| String::from_utf8_lossy(word).into_owned())
                    .collect();
                (wanted(&words) && is_alive(pid)).then_some(pid)
            })
            .collect()
    }

    pub(crate) fn signal(&self, pid: i32, signal: Signal) {
        let _ = self;
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for keeper in self.keepers() {
            let _ = kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL);
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a process is there, and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let dead =
        state.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])));
    test_kill_process(pid).is_ok() && !dead
}

/// Waits for something that comes.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it did not come in {PATIENCE:?}");
        std::thread::yield_now();
    }
}
