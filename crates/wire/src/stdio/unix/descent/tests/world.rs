//! A machine with processes that nobody has written down: they fork, end, leave their groups and get each other's numbers, between
//! any two calls if the world is wild.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::seen::Exit;
use crate::stdio::control::{KILL, Record, TERM};
use crate::stdio::unix::descent::{Happened, Kernel, Lineage, Look, Process, Processes, Start, Waited};

pub(super) const LAUNCHD: i32 = 1;
const REAPER: i32 = 2;
const FIRST: i32 = 10;

/// How many calls a reaper may need for all that it knows, once there is a reason to end it.
const BOUND: u64 = 5_000;

/// After so many steps in which nothing ended it, a world ends the server in one way or another.
const LONGEST: u64 = 400;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Runs,
    Stopped,
    /// It was killed, and takes so many more steps to die.
    Dies(u32),
    Dead,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Proc {
    pub(super) born: u64,
    pub(super) parent: i32,
    /// Whose child it was when it began to run its program, by when that was born.
    pub(super) child_of: u64,
    pub(super) group: i32,
    pub(super) session: i32,
    pub(super) is_ours: bool,
    pub(super) is_others: bool,
    pub(super) state: State,
    /// Cannot be killed for as long as the world lasts.
    pub(super) is_immortal: bool,
    /// Its end has begun: nothing is told of it any more, and its children are still its own.
    pub(super) is_ending: bool,
    /// A fork that was under way when it was stopped.
    forks_yet: bool,
}

/// How a world treats whoever looks at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Temper {
    /// Nothing happens but while somebody waits, and everything is told in time: all of the tree is found.
    Calm,
    /// Things happen between any two calls; what is told is late or lost.
    Wild,
    /// And nothing is ever told but that a moment went by.
    Deaf,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct World {
    random: u64,
    pub(super) temper: Temper,
    pub(super) procs: BTreeMap<i32, Proc>,
    numbers: i32,
    next_number: i32,
    /// Numbers that somebody had, the last ones last.
    freed: Vec<i32>,
    births: u64,
    steps: u64,
    events: Vec<(u64, Happened)>,
    watched: BTreeSet<(i32, u64)>,
    /// Those that were looked at, and those of them that were watched then: another may have got the number in between.
    looked_at: BTreeSet<(i32, u64)>,
    known: BTreeSet<(i32, u64)>,
    /// Those of the tree whose lineage was told, each after its parent's.
    lineages: BTreeSet<u64>,
    pub(super) server: i32,
    /// The status of a server that has ended, and when it can be waited for.
    ended: Option<(u64, Exit)>,
    was_waited_for: bool,
    pub(super) parent_lives: bool,
    /// How often the machine has asked for something since the parent or the server ended.
    calls_since: u64,
    pub(super) told: Vec<Record>,
    /// Nothing happens by itself: the test is the world.
    pub(super) is_scripted: bool,
    /// What happens in its place, one at each wait.
    pub(super) script: VecDeque<fn(&mut World)>,
    /// Somebody else waited for the server.
    pub(super) loses_status: bool,
    /// The reaper leads a session.
    pub(super) has_session: bool,
    /// This one ends as soon as its lineage was told, and a stranger gets its number.
    pub(super) is_replaced: Option<i32>,
    /// How often a number was given out again.
    pub(super) reused: u64,
}

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).unwrap()
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

impl World {
    pub(super) fn new(seed: u64, temper: Temper) -> Self {
        let mut world = Self {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            temper,
            procs: BTreeMap::new(),
            numbers: 0,
            next_number: FIRST,
            freed: Vec::new(),
            births: 0,
            steps: 0,
            events: Vec::new(),
            watched: BTreeSet::new(),
            looked_at: BTreeSet::new(),
            known: BTreeSet::new(),
            lineages: BTreeSet::new(),
            server: 0,
            ended: None,
            was_waited_for: false,
            parent_lives: true,
            calls_since: 0,
            told: Vec::new(),
            is_scripted: false,
            script: VecDeque::new(),
            loses_status: false,
            has_session: true,
            is_replaced: None,
            reused: 0,
        };
        world.numbers = 16 + i32::try_from(world.below(48)).unwrap();
        for _ in 0..3 {
            world.bear(LAUNCHD, None, false);
        }
        world.server = world.bear(REAPER, None, true).unwrap();
        world
    }

