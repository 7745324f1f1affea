//! What left the server's tree on purpose: a tmux server, gpg-agent, a dev server that was started with `nohup setsid`. It is the
//! user's, and outlives the server.
//!
//! It is told by what it did while the server lived: it lost its parent, so it became our child; it has a session of its own, or
//! ignores SIGHUP where the server does not; and it holds neither the server's stdin nor its stdout. What becomes our child only
//! when the server has ended may be anything, and is the server's.

use std::collections::HashMap;

use rustix::process::{Pid, WaitOptions};

use super::super::os::{self, Process};

/// How the links in `/proc/PID/fd` of what only its holders share begin. Anybody has `/dev/null`.
const SHARED: [&str; 2] = ["pipe:[", "socket:["];

/// The processes that left on purpose, by number and start.
pub(super) struct Left {
    /// The server's stdin and stdout, as `/proc` names them. None if nothing is spared.
    pipes: Option<Vec<String>>,
    found: HashMap<Pid, u64>,
}

impl Left {
    /// Spares what leaves on purpose. To be called while the server's stdin and stdout are ours too.
    pub(super) fn sparing() -> Self {
        let links = [0, 1].into_iter().filter_map(|fd| os::link_of(format!("/proc/self/fd/{fd}")));
        let pipes = links.filter(|link| SHARED.iter().any(|kind| link.starts_with(kind))).collect();
        Self { pipes: Some(pipes), found: HashMap::new() }
    }

    /// Spares nothing.
    pub(super) fn nothing() -> Self {
        Self { pipes: None, found: HashMap::new() }
    }

    /// Looks at our children, and buries the dead. A look counts only if the server still lives at its end.
    pub(super) fn look(&mut self, server: Pid) {
        let mut found = HashMap::new();
        for child in os::children().into_iter().filter(|child| *child != server) {
            let _ = rustix::process::waitpid(Some(child), WaitOptions::NOHANG);
            if let Some(pipes) = &self.pipes
                && let Some(process) = os::look(child)
                && (self.found.get(&child) == Some(&process.start) || has_left(&process, server, pipes))
            {
                found.insert(child, process.start);
            }
        }
        if os::lives(server) {
            self.found = found;
        }
    }

    pub(super) fn has(&self, process: &Process) -> bool {
        self.found.get(&process.pid) == Some(&process.start)
    }

    /// Those that live.
    pub(super) fn living(&self) -> Vec<Process> {
        let looked = self.found.keys().filter_map(|pid| os::look(*pid));
        looked.filter(|process| self.has(process)).collect()
    }
}

fn has_left(process: &Process, server: Pid, pipes: &[String]) -> bool {
    let ours = rustix::process::getsid(None).ok();
    let is_apart = Some(process.session) != ours;
    (is_apart || (os::ignores_hangup(process.pid) && !os::ignores_hangup(server)))
        // What cannot be read is neither.
        && !os::links_of(process.pid).any(|link| pipes.contains(&link))
}
