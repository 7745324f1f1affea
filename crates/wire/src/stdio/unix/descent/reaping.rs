//! What a reaper does with a server that runs: it watches until the server or its parent is gone, or an order comes, and then leaves
//! nothing behind. It goes through the same steps as the one of Linux, and says the same.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{Family, Happened, Kernel, Look, Waited};
use crate::stdio::control::{INT, Record, TERM};

/// How often everything is looked at while nothing happens: what is told of forks and exits is only a hint.
const LOOK: Duration = Duration::from_secs(2);

/// How often in a row what is known is stopped and listed again before it is killed: one that starts others faster than they are
/// found is met again in the next round.
const STOPS: u32 = 32;

/// How many lists in a row have to say nothing new: a fork that was under way when its process was stopped comes through.
const EMPTY_LISTS: u32 = 2;

/// Between two such lists.
const SETTLE: Duration = Duration::from_millis(1);

/// How long it tries to kill a tree that will not die when its parent is gone, in milliseconds. While there is a parent, it
/// never stops trying.
const GIVE_UP: u32 = 10_000;

/// How often it tells its parent that it is still killing, in milliseconds.
const TELL_BUSY: u32 = 1000;

/// How many processes that stay behind are named.
const LEFT_NAMED: usize = 8;

/// A server that runs, and the one who cleans up after it.
pub(in super::super) struct Reaping<K> {
    pub(super) kernel: K,
    pub(super) family: Family,
    server: Pid,
    waited: bool,
}

/// Why a reaper has nothing more to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Done {
    /// Nothing is left, and it said so.
    Clear,
    /// Nobody listens, and what is left does not die.
    GaveUp,
}

impl<K: Kernel> Reaping<K> {
    /// Of a server that was just started, as a child of this process and the leader of a group.
    pub(in super::super) fn of(server: Pid, mut kernel: K) -> Self {
        // The number is the server's until we have waited for it, so nothing else is looked at here.
        let start = match kernel.look(server) {
            Look::Lives { start, .. } => Some(start),
            Look::Gone | Look::Others => None,
        };
        let mut family = Family::of(server, start, true);
        family.begin(&mut kernel);
        Self { kernel, family, server, waited: false }
    }

    /// Watches until there is a reason to end everything, and ends everything.
    pub(in super::super) fn run(&mut self) -> Done {
        if self.kernel.watch(self.server) {
            self.family.learn(&mut self.kernel);
            self.watch();
        }
        self.clear()
    }

    /// Ends everything at once.
    pub(in super::super) fn end(&mut self) -> Done {
        self.clear()
    }

    fn watch(&mut self) {
        loop {
            match self.kernel.next(LOOK) {
                Happened::Order(INT) => self.family.signal_group(&mut self.kernel, Signal::INT),
                Happened::Order(TERM) => self.family.signal_group(&mut self.kernel, Signal::TERM),
                Happened::Order(_) | Happened::ParentGone => return,
                Happened::Exited(pid) if pid == self.server => return,
                Happened::Forked(pid) => self.family.learn_of_fork(&mut self.kernel, pid),
                Happened::Exited(_) => self.family.forget_the_dead(&mut self.kernel),
                Happened::Nothing => {
                    // A server of another user's (it may have changed) is there, and one that ended is not.
                    if !self.kernel.parent_lives() || self.kernel.look(self.server) == Look::Gone {
                        return;
                    }
                    self.family.forget_the_dead(&mut self.kernel);
                    self.family.learn(&mut self.kernel);
                }
            }
        }
    }

    /// Kills all that is known until nothing of it is left, and says so.
    fn clear(&mut self) -> Done {
        let mut waited = 0;
        let mut told = 0;
        // It is looked at before anything is stopped too: the kernel may end a stopped group, and then its children are orphans.
        self.family.learn(&mut self.kernel);
        // Those of whom nothing is known are many to ask, so that is done now, and once all others are gone.
        self.family.learn_lost(&mut self.kernel);
        loop {
            let settled = self.stop();
            self.family.kill(&mut self.kernel);
            self.family.forget_the_dead(&mut self.kernel);
            // As long as nobody has waited for the server, its group is its own: so this comes after all in it are known.
            if settled && !self.waited {
                self.wait_for_server();
            }
            let is_over = settled && self.waited && self.family.is_gone();
            // The last look is at those of whom nothing is known: where there is nobody, nobody comes.
            if is_over && !self.family.learn_lost(&mut self.kernel) {
                for pid in self.family.left(&mut self.kernel).into_iter().take(LEFT_NAMED) {
                    self.kernel.tell(Record::Left(pid.as_raw_nonzero().get()));
                }
                self.kernel.tell(Record::Clear);
                return Done::Clear;
            }
            // Between two looks: a tree takes a moment to die. The wait is short at first, then longer.
            let nap = if waited < 20 { 1 } else { 20 };
            waited += nap;
            self.kernel.nap(Duration::from_millis(nap.into()));
            if waited - told >= TELL_BUSY {
                told = waited;
                if !self.kernel.tell(Record::Busy) && waited >= GIVE_UP {
                    return Done::GaveUp;
                }
            }
        }
    }

    /// Stops all that is known until nothing new is found; whether it came to that.
    fn stop(&mut self) -> bool {
        let mut empty = 0;
        for _ in 0..STOPS {
            if self.family.stop(&mut self.kernel) {
                empty = 0;
                continue;
            }
            empty += 1;
            if empty == EMPTY_LISTS || self.family.is_gone() {
                return true;
            }
            self.kernel.nap(SETTLE);
        }
        false
    }

    fn wait_for_server(&mut self) {
        match self.kernel.wait_for_server() {
            Waited::NotYet => return,
            Waited::Status(exit) => drop(self.kernel.tell(Record::Exited(exit))),
            Waited::NoChild => {}
        }
        self.waited = true;
        self.family.let_go_of_group();
    }
}