    /// A number below this one.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// A number that is free: no process has it, no group and no session. The next one in turn, or, where the world is not calm, one that
    /// somebody had a moment ago.
    fn free_number(&mut self) -> Option<i32> {
        let numbers = self.procs.iter().flat_map(|(pid, proc)| [*pid, proc.group, proc.session]);
        let taken: BTreeSet<i32> = numbers.collect();
        if self.temper != Temper::Calm
            && self.one_in(2)
            && let Some(number) = self.freed.pop()
            && !taken.contains(&number)
        {
            return Some(number);
        }
        for _ in 0..self.numbers {
            let number = self.next_number;
            self.next_number = if number + 1 >= FIRST + self.numbers { FIRST } else { number + 1 };
            if !taken.contains(&number) {
                return Some(number);
            }
        }
        None
    }

    /// Somebody has waited for it: its number is free.
    fn bury(&mut self, number: i32) {
        self.procs.remove(&number);
        self.freed.push(number);
    }

    /// A new process, in this group or one of its own.
    pub(super) fn bear(&mut self, parent: i32, group: Option<i32>, is_ours: bool) -> Option<i32> {
        let number = self.free_number()?;
        self.births += 1;
        self.reused += u64::from(self.births > self.numbers.unsigned_abs().into());
        let session = match self.procs.get(&parent) {
            Some(parent) => parent.session,
            None if is_ours => REAPER,
            None => number,
        };
        let proc = Proc {
            born: self.births,
            parent,
            child_of: self.procs.get(&parent).map_or(0, |parent| parent.born),
            group: group.unwrap_or(number),
            session,
            is_ours,
            is_others: self.procs.get(&parent).is_some_and(|parent| parent.is_others),
            state: State::Runs,
            is_immortal: false,
            is_ending: false,
            forks_yet: false,
        };
        self.procs.insert(number, proc);
        Some(number)
    }

    pub(super) fn fork(&mut self, parent: i32) -> Option<i32> {
        let Proc { group, is_ours, born, .. } = *self.procs.get(&parent)?;
        let child = self.bear(parent, Some(group), is_ours)?;
        self.tell_of(parent, born, Happened::Forked(pid(parent)));
        Some(child)
    }

    /// From now on it says that it is the child of whoever is its parent now.
    pub(super) fn runs_another_program(&mut self, number: i32) {
        let child_of = self.procs.get(&self.procs[&number].parent).map_or(0, |parent| parent.born);
        self.procs.entry(number).and_modify(|proc| proc.child_of = child_of);
    }

    fn tell_of(&mut self, number: i32, born: u64, happened: Happened) {
        let is_lost = match self.temper {
            Temper::Calm => false,
            Temper::Wild => self.one_in(4),
            Temper::Deaf => true,
        };
        if self.watched.contains(&(number, born)) && !is_lost {
            let late = if self.temper == Temper::Wild { self.below(12) } else { 0 };
            self.events.push((self.steps + late, happened));
        }
    }

    /// A process ends. Its children go to launchd; those of them that were stopped run again, as members of a group that nobody leads.
    pub(super) fn end(&mut self, number: i32, exit: Exit) {
        let Some(proc) = self.procs.get_mut(&number).filter(|proc| proc.state != State::Dead) else { return };
        proc.state = State::Dead;
        let (parent, born) = (proc.parent, proc.born);
        let children: Vec<i32> =
            self.procs.iter().filter(|(_, child)| child.parent == number).map(|(pid, _)| *pid).collect();
        for child in children {
            let Some(orphan) = self.procs.get_mut(&child) else { continue };
            orphan.parent = LAUNCHD;
            match orphan.state {
                State::Dead => self.bury(child),
                State::Stopped => {
                    orphan.state = State::Runs;
                    self.fork(child);
                }
                State::Runs | State::Dies(_) => {}
            }
        }
        if number == self.server && !self.was_waited_for && parent == REAPER {
            let late = self.below(6);
            self.ended = Some((self.steps + late, exit));
        } else if parent == LAUNCHD {
            self.bury(number);
        }
        self.tell_of(number, born, Happened::Exited(pid(number)));
    }

