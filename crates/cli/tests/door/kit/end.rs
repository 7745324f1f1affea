//! The processes of a door, and its end: nothing is left, and the checker has the last word.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use linetender_badserver::{Bounds, check};

use super::Door;
use crate::agent::PATIENCE;
use crate::look::{eventually, kill, lives, marked, parent};

/// More starts than that in a second are a storm; a door shows none of them, so this is only what the checker asks for.
const DIALS: usize = 20;

/// How long a tree may outlive its shim, on a busy machine.
const GONE: Duration = Duration::from_secs(2);

impl Door {
    pub fn shim(&self) -> i32 {
        i32::try_from(self.agent.shim.id()).unwrap()
    }

    /// The server that runs now.
    pub fn server(&self) -> i32 {
        eventually("a server", || {
            let is_server = |words: &[String]| words.get(1).is_some_and(|word| word == "__badserver");
            marked(&self.mark).into_iter().find(|(_, words)| is_server(words)).map(|(pid, _)| pid)
        })
    }

    /// Kills the server, and waits until it is dead: until then it might read a call.
    pub fn kills(&self) -> i32 {
        let server = self.server();
        kill("-9", server);
        eventually("a dead server", || (!lives(server)).then_some(()));
        server
    }

    pub fn reaper(&self) -> i32 {
        parent(self.server())
    }

    /// Everything that the shim has started and that still runs, itself included.
    pub fn tree(&self) -> Vec<i32> {
        marked(&self.mark).into_iter().map(|(pid, _)| pid).collect()
    }

    /// The processes that ran a call, each once.
    pub fn generations(&self) -> usize {
        self.book.runs_by().into_values().flatten().collect::<BTreeSet<_>>().len()
    }

    /// The shim is killed, as by somebody who is out of memory: nothing of it is left, and it could say nothing.
    pub fn dies(mut self) {
        self.agent.shim.kill().unwrap();
        self.agent.shim.wait().unwrap();
        self.is_gone();
    }

    /// The agent goes: the shim ends well, nothing of it is left, and the checker has nothing to say.
    pub fn closes(mut self) {
        assert!(self.agent.shim.try_wait().unwrap().is_none(), "the agent's pipe is never closed");
        self.agent.to = None;
        let ended = eventually("the end of the shim", || self.agent.shim.try_wait().unwrap());
        assert!(ended.success(), "{ended:?}: {}", self.log());
        while let Ok(text) = self.agent.from.recv_timeout(PATIENCE) {
            self.take_in(text);
        }
        self.is_gone();
        let bounds = Bounds { call: PATIENCE, dials_per_second: DIALS, changes: self.changes };
        let findings = check(&self.history, &self.book, bounds);
        assert!(findings.is_empty(), "{findings:?}\n{}", self.log());
        assert_eq!(self.history.changes, self.changes, "changes of the list that were told");
        // Calls that were taken back are not in the history, and must not run twice either.
        let twice: Vec<_> = self.book.runs().into_iter().filter(|(_, runs)| *runs > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    fn is_gone(&self) {
        let start = Instant::now();
        eventually("an end of its tree", || self.tree().is_empty().then_some(()));
        assert!(start.elapsed() < GONE, "{:?}", start.elapsed());
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.file("log")).unwrap_or_default()
    }
}
