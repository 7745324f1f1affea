//! Finding everything below a server where orphans do not come to us: macOS, where they go to launchd.
//!
//! What is below a server can be listed only as long as its parent lives, so it is learned as it comes and remembered: at each fork
//! of a process that is known, every now and then, and before each kill. A process is remembered by its number *and* the time when
//! it started, because numbers are given to others after a while, and nothing is signalled that is not the one that was remembered.
//!
//! To kill, everything that is known is stopped first, and what is below it is listed again until nothing new is found: a process
//! that stands still starts nothing. Then all of it is killed, children before their parents. Whoever lost its parent unseen is found
//! in the session that the reaper leads, whatever group it is in; or, if it left that too, by whose child it was, which the kernel
//! remembers until it runs another program.
//!
//! What is not promised: a process that has left the reaper's session, and that lost its parent before either of them was seen.
//!
//! The system is behind [`Processes`] and [`Kernel`], so that the tests run the code that ships in worlds where processes fork,
//! end and are confused with others at every step.

mod family;
mod reaping;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::seen::Exit;
use crate::stdio::control::Record;

pub(super) use family::Family;
pub(super) use reaping::Reaping;

/// When a process started. Two that had the same number differ in this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Start {
    pub(super) seconds: u64,
    pub(super) micros: u64,
}

/// One process, and no other that has its number later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) start: Start,
}

/// Numbers that no two processes ever have, as long as the machine runs: a process's own, and that of the one whose child it was when it
/// began to run its program, also if that one is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Lineage {
    pub(super) own: u64,
    pub(super) parent: u64,
}

/// What there is under a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Look {
    /// Nothing, or one that has ended and was not waited for yet.
    Gone,
    /// A process.
    Lives { start: Start, parent: Option<Pid>, group: Option<Pid> },
    /// Another user's: nothing more is told about it, and it cannot be killed.
    Others,
}

impl Look {
    /// Whether this says that a process has ended which was seen there before. Another user's may well be the same one: a program can
    /// become another user's, and then nothing more is told about it.
    pub(super) fn is_end_of(self, seen: Option<Start>) -> bool {
        match self {
            Self::Gone => true,
            Self::Lives { start, .. } => seen.is_some_and(|seen| seen != start),
            Self::Others => false,
        }
    }
}

/// What can be seen and done of processes.
pub(super) trait Processes {
    /// The processes whose parent has this number, dead ones among them perhaps.
    fn children(&mut self, of: Pid) -> Vec<Pid>;
    /// The members of a group, the same.
    fn group(&mut self, group: Pid) -> Vec<Pid>;
    /// What there is under a number now.
    fn look(&mut self, pid: Pid) -> Look;
    /// The lineage of what is under a number now, also if it has ended and nobody has waited for it. `None` where the system does not
    /// tell.
    fn lineage(&mut self, pid: Pid) -> Option<Lineage>;
    /// Tells us when this one forks or ends. `false` if it has ended. Other than that it may fail unseen, and what it tells may be
    /// late or lost: it is only a hint to look.
    fn watch(&mut self, pid: Pid) -> bool;
    /// Signals this process, if it is still the one.
    fn signal(&mut self, to: Process, signal: Signal);
    /// Signals a group. Only as long as its number cannot be another's.
    fn signal_group(&mut self, group: Pid, signal: Signal);
}

/// What else a reaper needs of the system.
pub(super) trait Kernel: Processes {
    /// The living processes of the session that this process leads, but for itself, whoever their parents are.
    fn session(&mut self) -> Vec<Process>;
    /// The processes that have lost their parents, everybody's.
    fn orphans(&mut self) -> Vec<Pid>;
    /// What happened, or [`Happened::Nothing`] when this time is over.
    fn next(&mut self, patience: Duration) -> Happened;
    /// Waits a moment, whatever happens.
    fn nap(&mut self, time: Duration);
    /// Whether our parent is still the one that started us.
    fn parent_lives(&mut self) -> bool;
    /// The server's status, if it has ended. From then on its number may be another's.
    fn wait_for_server(&mut self) -> Waited;
    /// Reports; whether anybody listens.
    fn tell(&mut self, record: Record) -> bool;
}

/// What a reaper woke up for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Happened {
    Order(u8),
    ParentGone,
    Forked(Pid),
    Exited(Pid),
    Nothing,
}

/// What waiting for the server said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Waited {
    NotYet,
    Status(Exit),
    /// Its status is lost: there is no such child.
    NoChild,
}