    fn any(&mut self, wanted: impl Fn(i32, &Proc) -> bool) -> Option<i32> {
        let all: Vec<i32> =
            self.procs.iter().filter(|(pid, proc)| wanted(**pid, proc)).map(|(pid, _)| *pid).collect();
        let len = u64::try_from(all.len()).unwrap();
        (len > 0).then(|| all[usize::try_from(self.below(len)).unwrap()])
    }

    /// One thing happens, or nothing.
    fn step(&mut self) {
        self.steps += 1;
        self.die();
        if self.is_scripted {
            return;
        }
        let server = self.server;
        let runs = |proc: &Proc| proc.is_ours && proc.state == State::Runs;
        // In a calm world nobody leaves children behind that were not told of.
        let may_end = self.temper != Temper::Calm || self.events.is_empty();
        match self.below(16) {
            0..=3 => {
                if let Some(parent) = self.any(|_, proc| runs(proc)) {
                    let child = self.fork(parent);
                    if self.temper != Temper::Calm && self.one_in(3) {
                        // It forks twice, and the one between is gone at once.
                        if let Some(child) = child {
                            self.fork(child);
                            self.end(child, Exit::Status(0));
                        }
                    }
                }
            }
            4 => {
                let leaves_session = self.one_in(2);
                if let Some(leaves) = self.any(|pid, proc| runs(proc) && pid != server)
                    && let Some(proc) = self.procs.get_mut(&leaves)
                {
                    proc.group = leaves;
                    if leaves_session {
                        proc.session = leaves;
                    }
                }
            }
            5..=6 if may_end => {
                if let Some(ends) = self.any(|pid, proc| runs(proc) && pid != server) {
                    self.end(ends, Exit::Status(0));
                }
            }
            // Somebody waits for a child that ended.
            7..=9 => {
                if let Some(dead) = self.any(|pid, proc| proc.state == State::Dead && pid != server) {
                    self.bury(dead);
                }
            }
            10..=11 => {
                let parent =
                    self.any(|_, proc| !proc.is_ours && proc.state == State::Runs).unwrap_or(LAUNCHD);
                let group = self.procs.get(&parent).map(|proc| proc.group);
                let group = if self.one_in(2) { group } else { None };
                self.bear(parent, group, false);
            }
            12..=13 => {
                if let Some(stranger) = self.any(|_, proc| !proc.is_ours && proc.state == State::Runs) {
                    self.end(stranger, Exit::Status(0));
                }
            }
            15 => {
                if let Some(runs) = self.any(|_, proc| proc.state == State::Runs) {
                    self.runs_another_program(runs);
                }
            }
            14 if self.one_in(12) => {
                if let Some(changes) = self.any(|pid, proc| runs(proc) && pid != server)
                    && let Some(proc) = self.procs.get_mut(&changes)
                {
                    proc.is_others = true;
                }
            }
            _ => {}
        }
    }

    /// Those that were killed come nearer to their end.
    fn die(&mut self) {
        let dying: Vec<(i32, u32)> = self
            .procs
            .iter()
            .filter_map(|(pid, proc)| match proc.state {
                State::Dies(left) if !proc.is_immortal => Some((*pid, left)),
                _ => None,
            })
            .collect();
        for (number, left) in dying {
            if left == 0 {
                self.end(number, Exit::Signal(9));
            } else if let Some(proc) = self.procs.get_mut(&number) {
                proc.state = State::Dies(left - 1);
            }
        }
    }

    /// Before each call of the machine.
    fn called(&mut self) {
        if !self.parent_lives || self.ended.is_some() {
            self.calls_since += 1;
            assert!(self.calls_since < BOUND || self.is_scripted, "it takes too long");
        }
        if self.temper != Temper::Calm {
            for _ in 0..self.below(3) {
                self.step();
            }
        }
    }

    /// Why the machine has to end the server, now and then.
    fn reason_to_end(&mut self) -> Option<Happened> {
        let is_due = self.steps > LONGEST || self.one_in(60);
        let has_reason = !self.parent_lives || self.ended.is_some();
        if !is_due || has_reason || !self.events.is_empty() || self.is_scripted {
            return None;
        }
        match self.below(4) {
            0 if self.temper != Temper::Deaf => Some(Happened::Order(KILL)),
            1 => {
                self.parent_lives = false;
                (self.temper == Temper::Calm).then_some(Happened::ParentGone)
            }
            2 if self.temper != Temper::Deaf => Some(Happened::Order(TERM)),
            _ => {
                let exit = Exit::Status(i32::try_from(self.below(256)).unwrap());
                self.end(self.server, exit);
                None
            }
        }
    }

