//! What is left of a tree is ended: SIGTERM, then SIGKILL, until nothing is there.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};

use super::super::asked::{exit_of, nap_for, send};
use super::super::os::{self, Process};
use super::ladder::Time;
use super::left::Left;
use super::{Reaper, is_over, now};
use crate::stdio::control::Record;

/// How long it tries to kill a tree that will not die when its parent is gone. While there is a parent, it never stops trying.
const GIVE_UP: Duration = Duration::from_secs(10);

/// How many processes that stay behind are named.
const LEFT_NAMED: usize = 8;

/// How often it tells its parent that it is still at it: a reaper that says nothing is taken for stopped.
const TELL_BUSY: Duration = Duration::from_secs(1);

/// Between two looks: a tree takes a moment to die. The wait is short at first, then longer.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// How many naps are short.
const SHORT_NAPS: u32 = 20;

/// With what was spared below us, how many looks in a row have to find nothing else: the kernel's list of children may lack one while
/// another of them ends.
const EMPTY_LOOKS: u32 = 3;

/// The processes that were asked to go, and those that were named, by number and start.
#[derive(Default)]
struct Done {
    /// The first round is over: what a living process has started since then may belong to its cleaning up.
    has_asked: bool,
    asked: HashSet<(Pid, u64)>,
    named: HashSet<(Pid, u64)>,
}

impl Reaper {
    /// Ends everything below us until nothing is left, and says so: the server at once, the rest with SIGTERM, and with SIGKILL when
    /// its time has come. What left on purpose is spared.
    pub(super) fn clear(&mut self, kill_at: Time) -> io::Result<()> {
        let (mut kill_at, mut told, mut naps, mut empty) = (kill_at, now(), 0, 0);
        let mut done = Done::default();
        let _ = rustix::process::kill_process(self.server, Signal::KILL);
        loop {
            let time = now();
            if self.lifeline.as_ref().is_some_and(is_over) {
                // Another may start it elsewhere.
                (kill_at, self.left) = (kill_at.min(time), Left::nothing());
            }
            if time >= kill_at {
                self.kill_all(&mut done);
            } else {
                self.ask_all(&mut done);
            }
            let is_alone = self.bury_all();
            let below = self.below();
            empty = if below.is_empty() { empty + 1 } else { 0 };
            if is_alone || empty == EMPTY_LOOKS {
                return self.tell_clear();
            }
            if let Some(others) = self.only_others(&below) {
                for child in others.iter().take(LEFT_NAMED) {
                    send(Record::Left(child.as_raw_nonzero().get()), &self.control)?;
                }
                return self.tell_clear();
            }
            naps += 1;
            nap_for(NAPS[usize::from(naps > SHORT_NAPS)]);
            if time >= told + TELL_BUSY {
                told = time;
                if send(Record::Busy, &self.control).is_err() && time >= kill_at + GIVE_UP {
                    return Ok(());
                }
            }
        }
    }

    fn tell_clear(&self) -> io::Result<()> {
        for spared in self.left.living() {
            send(Record::Spared(spared.pid.as_raw_nonzero().get()), &self.control)?;
        }
        send(Record::Clear, &self.control)
    }

    /// Whoever loses its parent by that is ours by the next round.
    fn kill_all(&self, done: &mut Done) {
        // Once the server was waited for, its group is its own as long as somebody is in it.
        if self.tree().iter().any(|process| process.group == self.server) {
            self.signal_server(Signal::KILL);
        }
        for child in self.below() {
            if let Some(process) = os::look(child) {
                self.name(&process, done);
            }
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
    }

    /// Everything below us gets SIGTERM once, but for what the server's group was asked already, and for the programs that a process
    /// runs after it was asked, as long as that one lives: it cleans up with them.
    fn ask_all(&self, done: &mut Done) {
        let tree = self.tree();
        let living: HashSet<Pid> = tree.iter().map(|process| process.pid).collect();
        done.asked.retain(|(pid, _)| living.contains(pid));
        for process in &tree {
            let key = (process.pid, process.start);
            let was_asked = process.pid == self.server
                || (self.ladder.is_asked() && process.group == self.server)
                || done.asked.contains(&key);
            let cleans_up = done.has_asked && living.contains(&process.parent);
            if !was_asked && !cleans_up {
                self.name(process, done);
                let _ = rustix::process::kill_process(process.pid, Signal::TERM);
                done.asked.insert(key);
            }
        }
        done.has_asked = true;
    }

    /// Tells of a process that the server left behind, once.
    fn name(&self, process: &Process, done: &mut Done) {
        let is_new = process.pid != self.server && done.named.len() < LEFT_NAMED;
        if is_new && done.named.insert((process.pid, process.start)) {
            for bytes in os::name_of(process.pid).unwrap_or_default().as_bytes().chunks(4) {
                let mut name = [0; 4];
                name[..bytes.len()].copy_from_slice(bytes);
                let _ = send(Record::Name(name), &self.control);
            }
            let _ = send(Record::Ended(process.pid.as_raw_nonzero().get()), &self.control);
        }
    }

    /// Buries the dead; whether there is nobody else.
    fn bury_all(&self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                // An orphan of the one that just died is ours by now: look again before believing there is none.
                Ok(Some((pid, status))) if pid == self.server => {
                    let _ = send(Record::Exited(exit_of(status)), &self.control);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return self.adopts || self.below().is_empty(),
            }
        }
    }

    /// What is left of the tree, as far as it can be found: of a tree that can, those whose parent is gone.
    fn below(&self) -> Vec<Pid> {
        let found = if self.adopts { os::children() } else { os::family() };
        let left = self.left.living();
        found.into_iter().filter(|pid| left.iter().all(|left| left.pid != *pid)).collect()
    }

    /// All of it, parents before their children.
    pub(super) fn tree(&self) -> Vec<Process> {
        let (mut parents, mut seen, mut tree) = (self.below(), HashSet::new(), Vec::new());
        while let Some(pid) = parents.pop() {
            // The dead have no children.
            if let Some(process) = os::look(pid).filter(|_| seen.insert(pid)) {
                if self.adopts {
                    parents.extend(os::children_of(pid));
                }
                tree.push(process);
            }
        }
        tree
    }

    /// What is left, if all of it is other users': something that the server started with `sudo`, say. It cannot be killed,
    /// and may live for ever. The server itself is waited for in any case, or there would be two.
    fn only_others<'a>(&self, below: &'a [Pid]) -> Option<&'a [Pid]> {
        let is_others = |child: &Pid| {
            *child != self.server
                && rustix::process::test_kill_process(*child) == Err(rustix::io::Errno::PERM)
        };
        (!below.is_empty() && below.iter().all(is_others)).then_some(below)
    }
}
