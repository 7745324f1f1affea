//! A server and what is known to be below it.

use std::collections::VecDeque;

use rustix::process::{Pid, Signal};

use super::{Kernel, Lineage, Look, Process, Processes, Start};

/// How many processes of other users are remembered: they are only named.
const OTHERS: usize = 64;

/// How many lineages are remembered. Of a tree that had more processes the oldest are forgotten.
const LINEAGES: usize = 4096;

/// The processes of one server that may still live.
pub(in super::super) struct Family {
    /// The server's number, which is its group's too.
    leader: Pid,
    /// Whether that number cannot be another's: nobody has waited for the server.
    holds_group: bool,
    /// In the order in which they were found: parents before their children.
    known: Vec<Process>,
    /// Other users' processes that were seen below the server.
    others: Vec<Pid>,
    /// The own numbers of all that were ever seen, the dead too: an orphan may be theirs.
    lineages: VecDeque<u64>,
}

/// Whose children are listed.
#[derive(Clone, Copy)]
enum Parent {
    Known(Process),
    /// Nobody else can have this number.
    Held(Pid),
}

impl Parent {
    const fn number(self) -> Pid {
        match self {
            Self::Known(process) => process.pid,
            Self::Held(pid) => pid,
        }
    }

    fn is_there(self, kernel: &mut impl Processes) -> bool {
        match self {
            Self::Known(process) => is_there(kernel, process),
            Self::Held(_) => true,
        }
    }
}

impl Family {
    /// Of a server that leads a group, and whether its number stays its own until [`Self::let_go_of_group`].
    pub(in super::super) fn of(server: Pid, start: Option<Start>, holds_group: bool) -> Self {
        let known = start.map(|start| Process { pid: server, start }).into_iter().collect();
        Self { leader: server, holds_group, known, others: Vec::new(), lineages: VecDeque::new() }
    }

    /// Remembers the server itself, whose number is its own, as the one from whom all others come.
    pub(super) fn begin(&mut self, kernel: &mut impl Processes) {
        if let Some(lineage) = kernel.lineage(self.leader).filter(|_| self.holds_group) {
            self.remember_lineage(lineage);
        }
    }

    /// Whether nothing of it lives, as far as is known.
    pub(in super::super) fn is_gone(&self) -> bool {
        self.known.is_empty()
    }

    /// Somebody is about to wait for the server: its group can be named no more.
    pub(super) fn let_go_of_group(&mut self) {
        self.holds_group = false;
    }

    pub(super) fn signal_group(&self, kernel: &mut impl Processes, signal: Signal) {
        if self.holds_group {
            kernel.signal_group(self.leader, signal);
        }
    }

    /// Learns what is new below all that is known, and in the group; whether there was anything.
    pub(in super::super) fn learn(&mut self, kernel: &mut impl Processes) -> bool {
        let mut is_new = self.learn_below_leader(kernel);
        for process in self.known.clone() {
            is_new |= self.learn_below(kernel, Parent::Known(process));
        }
        if self.holds_group {
            // One that lost its parent is still in the group, unless it left that too.
            for pid in kernel.group(self.leader) {
                let leader = Some(self.leader);
                let found = self.unknown(kernel.look(pid), pid, |_, group| group == leader);
                is_new |= found.is_some();
                if let Some(found) = found {
                    self.remember(kernel, found);
                    self.learn_below(kernel, Parent::Known(found));
                }
            }
        }
        is_new
    }

    /// Learns of those of whom nothing was seen when they lost their parent; whether there was anything.
    pub(super) fn learn_lost(&mut self, kernel: &mut impl Kernel) -> bool {
        let is_in_session = self.learn_session(kernel);
        self.learn_orphans(kernel) || is_in_session
    }

    /// Of those that are in the reaper's session.
    fn learn_session(&mut self, kernel: &mut impl Kernel) -> bool {
        let listed = kernel.session();
        let found: Vec<_> = listed.into_iter().filter(|found| !self.known.contains(found)).collect();
        for process in &found {
            self.remember(kernel, *process);
            self.learn_below(kernel, Parent::Known(*process));
        }
        !found.is_empty()
    }

    /// Of those that left the session too, and whose parent was seen.
    fn learn_orphans(&mut self, kernel: &mut impl Kernel) -> bool {
        let mut is_new = false;
        // The system does not tell.
        if self.lineages.is_empty() {
            return is_new;
        }
        for pid in kernel.orphans() {
            let before = self.lineages.len();
            let Some(lineage) = self.lineage_of(kernel, pid) else { continue };
            let found = self.unknown(kernel.look(pid), pid, |_, _| true);
            // Also one that has ended: it may have left others behind, which were no orphans yet when these were listed.
            is_new |= found.is_some() || self.lineages.len() > before;
            // Another may have got the number in between.
            if let Some(found) = found
                && kernel.lineage(pid) == Some(lineage)
            {
                self.remember(kernel, found);
                self.learn_below(kernel, Parent::Known(found));
            }
        }
        is_new
    }