    fn deliver(&mut self, number: i32, signal: Signal) {
        let slow = u32::try_from(self.below(4)).unwrap();
        let obeys = self.one_in(2);
        let forks = self.one_in(4) && !self.is_scripted;
        let is_server = number == self.server;
        let Some(proc) = self.procs.get_mut(&number) else { return };
        assert!(proc.is_ours, "a stranger was signalled: {number} {proc:?}");
        if proc.is_others || proc.state == State::Dead {
            return;
        }
        match (signal, proc.state) {
            (Signal::STOP, State::Runs) => {
                proc.state = State::Stopped;
                proc.forks_yet = forks;
            }
            (Signal::KILL, State::Runs | State::Stopped) => {
                let forks_yet = std::mem::take(&mut proc.forks_yet);
                proc.state = State::Dies(slow.saturating_sub(1));
                let is_immortal = proc.is_immortal;
                if forks_yet {
                    self.fork(number);
                }
                if slow == 0 && !is_immortal {
                    self.end(number, Exit::Signal(9));
                }
            }
            (Signal::TERM, State::Runs) if obeys || is_server => self.end(number, Exit::Signal(15)),
            _ => {}
        }
    }

    /// Those of the tree that live and could have been killed.
    pub(super) fn living(&self) -> Vec<i32> {
        let lives = |proc: &Proc| proc.is_ours && !proc.is_others && proc.state != State::Dead;
        self.procs.iter().filter(|(_, proc)| lives(proc)).map(|(pid, _)| *pid).collect()
    }

    fn known_living(&self) -> Vec<i32> {
        let living = self.living().into_iter();
        living.filter(|pid| self.known.contains(&(*pid, self.procs[pid].born))).collect()
    }
}

impl Processes for World {
    fn children(&mut self, of: Pid) -> Vec<Pid> {
        self.called();
        let of = number(of);
        self.procs.iter().filter(|(_, proc)| proc.parent == of).map(|(child, _)| pid(*child)).collect()
    }

    fn group(&mut self, group: Pid) -> Vec<Pid> {
        self.called();
        let group = number(group);
        self.procs.iter().filter(|(_, proc)| proc.group == group).map(|(member, _)| pid(*member)).collect()
    }

    fn look(&mut self, at: Pid) -> Look {
        self.called();
        match self.procs.get(&number(at)) {
            None | Some(Proc { state: State::Dead, .. } | Proc { is_ending: true, .. }) => Look::Gone,
            Some(Proc { is_others: true, .. }) => Look::Others,
            Some(proc) => {
                self.looked_at.insert((number(at), proc.born));
                Look::Lives {
                    start: Start { seconds: proc.born, micros: 0 },
                    parent: Pid::from_raw(proc.parent),
                    group: Pid::from_raw(proc.group),
                }
            }
        }
    }

    fn lineage(&mut self, pid: Pid) -> Option<Lineage> {
        self.called();
        let proc = self.procs.get(&number(pid))?;
        let is_server = number(pid) == self.server && !self.was_waited_for;
        if is_server || self.lineages.contains(&proc.child_of) {
            self.lineages.insert(proc.born);
        }
        let lineage = Lineage { own: proc.born, parent: proc.child_of };
        if let Some(replaced) = self.is_replaced.take_if(|replaced| *replaced == number(pid)) {
            self.end(replaced, Exit::Status(0));
            self.next_number = replaced;
            assert_eq!(self.bear(LAUNCHD, None, false), Some(replaced));
        }
        Some(lineage)
    }

    fn watch(&mut self, at: Pid) -> bool {
        self.called();
        let is_there = |proc: &&Proc| proc.state != State::Dead && !proc.is_ending;
        let Some(proc) = self.procs.get(&number(at)).filter(is_there) else {
            return false;
        };
        let this = (number(at), proc.born);
        self.watched.insert(this);
        if self.looked_at.contains(&this) {
            self.known.insert(this);
        }
        true
    }