    /// The lineage of what is under a number, if it is of ours: then it is remembered, because what it leaves behind when it ends says
    /// whose it was. No two processes have the same, so nothing else has to be looked at.
    fn lineage_of(&mut self, kernel: &mut impl Processes, pid: Pid) -> Option<Lineage> {
        let lineage = kernel.lineage(pid).filter(|lineage| self.lineages.contains(&lineage.parent))?;
        self.remember_lineage(lineage);
        Some(lineage)
    }

    fn remember_lineage(&mut self, lineage: Lineage) {
        if !self.lineages.contains(&lineage.own) {
            if self.lineages.len() == LINEAGES {
                self.lineages.pop_front();
            }
            self.lineages.push_back(lineage.own);
        }
    }

    /// Learns what one process of ours has started.
    pub(super) fn learn_of_fork(&mut self, kernel: &mut impl Processes, parent: Pid) {
        if parent == self.leader && self.learn_below_leader(kernel) {
            return;
        }
        // One that ended and was not forgotten yet may have had the same number.
        let parents: Vec<_> = self.known.iter().copied().filter(|known| known.pid == parent).collect();
        for parent in parents {
            self.learn_below(kernel, Parent::Known(parent));
        }
    }

    /// The server itself, as long as its number is its own. While a process ends nothing is told of it any more, but its children are
    /// its children until it has closed all that it had open, which takes a while; and whoever gives us orders has heard of that.
    fn learn_below_leader(&mut self, kernel: &mut impl Processes) -> bool {
        self.holds_group && self.learn_below(kernel, Parent::Held(self.leader))
    }

    /// Learns what is new below this process, and below that.
    fn learn_below(&mut self, kernel: &mut impl Processes, process: Parent) -> bool {
        let mut is_new = false;
        let mut parents = vec![process];
        while let Some(parent) = parents.pop() {
            let number = parent.number();
            let mut found = Vec::new();
            for pid in kernel.children(number) {
                let look = kernel.look(pid);
                // The dead are listed too.
                if look == Look::Gone {
                    self.lineage_of(kernel, pid);
                }
                found.extend(self.unknown(look, pid, |of, _| of == Some(number)));
            }
            // It was the same one all the time only if it is still: else these may be children of another with its number.
            if found.is_empty() || !parent.is_there(kernel) {
                continue;
            }
            is_new = true;
            for child in found {
                // It is watched before its own children are listed: none falls between the two.
                self.remember(kernel, child);
                parents.push(Parent::Known(child));
            }
        }
        is_new
    }

    /// The process under this number, if it is not known yet and has this parent or group now: it may be another by now than the one
    /// that was listed.
    fn unknown(
        &mut self,
        look: Look,
        pid: Pid,
        is_ours: impl Fn(Option<Pid>, Option<Pid>) -> bool,
    ) -> Option<Process> {
        match look {
            Look::Lives { start, parent, group } if is_ours(parent, group) => {
                let found = Process { pid, start };
                (!self.known.contains(&found)).then_some(found)
            }
            Look::Others => {
                if !self.others.contains(&pid) && self.others.len() < OTHERS {
                    self.others.push(pid);
                }
                None
            }
            Look::Lives { .. } | Look::Gone => None,
        }
    }

    fn remember(&mut self, kernel: &mut impl Processes, process: Process) {
        kernel.watch(process.pid);
        self.known.push(process);
        if self.lineage_of(kernel, process.pid).is_some() {
            return;
        }
        // Its parent was never seen, or it ran its program as an orphan. It was this one that was asked, if it is still there.
        let lineage = kernel.lineage(process.pid);
        if let Some(lineage) = lineage
            && is_there(kernel, process)
        {
            self.remember_lineage(lineage);
        }
    }

    /// Stops all that is known, and learns what is new; whether there was anything.
    pub(in super::super) fn stop(&mut self, kernel: &mut impl Processes) -> bool {
        self.signal_group(kernel, Signal::STOP);
        for process in &self.known {
            kernel.signal(*process, Signal::STOP);
        }
        self.learn(kernel)
    }

    /// Kills all that is known. Children go before their parents: the kernel wakes a stopped group that loses its last parent.
    pub(in super::super) fn kill(&self, kernel: &mut impl Processes) {
        for process in self.known.iter().rev() {
            kernel.signal(*process, Signal::KILL);
        }
        self.signal_group(kernel, Signal::KILL);
    }

    /// Forgets those that have ended. One that became another user's cannot be killed any more.
    pub(in super::super) fn forget_the_dead(&mut self, kernel: &mut impl Processes) {
        let others = &mut self.others;
        self.known.retain(|known| match kernel.look(known.pid) {
            Look::Lives { start, .. } => start == known.start,
            Look::Gone => false,
            Look::Others => {
                if !others.contains(&known.pid) && others.len() < OTHERS {
                    others.push(known.pid);
                }
                false
            }
        });
    }

    /// Other users' processes that are still there, and stay.
    pub(super) fn left(&self, kernel: &mut impl Processes) -> Vec<Pid> {
        self.others.iter().copied().filter(|pid| kernel.look(*pid) == Look::Others).collect()
    }
}

/// Whether a process lives, and is the one.
pub(super) fn is_there(kernel: &mut impl Processes, process: Process) -> bool {
    matches!(kernel.look(process.pid), Look::Lives { start, .. } if start == process.start)
}