    fn signal(&mut self, to: Process, signal: Signal) {
        self.called();
        let is_the_one = |proc: &Proc| proc.born == to.start.seconds && proc.state != State::Dead;
        if self.procs.get(&number(to.pid)).is_some_and(is_the_one) {
            self.deliver(number(to.pid), signal);
        }
    }

    fn signal_group(&mut self, group: Pid, signal: Signal) {
        self.called();
        let group = number(group);
        let members: Vec<i32> =
            self.procs.iter().filter(|(_, proc)| proc.group == group).map(|(pid, _)| *pid).collect();
        for member in members {
            self.deliver(member, signal);
        }
    }
}

impl Kernel for World {
    fn session(&mut self) -> Vec<Process> {
        self.called();
        if !self.has_session {
            return Vec::new();
        }
        let is_listed = |proc: &Proc| proc.session == REAPER && proc.state != State::Dead && !proc.is_others;
        let listed: Vec<_> = self.procs.iter().filter(|(_, proc)| is_listed(proc)).collect();
        let mut found = Vec::new();
        for (number, proc) in listed {
            self.looked_at.insert((*number, proc.born));
            found.push(Process { pid: pid(*number), start: Start { seconds: proc.born, micros: 0 } });
        }
        found
    }

    fn orphans(&mut self) -> Vec<Pid> {
        self.children(pid(LAUNCHD))
    }

    fn next(&mut self, _: Duration) -> Happened {
        self.called();
        if let Some(happens) = self.script.pop_front() {
            happens(self);
        }
        for _ in 0..12 {
            if let Some(at) = self.events.iter().position(|(due, _)| *due <= self.steps) {
                return self.events.remove(at).1;
            }
            // The end of the control socket is there for whoever looks.
            if !self.parent_lives && self.temper != Temper::Deaf && self.one_in(2) {
                return Happened::ParentGone;
            }
            if let Some(happened) = self.reason_to_end() {
                return happened;
            }
            self.step();
        }
        Happened::Nothing
    }

    fn nap(&mut self, _: Duration) {
        self.called();
        let late: Vec<i32> =
            self.procs.iter().filter(|(_, proc)| proc.forks_yet).map(|(pid, _)| *pid).collect();
        for parent in late {
            if let Some(proc) = self.procs.get_mut(&parent) {
                proc.forks_yet = false;
                if proc.state == State::Stopped {
                    self.fork(parent);
                }
            }
        }
        self.step();
        // Sooner or later nobody listens to what does not end.
        let busy = self.told.iter().filter(|record| **record == Record::Busy).count();
        if busy > 3 {
            self.parent_lives = false;
        }
    }

    fn parent_lives(&mut self) -> bool {
        self.called();
        self.parent_lives
    }

    fn wait_for_server(&mut self) -> Waited {
        self.called();
        assert!(!self.was_waited_for, "nobody waits twice");
        match self.ended {
            Some((due, exit)) if due <= self.steps => {
                // From here on the group cannot be listed.
                let group = self.server;
                let known = self.known_living();
                let lost = self.living().into_iter();
                let mut lost = lost.filter(|pid| self.procs[pid].group == group && !known.contains(pid));
                assert_eq!(lost.next(), None, "a member of the group was not found");
                self.was_waited_for = true;
                self.bury(self.server);
                if self.loses_status { Waited::NoChild } else { Waited::Status(exit) }
            }
            _ => Waited::NotYet,
        }
    }

    fn tell(&mut self, record: Record) -> bool {
        if record == Record::Clear {
            assert_eq!(self.known_living(), Vec::<i32>::new(), "it is not clear");
            let mut session = self.living().into_iter().filter(|pid| self.procs[pid].session == REAPER);
            assert_eq!(session.next(), None, "something of the session was not found");
            let is_known = |born: u64| self.known.iter().any(|(_, known)| *known == born);
            let is_told = |pid: &i32| {
                let parent = self.procs[pid].child_of;
                self.lineages.contains(&parent) && is_known(parent)
            };
            assert_eq!(self.living().into_iter().find(is_told), None, "an orphan was not found");
            if self.temper == Temper::Calm {
                assert_eq!(self.living(), Vec::<i32>::new(), "something was not found");
            }
        }
        if let (Record::Exited(exit), Some((_, ended))) = (record, self.ended) {
            assert_eq!(exit, ended);
        }
        self.told.push(record);
        self.parent_lives
    }
}
